"""Calls that an argument, or a mode, takes over by its __torch_function__.

Keeps     torch's order: the mode entered last, subclasses before their bases, then from left to
          right. Calls of what nobody takes over cost a look at the types of their arguments.
Touches   Tensor.
Not here  torch.overrides' own names (overrides.py), members of subclasses (overriding/members.py),
          what Tensor's own __torch_function__ makes of results (overriding/results.py)."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable
from types import CodeType, EllipsisType, NoneType
from typing import Any, Final

from flambeau.base.devices import Device
from flambeau.base.dtypes import dtype
from flambeau.devices.forks import at_fork
from flambeau.engine.stream import LOCAL
from flambeau.tensor.tensor import Tensor

Function = Callable[..., Any]
NOBODY: Final = object()
# Types of arguments that take nothing over, the commonest ones.
PLAIN: Final[set[type]] = {
    Tensor, bool, int, float, complex, str, NoneType, slice, EllipsisType, dtype, Device,
}  # fmt: skip
# nn.Parameter, once it is there: its tensors go the way of plain ones.
PARAMETER: Final[list[type]] = []
# Methods that nobody takes over.
SILENT_METHODS: Final = frozenset(("__copy__", "__hash__", "as_subclass", "set_"))
# One element for each mode that is entered in any thread; empty: nobody asks for modes.
MODES: Final[list[None]] = []
# Held while MODES changes and observers are told, so that they are told of its last state.
_TELLING: Final = threading.RLock()
# Told when MODES becomes empty or is no longer, and when a class joins PLAIN.
OBSERVERS: Final[list[Function]] = []


class _Here(threading.local):
    """What may take calls over in this thread."""

    def __init__(self) -> None:
        self.arguments = True
        self.modes = True
        self.outer: tuple[bool, bool] | None = None  # both before the backward pass that runs
        self.stack: list[Any] = []
        self.skips = False  # the next call is not taken over (overrides.redispatch_function)


HERE: Final = _Here()


def exempt(parameter: type) -> None:
    """Let parameters go the way of plain tensors: they never take calls over."""
    PLAIN.add(parameter)
    PARAMETER.append(parameter)
    _tell()


def enter(mode: Any) -> None:
    """Let a mode take this thread's calls over, before those that are there."""
    HERE.stack.append(mode)
    with _TELLING:
        MODES.append(None)
        if len(MODES) == 1:
            _tell()


def leave() -> Any:
    """End the mode entered last; returns it."""
    mode = HERE.stack.pop()
    with _TELLING:
        MODES.pop()
        if not MODES:
            _tell()
    return mode


def _tell() -> None:
    for each in OBSERVERS:
        each()


# A child must not inherit a lock that another thread held in the parent.
at_fork(_TELLING.acquire, _TELLING.release, _TELLING.release)


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A `__torch_function__` that lets the function be what it is."""
    with Undisturbed():
        return func(*args, **(kwargs or {}))


class Undisturbed:
    """Context in which no argument takes calls over; modes still do."""

    def __enter__(self) -> None:
        self._before = HERE.arguments
        HERE.arguments = LOCAL.stream.asks = False

    def __exit__(self, *_: object) -> None:
        HERE.arguments = LOCAL.stream.asks = self._before


class AllUndisturbed(Undisturbed):
    """Context in which neither arguments nor modes take calls over."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes_before = HERE.modes
        HERE.modes = False

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        HERE.modes = self._modes_before


def takes_over(kind: type, of_tensors: bool = False) -> bool:
    """Whether objects of a class may take calls over. of_tensors: plain ones count, too."""
    taker = getattr(kind, "__torch_function__", None)
    return taker is not None and taker is not disabled and (kind is not Tensor or of_tensors)


def overloaded(arguments: Iterable[Any], of_tensors: bool = False) -> list[Any]:
    """The first of each type with a __torch_function__, subclasses before their bases."""
    found: list[Any] = []
    for each in arguments:
        kind = type(each)
        if kind in PLAIN and not (of_tensors and kind is Tensor):
            continue
        if not takes_over(kind, of_tensors) or kind in map(type, found):
            continue
        place = 0
        while place < len(found) and not issubclass(kind, type(found[place])):
            place += 1
        found.insert(place, each)
    return found


