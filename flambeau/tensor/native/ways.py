"""What native callables learn: keys of calls to what native code does for them.

Keeps     only calls that native code can take whole are remembered, up to a bound.
Touches   binding, index_bounds, ctypes.
Not here  the callables (callables.py), what is known of hot shapes (library.py's Ways)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from flambeau.base.devices import META
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout
from flambeau.engine.stream import HEAVY_BYTES
from flambeau.gradients.autocast import is_anywhere
from flambeau.tensor.arguments.parameters import told_apart
from flambeau.tensor.binding import Binding
from flambeau.tensor.native import tables
from flambeau.tensor.native.library import Library
from flambeau.tensor.native.tables import GRADIENT, RUN_TIME, VIEW_WAY, WAY
from flambeau.tensor.number_rules import is_special, may_overflow
from flambeau.tensor.tensor import Tensor, result_class

ROW_KINDS: Final = {
    "attribute": tables.IS_ATTRIBUTE, "Tensors": tables.IS_SEQUENCE,
    "Number": tables.IS_NUMBER, "OptionalNumber": tables.IS_NUMBER,
    "Tensor": tables.IS_TENSOR, "Operand": tables.IS_TENSOR,
    "OptionalTensor": tables.IS_TENSOR, "OptionalOperand": tables.IS_TENSOR,
}  # fmt: skip
MAX_WAYS: Final = 4096


class _Address(int):
    """An address that keeps alive what lies there and what that points to."""

    held: Any


class GeneralWays:
    """What a native callable of any parameters knows: keys of calls to ways."""

    def __init__(self, library: Library, binding: Binding) -> None:
        self._library = library
        self._binding = binding
        self.found: dict[tuple[Any, ...], int] = {}
        self._refused: set[tuple[Any, ...]] = set()

    def learn(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Remember the way of a call that Python took, where native code can take it."""
        if is_anywhere():  # the call may have been another, with tensors cast
            return
        binding = self._binding
        values = binding.arranged(arguments, dict(named))
        key = general_key(binding, values)
        if key is None or key in self.found or key in self._refused:
            return
        call = binding.taken_apart(values)
        signature = binding.signatures.get(call.key)
        if signature is None or not self._is_plain(call, signature):
            self._refused.add(key)
            return
        if len(self.found) >= MAX_WAYS:
            self.found.clear()
            self._refused.clear()
        layouts = tuple([
            value._layout if isinstance(value, Tensor) else None
            for parameter, value in zip(binding.parameters, call.values, strict=True)
            if ROW_KINDS.get(parameter.kind) == tables.IS_TENSOR
        ])  # fmt: skip
        check = _check(binding, call, signature)
        outputs = tuple(signature.fresh_outputs)
        operator = binding.operator
        make = None
        if operator.returns and operator.shows_names:
            make = partial(tuple.__new__, result_class(binding.name, operator.returns))
        words = (ctypes.c_uint64 * len(WAY))()
        way = {
            "signature": id(signature), "layout": id(signature.out_layout),
            "attributes": id(signature.attributes), "layouts": id(layouts),
            "check": 0 if check is None else id(check),
            "flags": gradient_flags(binding, signature) & GRADIENT,
            "several": 0 if len(outputs) == 1 else id(outputs),
            "named": 0 if make is None else id(make),
        }  # fmt: skip
        for name, word in way.items():
            words[WAY[name] // 8] = word
        address = _Address(ctypes.addressof(words))
        address.held = (words, signature, layouts, check, outputs, make)
        self.found[key] = address

    def _is_plain(self, call: Any, signature: Any) -> bool:
        layout = signature.out_layout
        return (
            layout is not None
            and (len(signature.fresh_outputs) > 1 or not self._binding.operator.returns)
            and layout.device is not META
            and signature.out_bytes <= HEAVY_BYTES
            and not any(isinstance(number, bool) for number in call.numbers)
            and not (
                self._binding.operator.holomorphic
                and any(each.dtype.is_complex for each in signature.all_layouts)
            )
            and not may_overflow(self._binding.name, layout.dtype)
        )


class ViewWays:
    """What the native callable of a view operator knows: keys of calls to layouts."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self.found: dict[tuple[Any, ...], int] = {}

    def learn(self, arguments: tuple[Any, ...], named: dict[str, Any], packs: bool) -> None:
        """Remember the view that Python has just made."""
        binding = self._binding
        if packs and len(arguments) > 1 and type(arguments[1]) is int:
            arguments = (arguments[0], arguments[1:])
        if len(arguments) > binding.n_positional or not named.keys() <= binding.positions.keys():
            return
        if any(isinstance(argument, list) for argument in arguments):
            return
        values = binding.arranged(arguments, dict(named))
        key = general_key(binding, values)
        if key is None or key in self.found:
            return
        given = values[0]._layout
        attributes = tuple(values[1:])
        view = given.memo.get((binding.operator, told_apart(attributes)))
        if not view:
            return
        is_one = isinstance(view[0], Layout)
        several = () if is_one else tuple(map(tuple, view))
        if any(layout.itemsize != given.itemsize for layout, _ in several or [view]):
            return
        if len(self.found) >= MAX_WAYS:
            self.found.clear()
        named = {p.name: a for p, a in zip(binding.parameters[1:], attributes, strict=True)}
        layouts = (given,)
        words = (ctypes.c_uint64 * len(VIEW_WAY))()
        layout, offset = view if is_one else several[0]
        way = {
            "layout": id(layout), "offset": offset & (1 << 64) - 1, "attributes": id(named),
            "layouts": id(layouts), "several": 0 if is_one else id(several),
        }  # fmt: skip
        for name, word in way.items():
            words[VIEW_WAY[name] // 8] = word
        address = _Address(ctypes.addressof(words))
        address.held = (words, view, several, named, layouts)
        self.found[key] = address


def gradient_flags(binding: Binding, signature: Any) -> int:
    flags = RUN_TIME if signature.number_format else 0
    categories = [layout.dtype.category for layout in signature.fresh_outputs]
    if binding.operator.differentiable and max(categories, default=0) >= 2:
        flags |= GRADIENT
    return flags


def _check(binding: Binding, call: Any, signature: Any) -> Callable[..., Any] | None:
    """What native code asks of the tensors of a call of this key before it records it: raises for
    index values out of bounds, returns what the result's storage keeps as its bounds, or None."""
    from flambeau.tensor import index_bounds

    places = _places(binding, call)
    checks: list[tuple[int, int | None, int | None, Any]] = []
    ignored = None
    if binding.is_bounded(call):
        bounds, ignored = binding.bounds_of(call)
        for name, low, high, error in bounds:
            if name in places:
                checks.append((places[name][0], low, high, error))
    tells: Callable[..., Any] | None = None
    if signature.out_layout.dtype.category == 1:
        tells = _telling(binding, call, places)

    def check(*tensors: Tensor) -> Any:
        for place, low, high, error in checks:
            found = index_bounds.first_outside(tensors[place], low, high, ignored)
            if found is not None:
                raise error(found)
        return None if tells is None else tells(*tensors)

    return check if checks else tells


def _telling(
    binding: Binding, call: Any, places: dict[str, list[int]]
) -> Callable[..., Any] | None:
    """What tells the bounds of an integer result, where they follow from the operator."""
    from flambeau.tensor import index_bounds

    if binding.name in index_bounds.PLACES:
        named = dict(zip(binding.positions, call.values, strict=True))
        told = (0, 0, index_bounds.highest_place(named["input"]._layout, named.get("dim")))
        return lambda *tensors: told
    names = index_bounds.PASSED_ON.get(binding.name)
    if names is None:
        return None
    sources = [place for name in names for place in places[name]]

    def passed_on(*tensors: Tensor) -> Any:
        found = index_bounds.of_all([tensors[place] for place in sources])
        return None if found is None else (0, *found)

    return passed_on


def _places(binding: Binding, call: Any) -> dict[str, list[int]]:
    """Parameter -> places of its tensors among those of the call; of a sequence's also one by
    one, as name.number."""
    places: dict[str, list[int]] = {}
    position = 0
    for parameter, value in zip(binding.parameters, call.values, strict=True):
        if parameter.kind == "Tensors":
            places[parameter.name] = list(range(position, position + len(value)))
            for number in range(len(value)):
                places[f"{parameter.name}.{number}"] = [position + number]
            position += len(value)
        elif isinstance(value, Tensor):
            places[parameter.name] = [position]
            position += 1
    return places


def general_key(binding: Binding, values: list[Any]) -> tuple[Any, ...] | None:
    """What general_text makes of these values for a key, or None."""
    key: list[Any] = []
    for parameter, value in zip(binding.parameters, values, strict=True):
        kind = type(value)
        row = ROW_KINDS[parameter.kind]
        if row == tables.IS_ATTRIBUTE:
            if value is not None and kind not in (tuple, int, str, bool, float, dtype):
                return None
            if kind is tuple and any(type(each) is not int for each in value):
                return None
            key += [value, kind]
        elif row == tables.IS_SEQUENCE:
            if not all(isinstance(each, Tensor) for each in value):
                return None  # what is no tensor took the call over
            key += [tuple([each._layout for each in value]), None]
        elif isinstance(value, Tensor):
            if row != tables.IS_TENSOR:
                return None
            key += [value._layout, None]
        elif value is None:
            key += [None, None]
        elif kind is float or (kind is int and -(2**63) <= value < 2**63):
            key += [kind, value if is_special(value, parameter.specials) else None]
        else:
            return None
    try:
        hash(tuple(key))
    except TypeError:
        return None
    return tuple(key)
