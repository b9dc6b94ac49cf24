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
from flambeau.tensor.arguments import EARLIER, refusing
from flambeau.tensor.late_methods import LATE
from flambeau.tensor.native import callables, library
from flambeau.tensor.native.reading import ways
from flambeau.tensor.tensor import Tensor


class LazyMethod:
    """Becomes the real function at first use, so that importing makes no closures."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name = name
        self.make = make

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.make()
        setattr(Tensor, self.name, function)
        if library.is_awaited():
            _FOR_NOW.append(self)
        return function if instance is None else function.__get__(instance, owner)


def _renew() -> None:
    """Make methods anew at their next use: the native recorder is there now."""
    for lazy in _FOR_NOW:
        EARLIER.setdefault(f"Tensor.{lazy.name}", []).append(vars(Tensor)[lazy.name])
        setattr(Tensor, lazy.name, lazy)
    _FOR_NOW.clear()


_FOR_NOW: Final[list[LazyMethod]] = []
library.when_made(_renew)

OPERATORS: dict[str, str] = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__rsub__": "rsub", "__mul__": "mul",
    "__rmul__": "mul", "__truediv__": "div", "__floordiv__": "floor_divide",
    "__mod__": "remainder", "__pow__": "pow", "__matmul__": "matmul", "__and__": "bitwise_and",
    "__rand__": "bitwise_and", "__or__": "bitwise_or", "__ror__": "bitwise_or",
    "__xor__": "bitwise_xor", "__rxor__": "bitwise_xor", "__eq__": "eq", "__ne__": "ne",
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__lshift__":
    "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
}  # fmt: skip
UNARY: dict[str, str] = {"__neg__": "neg", "__abs__": "abs"}
INPLACE: dict[str, str] = {
    "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div",
    "__ifloordiv__": "floor_divide", "__imod__": "remainder", "__ipow__": "pow",
    "__iand__": "bitwise_and", "__ior__": "bitwise_or", "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift", "__irshift__": "bitwise_right_shift",
}  # fmt: skip


def _late_method(room: str, name: str, method: str) -> Callable[[], Any]:
    return lambda: refusing(getattr(import_module(f"flambeau.{room}"), name), method, True)


def _operator_method(name: str) -> Callable[[], Any]:
    return lambda: closures.binary_operator(bindings.binding(name))


def _function_method(name: str) -> Callable[[], Any]:
    def make() -> Any:
        from flambeau.tensor.arguments.signatures import FORMS

        if name not in REGISTRY:
            return getattr(functions, name)
        bound = bindings.binding(name)
        if not _takes_sizes(name):
            return (
                closures.function_of(bound, is_method=True)
                if name in FORMS
                else getattr(functions, name)
            )
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


def _inplace_operator(name: str) -> Callable[[], Any]:
    return lambda: functions.inplace_function(name, is_operator=True)


def _inplace_method(name: str) -> Callable[[], Any]:
    return lambda: functions.inplace_function(name)


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
        setattr(Tensor, name, LazyMethod(name, _operator_method(target)))
    for name, target in UNARY.items():
        setattr(Tensor, name, LazyMethod(name, _function_method(target)))
    for name, target in INPLACE.items():
        setattr(Tensor, name, LazyMethod(name, _inplace_operator(target)))
    for room, served in LATE.items():
        for name, function_name in served.items():
            setattr(Tensor, name, LazyMethod(name, _late_method(room, function_name, name)))
    for read in (conversion.item, conversion.numpy):
        setattr(Tensor, read.__name__, LazyMethod(read.__name__, _read_method(read)))
    for name, make in (("reshape", _reshape_method), ("__getitem__", _getitem_method)):
        setattr(Tensor, name, LazyMethod(name, make))
    for name, function in own_members.METHODS.items():
        setattr(Tensor, name, function)
    for name, made in own_members.PROPERTIES.items():
        setattr(Tensor, name, made)
