"""What users hand in: numbers in nested sequences, arguments of calls that may fit no form.

Keeps     one spelling of a type for every message.
Touches   refusals.py, when a call has failed: what it needs is imported then.
Not here  names of dtypes (base/promotion.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from flambeau.base.dtypes import dtype
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.tensor import Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])
# Python's operators among the methods that are written out.
_OPERATORS: Final = frozenset(
    ("__rdiv__", "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmod__", "__rpow__",
     "__rrshift__", "__rtruediv__")
)  # fmt: skip
_PACKAGES: Final = ("numpy", "torch")


def named_type(value: Any) -> str:
    """Tensor, int, list, numpy.ndarray, torch.dtype ..."""
    if isinstance(value, Tensor):
        return "Tensor"
    kind = type(value)
    if kind is dtype:
        return "torch.dtype"
    return f"{kind.__module__}.{kind.__name__}" if kind.__module__ in _PACKAGES else kind.__name__


def refused(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any], is_method: bool = False
) -> TypeError:
    """torch's error for a call that no form fits."""
    from flambeau.tensor.arguments import refusals

    found = refusals.refusal(name, arguments, named, is_method)
    return found or TypeError(f"{name}(): invalid arguments")


def refusing(function: Callable[..., Any], name: str, is_method: bool) -> Callable[..., Any]:
    """The function under the name that programs know it by: calls are taken over by arguments and
    modes that can, failed calls are refused as torch does where it is the arguments."""
    if getattr(function, "refuses", False):
        return function
    function = getattr(function, "over", function)
    public = taken_over.public_name(name, is_method)

    is_operator = is_method and name in _OPERATORS

    # A frame each, so that warnings name the same line of the program either way.
    @functools.wraps(function)
    def unasked(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception:
            from flambeau.tensor.arguments import refusals

            return refusals.answered(name, is_method, arguments, named)

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            found = taken_over.answer(called, arguments, named)
        except TypeError:
            if is_operator:
                return NotImplemented
            raise
        if found is not taken_over.NOBODY:
            return found
        try:
            return function(*arguments, **named)
        except Exception:
            from flambeau.tensor.arguments import refusals

            return refusals.answered(name, is_method, arguments, named)

    made: Any = unasked if public is None else called
    made.over = function
    if public is not None:
        made.public, made.unasked = public, unasked
    return made


def refuses(name: str) -> Callable[[_Function], _Function]:
    """`refusing` as a decorator of functions that are written out."""
    return lambda function: refusing(function, name, False)  # type: ignore[return-value]
