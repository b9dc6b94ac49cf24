"""How Tensor comes by its members: methods made from operators at first use, Python's operators.

Keeps     a method is the function of the same operator; nothing is written twice.
Touches   functions, closures, native.callables, own_members.
Not here  what is written out (own_members.py), which rooms serve the others (late_methods.py)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from flambeau.ops import names
from flambeau.ops.define import REGISTRY, parameter_kinds
from flambeau.tensor import binding as bindings
from flambeau.tensor import closures, conversion, functions, own_members
from flambeau.tensor.arguments import refusing, taken_over
from flambeau.tensor.late_methods import INPLACE, LATE, OPERATORS, SAME
from flambeau.tensor.native import callables, library, types
from flambeau.tensor.native.reading import ways
from flambeau.tensor.tensor import Tensor


class LazyMethod:
    """Becomes the real function at first use, so that importing makes no closures."""

    def __init__(self, name: str, make: Callable[[], Any], is_named: bool = True) -> None:
        self.name = name
        self.make = make
        self.is_named = is_named  # False: it is another member, and keeps that one's name

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.make()
        if self.is_named:
            function.__name__ = function.__qualname__ = self.name
        setattr(Tensor, self.name, function)
        types.succeeds(function, f"Tensor.{self.name}")
        if library.is_awaited():
            _FOR_NOW.append(self)
        return function if instance is None else function.__get__(instance, owner)


def _renew() -> None:
    """Make methods anew at their next use: the native recorder is there now."""
    for lazy in _FOR_NOW:
        now = vars(Tensor)[lazy.name]
        if not getattr(now, "stays", False):  # which modes watch
            types.EARLIER[f"Tensor.{lazy.name}"] = now
            setattr(Tensor, lazy.name, lazy)
    _FOR_NOW.clear()


_FOR_NOW: Final[list[LazyMethod]] = []
library.when_made(_renew)


def _late_method(room: str, name: str, method: str) -> Callable[[], Any]:
    return lambda: callables.guard(
        refusing(getattr(import_module(f"flambeau.{room}"), name), method, True)
    )


def _operator_method(name: str, member: str) -> Callable[[], Any]:
    return lambda: closures.binary_operator(bindings.binding(name), member)


def _function_method(name: str) -> Callable[[], Any]:
    def make() -> Any:
        if name not in REGISTRY:
            return functions.inplace_function(name[:-1], is_method=True)
        bound = bindings.binding(name)
        if not _takes_sizes(name):
            return closures.function_of(bound, is_method=True)
        function = getattr(functions, name)
        made = refusing(_with_sizes(function), name, True)
        if bound.is_view:
            return _named_as(function, callables.view(bound, made, packs=True))
        return made

    return make


def _named_as(function: Callable[..., Any], made: Any) -> Any:
    made.__name__, made.__qualname__ = function.__name__, function.__qualname__
    made.__doc__ = function.__doc__
    return made


def _reshape_method() -> Any:
    reshape = own_members.reshape
    told = refusing(reshape, "reshape", True)
    return _named_as(reshape, callables.view(bindings.binding("view"), told, packs=True))


def _getitem_method() -> Any:
    from flambeau.tensor import indexing

    getitem = indexing.getitem
    return _named_as(
        getitem, callables.getitem(bindings.binding("select"), getitem, indexing.FIRST)
    )


def _read_method(function: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: _named_as(function, ways.of(function))


def _takes_sizes(name: str) -> bool:
    """Whether the method takes ints one by one: its only sequence of sizes comes first."""
    operator = REGISTRY.get(name)
    if operator is None:
        return False
    rule = getattr(type(operator), "view", None) or type(operator).infer
    kinds = list(parameter_kinds(rule, 1).values())
    return kinds[1:2] == ["Sizes"] and kinds.count("Sizes") == 1


def _with_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, *sizes: Any, **named: Any) -> Any:
        if sizes and not isinstance(sizes[0], (tuple, list)):
            return function(self, sizes, **named)
        return function(self, *sizes, **named)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def _inplace_operator(name: str, member: str) -> Callable[[], Any]:
    return lambda: functions.inplace_function(name, member=member)


def _inplace_method(name: str) -> Callable[[], Any]:
    return lambda: functions.inplace_function(name, is_method=True)


def _asking_method(name: str) -> Callable[[], Any]:
    return lambda: callables.guard(
        taken_over.overridable(getattr(own_members, name), f"torch.Tensor.{name}")
    )


def _same_method(name: str) -> Callable[[], Any]:
    return lambda: getattr(Tensor, name)


def install() -> None:
    """Put the members on Tensor; run once, at import."""
    for operator in names.FILES:
        for name in names.methods_of(operator):
            if name.endswith("_"):  # copy_, fill_, zero_: in place is all they are
                setattr(Tensor, name, LazyMethod(name, _inplace_method(operator)))
                continue
            setattr(Tensor, name, LazyMethod(name, _function_method(operator)))
            if operator in names.INPLACE:
                inplace = operator + "_"
                setattr(Tensor, name + "_", LazyMethod(name + "_", _function_method(inplace)))
    for name, target in OPERATORS.items():
        setattr(Tensor, name, LazyMethod(name, _operator_method(*target)))
    for name, target in INPLACE.items():
        setattr(Tensor, name, LazyMethod(name, _inplace_operator(*target)))
    for name, other in SAME.items():
        setattr(Tensor, name, LazyMethod(name, _same_method(other), is_named=False))
    for room, served in LATE.items():
        for name, function_name in served.items():
            setattr(Tensor, name, LazyMethod(name, _late_method(room, function_name, name)))
    for read in (conversion.item, conversion.numpy):
        setattr(Tensor, read.__name__, LazyMethod(read.__name__, _read_method(read)))
    for name, make in (("reshape", _reshape_method), ("__getitem__", _getitem_method)):
        setattr(Tensor, name, LazyMethod(name, make))
    for name, function in own_members.METHODS.items():
        function.__name__ = function.__qualname__ = name
        setattr(Tensor, name, function)
    for name in ("to", "type_as"):  # their arguments may take them over
        setattr(Tensor, name, LazyMethod(name, _asking_method(name)))
    for name, made in own_members.PROPERTIES.items():
        setattr(Tensor, name, made)