def relevant(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Arguments, and what lies in lists of them, in order."""
    found: list[Any] = []
    for each in (*arguments, *named.values()) if named else arguments:
        if type(each) in (tuple, list):
            found += each
        else:
            found.append(each)
    return found


def present_mode() -> Any:
    """The mode that is asked first, or None."""
    return HERE.stack[-1] if MODES and HERE.stack and HERE.modes else None


def dispatched(
    public_api: Function, name: str, given: Iterable[Any], arguments: tuple[Any, ...],
    named: dict[str, Any], is_python: bool = False,
) -> Any:  # fmt: skip
    """What takes the call over answers; NOBODY where nothing does.

    given       arguments that may, from left to right
    is_python   torch's function is written in Python: plain tensors are among the types then
    Raises      TypeError: all that might know nothing of the function."""
    given = list(given)
    asked = overloaded(given) if HERE.arguments else []
    mode = present_mode()
    if not asked and mode is None:
        return NOBODY
    if HERE.skips:
        HERE.skips = False
        return NOBODY
    if is_python and HERE.arguments:
        asked = overloaded(given, of_tensors=True)
    types = tuple(map(type, asked))
    said = named if named or is_python else None  # as torch's own arguments come
    if mode is not None:
        leave()
        try:
            found = mode.__torch_function__(public_api, types, arguments, said)
        finally:
            enter(mode)
        if found is not NotImplemented:
            return found
    for each in asked:
        taker = each.__torch_function__
        if getattr(taker, "__self__", None) is each:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an "
                "error in future, please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=3,
            )
        found = taker(public_api, types, arguments, said)
        if found is not NotImplemented:
            return found
    raise TypeError(_nobody_knows(name, types, mode, is_python))


def _nobody_knows(name: str, types: tuple[type, ...], mode: Any, is_python: bool) -> str:
    if is_python:
        from flambeau.tensor.overriding import names

        also = "" if mode is None else f" nor in mode {mode}"
        return (
            f"no implementation found for '{names.said(name)}' on types that implement "
            f"__torch_function__: {list(types)}{also}"
        )
    lines = [] if mode is None else [f"  - mode object {mode!r}"]
    lines += [f"  - tensor subclass {kind!r}" for kind in types]
    return (
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        "NotImplemented:\n\n" + "\n".join(lines)
    )


def answer(called: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What takes a call of `called` over answers; NOBODY where nothing does. Its attributes say
    what the program knows it as: `public`, the name; `shown`, the function or Tensor's member of
    this name, where that is not `called` itself."""
    for each in arguments:
        if type(each) not in PLAIN:
            break
    else:
        if not (named or MODES):
            return NOBODY
    here = HERE
    if not here.arguments and not MODES:
        return NOBODY
    name = called.public
    shown = getattr(called, "shown", called)
    return dispatched(
        getattr(Tensor, shown) if type(shown) is str else shown,
        name,
        relevant(arguments, named),
        arguments,
        named,
        is_python(name),
    )


@functools.cache
def is_python(name: str) -> bool:
    """Whether torch's function of this name is written in Python."""
    from flambeau.tensor.overriding import names

    return names.is_python(name)


def public_name(name: str, is_method: bool) -> str | None:
    """What programs know an operator's function by; None: they do not know it."""
    from flambeau.ops import names

    if is_method:
        return None if name in SILENT_METHODS else f"torch.Tensor.{name}"
    if name.removesuffix("_") not in names.INTERNAL:
        return f"torch.{name}"
    return next((f"torch.{alias}" for alias, own in names.ALIASES.items() if own == name), None)


def overridable(function: Any, name: str) -> Any:
    """A function under its public name, whose calls may be taken over."""

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        found = answer(called, arguments, named)
        return function(*arguments, **named) if found is NOBODY else found

    made: Any = called
    made.__code__ = _uncounted(made.__code__)
    made.public, made.unasked = name, function
    return made


@functools.cache
def _uncounted(code: CodeType) -> CodeType:
    """The code under a file's name that `warnings` does not count as a frame, as it does not those
    of the import system: a warning names the line that called the function."""
    return code.replace(co_filename=f"{code.co_filename} (importlib_bootstrap)")


def member(function: Any, name: str) -> Any:
    """A function that does a part of what one of Tensor's members does: the member is shown."""
    made = overridable(getattr(function, "unasked", function), f"torch.Tensor.{name}")
    made.shown = name
    return made


def operator(name: str, function: Function) -> Function:
    """One of Python's operators, which says NotImplemented where nobody knows it.

    name   of the member that __torch_function__ is shown for it"""

    def called(input: Any, other: Any) -> Any:
        if type(input) in PLAIN and type(other) in PLAIN and not MODES:
            return function(input, other)
        public_api = getattr(Tensor, name)
        public = f"torch.Tensor.{name}"
        if not HERE.arguments and not MODES:
            return function(input, other)
        try:
            found = dispatched(
                public_api, public, (input, other), (input, other), {}, is_python(public)
            )
        except TypeError:
            return NotImplemented
        return function(input, other) if found is NOBODY else found

    return called
