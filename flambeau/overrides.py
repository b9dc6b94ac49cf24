"""torch.overrides: who takes calls over by a __torch_function__, asked, called and listed.

Keeps     torch's order and words; a mode is asked before any argument.
Touches   tensor.arguments.taken_over, tensor.overriding, every module of public functions.
Not here  what flambeau's own functions do about it (tensor.arguments), what Tensor's own
          __torch_function__ makes of results (tensor/overriding/results.py)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from flambeau.base.missing import module_getattr
from flambeau.engine.stream import LOCAL
from flambeau.tensor import Tensor
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.overriding import members, names, results, serving

__all__ = [
    "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "handle_torch_function", "has_torch_function", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip

# Where overridable functions are: torch's own order.
_ROOMS = (
    "torch", "torch.functional", "torch.nn.functional", "torch.nn.init", "torch.Tensor",
    "torch.linalg", "torch.fft", "torch.special",
)  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode, or one of the arguments, may take a call over. Plain tensors do not.

    >>> import flambeau as torch
    >>> has_torch_function((torch.ones(2), 3))
    False
    """
    here = taken_over.HERE
    found = taken_over.present_mode() is not None or (
        here.arguments and any(taken_over.takes_over(type(each)) for each in relevant_args)
    )
    if found and here.skips:
        here.skips = False
        return False
    return found


def has_torch_function_unary(argument: Any) -> bool:
    """has_torch_function of one argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """has_torch_function of arguments that are given one by one."""
    return has_torch_function(arguments)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the mode entered last, or the first of the arguments that has an answer, answers for
    `public_api`.

    Raises   TypeError: none has."""
    given = list(relevant_args)
    name = f"{public_api.__module__}.{public_api.__name__}"
    if not any(taken_over.takes_over(type(each)) for each in given):
        given = [each for each in given if taken_over.takes_over(type(each), of_tensors=True)]
    answer = taken_over.dispatched(public_api, name, given, args, kwargs, is_python=True)
    if answer is not taken_over.NOBODY:
        return answer
    types = [type(each) for each in given]
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: {types}"
    )


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Decorator: dispatcher(*args) names the arguments that may take the call over."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(called, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return called

    return wrapped


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or brings a __torch_function__.

    >>> import flambeau as torch
    >>> is_tensor_like(torch.ones(2)), is_tensor_like([1, 2])
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def redispatch_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call a function as it is, with what it calls in turn taken over as ever."""
    here = taken_over.HERE
    before, here.skips = here.skips, True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        here.skips = before


class TorchFunctionMode:
    """Takes over every overridable function in a `with` block, whatever its arguments.

    Subclasses write __torch_function__(self, func, types, args=(), kwargs=None). While it runs, the
    mode is off: what it calls reaches the modes entered before.

    >>> import flambeau as torch
    >>> class Names(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     y = torch.ones(2).exp()
    torch.ones
    torch.Tensor.exp
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        _push_mode(self)
        return self

    def __exit__(self, *_: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """The older spelling of `with Mode()`."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every function be what it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: Any) -> None:
    members.watch()
    serving.watch()
    taken_over.enter(mode)


def _pop_mode() -> Any:
    return taken_over.leave()


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def _get_current_function_mode() -> Any:
    stack = taken_over.HERE.stack
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(taken_over.HERE.stack)


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    here = taken_over.HERE
    before = here.arguments, here.modes
    here.arguments = here.modes = LOCAL.stream.asks = True
    try:
        yield
    finally:
        here.arguments, here.modes = before
        LOCAL.stream.asks = here.arguments


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context in which calls are taken over as if nobody were at it already."""
    with _enable_torch_function():
        yield


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results Tensor's own __torch_function__ gives as they are stored."""
    return set(results.unwrapped())


@functools.cache
def _functions() -> tuple[dict[Any, list[Any]], dict[Any, str], set[Any]]:
    """Overridable functions by where they are; names of functions; those that nobody takes over."""
    found: dict[Any, list[Any]] = {}
    named: dict[Any, str] = {}
    ignored: set[Any] = set()
    for name in _names_in("torch.Tensor", Tensor):  # some are functions of torch's, too
        each = getattr(Tensor, name)
        if callable(each) and not name.startswith("_"):
            named[each] = f"torch.Tensor.{name}"
    for room in _ROOMS:
        where: Any = Tensor if room == "torch.Tensor" else import_module(_own(room))
        for name in _names_in(room, where):
            each = getattr(where, name, None)
            if isinstance(each, property):
                named[each.__get__] = f"{room}.{name}.__get__"
                named[each.__set__] = f"{room}.{name}.__set__"
                if not name.startswith("_"):
                    found.setdefault(each, []).append(each.__get__)
                continue
            known = named.setdefault(each, f"{room}.{name}") if callable(each) else None
            if known != f"{room}.{name}" or isinstance(each, ModuleType | type):
                continue
            if _is_ignored(room, name):
                ignored.add(each)
            elif room == "torch.Tensor" or (name[0].islower() and not name.endswith("_")):
                found.setdefault(where, []).append(each)
    return found, named, ignored


def _own(room: str) -> str:
    return "flambeau" + room.removeprefix("torch")


def _names_in(room: str, where: Any) -> list[str]:
    if room != "torch.Tensor":
        return [name for name in dir(where) if not name.startswith("_")]
    skipped = ("__class__", "__dict__", "__weakref__", "__new__", "__init__")
    return [
        name
        for name in dir(where)
        if name not in skipped
        and getattr(object, name, None) is not getattr(where, name, None)
        and (not name.startswith("_") or name.startswith("__") or name in ("_version", "_cdata"))
    ]


def _is_ignored(room: str, name: str) -> bool:
    if room == "torch.Tensor":
        return name in taken_over.SILENT_METHODS or name in ("__torch_function__", "__iter__")
    return room == "torch" and (name in names.SILENT or name in names.FACTORIES)


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Functions that a __torch_function__ may take over, by the module or class they are in."""
    return {where: list(functions) for where, functions in _functions()[0].items()}


def get_ignored_functions() -> set[Any]:
    """Public functions that no argument takes over."""
    return set(_functions()[2])


def resolve_name(f: Any) -> str | None:
    """The public name of a function that a __torch_function__ was shown, or None.

    >>> import flambeau as torch
    >>> resolve_name(torch.Tensor.add), resolve_name(torch.Tensor.grad.__get__)
    ('torch.Tensor.add', 'torch.Tensor.grad.__get__')
    """
    public = getattr(f, "public", None)
    if public is None:
        return _functions()[1].get(f)
    room, _, name = public.rpartition(".")
    return f"torch.functional.{name}" if room == "torch" and name in names.FUNCTIONAL else public


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether a function is a method of Tensor, or a property's `__get__`."""
    return func in _functions()[0][Tensor] or func.__name__ == "__get__"


__getattr__ = module_getattr(__name__)
