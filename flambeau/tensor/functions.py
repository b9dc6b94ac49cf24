"""The namespace of recorded functions: every operator under its name, made at first use.

Keeps     what is here is what the registry holds; gradients speak to it as `t`.
Touches   ops (registry), closures, binding.
Not here  torch's public names (flambeau/__init__.py), methods (methods.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from flambeau.ops import names
from flambeau.ops.define import REGISTRY
from flambeau.tensor.arguments import refusing, taken_over
from flambeau.tensor.binding import binding
from flambeau.tensor.closures import function_of
from flambeau.tensor.inplace import call_inplace
from flambeau.tensor.native import callables, library, types
from flambeau.tensor.number_rules import is_number
from flambeau.tensor.tensor import Tensor

# Written by hand over operators of the same names: the hand-written one is meant.
_WRITTEN = {
    **dict.fromkeys(
        ("empty_like", "eye", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"),
        "flambeau.tensor.public.fills",
    ),
    **dict.fromkeys(("arange", "linspace", "logspace"), "flambeau.tensor.public.ranges"),
    **dict.fromkeys(("empty", "empty_strided"), "flambeau.tensor.creation"),
    "is_grad_enabled": "flambeau.gradients.modes",  # asked by gradients with a fused first order
}  # fmt: skip


if TYPE_CHECKING:  # what the room itself calls: mypy meets these calls before __getattr__
    alias: Callable[..., Any]
    clone: Callable[..., Any]
    contiguous_copy: Callable[..., Any]
    convert: Callable[..., Any]


def __getattr__(name: str) -> Any:
    if name in _WRITTEN:
        made = getattr(import_module(_WRITTEN[name]), name)
    elif name in REGISTRY:
        made = function_of(binding(name))
    elif name.endswith("_") and name[:-1] in REGISTRY:
        if not REGISTRY[name[:-1]].inplace:
            raise AttributeError(f"operator {name[:-1]!r} has no in-place form")
        made = inplace_function(name[:-1])
    else:
        raise AttributeError(f"no operator is called {name!r} (ops.names lists them)")
    globals()[name] = made
    types.succeeds(made, name)
    if name not in _WRITTEN and library.is_awaited():
        _FOR_NOW.append(name)
    return made


def _renew() -> None:
    """Forget the closures made so far: the next use of a name makes a native callable. Whoever
    holds one of them keeps what does the same, more slowly."""
    old = {name: globals().pop(name) for name in _FOR_NOW if name in globals()}
    _FOR_NOW.clear()
    types.EARLIER.update(old)
    forget(old.values())


def forget(made: Iterable[Any]) -> None:
    """Let modules look for names anew that stand for these functions."""
    closures = {id(each) for each in made}
    for name, module in list(sys.modules.items()):
        # Past what a lazy package does to be listed whole.
        known = _NAMESPACE.__get__(module) if name.startswith("flambeau") else {}
        if "__getattr__" in known:
            for key in [k for k, value in known.items() if id(value) in closures]:
                delattr(module, key)


_NAMESPACE: Final[Any] = vars(ModuleType)["__dict__"]


_FOR_NOW: Final[list[str]] = []
library.when_made(_renew)


def inplace_function(name: str, is_method: bool = False, member: str = "") -> Any:
    """The in-place form of an operator. member: for one of Python's operators, what a
    __torch_function__ is shown for it; that returns NotImplemented for what it does not know."""
    bound = binding(name)

    def function(*arguments: Any, **named: Any) -> Any:
        if member and not isinstance(arguments[1], Tensor) and not is_number(arguments[1]):
            return NotImplemented
        return call_inplace(bound, arguments, named)

    told: Any
    if member:
        told = taken_over.operator(member, function)
    else:
        told = refusing(function, name + "_", True)
        told.public = taken_over.public_name(name + "_", is_method)
    made: Any = callables.inplace(bound, told)
    made.__name__ = made.__qualname__ = name + "_"
    made.__doc__ = f"In-place form of {name}."
    return made


def public(name: str) -> Any:
    """The function torch has under this name, or None."""
    called = _function_called(name)
    return None if called is None else getattr(sys.modules[__name__], called)


def _function_called(name: str) -> str | None:
    """What a public name is called here; None where no operator has it."""
    if name in names.FILES:
        if name not in names.INTERNAL:
            return name
    elif name in names.ALIASES:
        return names.ALIASES[name]
    elif name.endswith("_") and name[:-1] in names.INPLACE:
        return name
    for own, operator in REGISTRY.added().items():  # of the program itself
        if (name == own and operator.function) or name in operator.aliases:
            return own
        if name == own + "_" and operator.inplace:
            return name
    return None


def public_names() -> list[str]:
    """Names of all public functions made from operators, the dotted ones included."""
    found = [name for name in names.FILES if name not in names.INTERNAL]
    found += names.ALIASES
    for name, operator in REGISTRY.added().items():
        found += [*([name] if operator.function else ()), *operator.aliases]
    return found
