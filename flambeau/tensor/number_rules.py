"""Python numbers as operands: what counts as one, and which a dtype can hold.

Keeps     torch's rule: a fill value outside the range of the dtype is an error, except that
          unsigned types take negative numbers by wrapping.
Touches   base.dtypes.
Not here  promotion of numbers beside tensors (base/promotion.py)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.promotion import HELD_NAMES
from flambeau.tensor.arguments import named_type
from flambeau.tensor.arguments.python_data import is_numpy_scalar
from flambeau.tensor.tensor import Tensor

_EXACT: Final = (int, float, bool, complex)
# Operators whose number becomes an element: it has to be one that the dtype can hold.
FILLS: Final = frozenset(
    ("clamp", "clamp_max", "clamp_min", "constant_pad_nd", "fill", "index_fill", "masked_fill",
     "pow", "scatter", "where")
)  # fmt: skip
# Dtypes that hold every number a record can carry, but for a few beyond float32.
_WIDE: Final = (dtypes.float32, dtypes.float64)


def may_overflow(name: str, element: dtype) -> bool:
    """Whether a call may be one that check_holds refuses for its number alone."""
    if name == "pow":
        return element.category < 2 or element is dtypes.float16
    return name in FILLS and element not in _WIDE


def is_special(value: Any, specials: tuple[float, ...]) -> bool:
    """Whether signatures name a number, which must be one of these; -0.0 is not 0."""
    if value not in specials or isinstance(value, bool):
        return False
    return value != 0 or math.copysign(1.0, value.real) > 0


def number(value: Any, name: str, argument: str, position: int) -> Any:
    """`value` as a Python number. Raises torch's TypeError where it is none."""
    if value.__class__ in _EXACT:
        return value
    if isinstance(value, Tensor):
        if value._layout.shape == ():
            return value.item()
    elif is_number(value):
        return plain_number(value)
    raise TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Number, not "
        f"{named_type(value)}"
    )


def is_number(value: Any) -> bool:
    """Whether torch takes it for a number: Python's and NumPy's, no array."""
    return isinstance(value, (int, float, complex)) or is_numpy_scalar(value)


def plain_number(value: Any) -> Any:
    """A number as Python's: NumPy's integers as int, its bools and all others as float, as torch
    reads them."""
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    return value.__index__() if hasattr(value, "__index__") else float(value)


def integer(value: Any, name: str, argument: str, position: int) -> int:
    """`value` as an int. Raises torch's TypeError where it is none."""
    if value.__class__ is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be int, not "
            f"{type(value).__name__}"
        )
    return value.__index__()


def wide_integer(value: int, name: str, layouts: Iterable[Any], becomes_float: bool) -> int | float:
    """An integer beyond 64 bits with a sign as operators beside these tensors take it: rounded by
    floating ones, by its low bits by integers. torch's errors where neither will do."""
    if not 0 <= value < 2**64:
        raise OverflowError(
            helped(
                "int too big to convert",
                given=str(value),
                expected="64 bits",
                fix=f"float({value}), where a rounded number will do",
            )
        )
    elements = [each.dtype for each in layouts]
    if becomes_float or any(each.category > 1 for each in elements):
        return float(value)
    integers = [each for each in elements if each.category == 1]
    if dtypes.uint64 in integers:
        return value - 2**64
    if name in FILLS and integers:
        raise _overflow(value, integers[0])
    if name in FILLS and elements:
        return True
    if not integers:
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            "Bool and UInt64"
        )
    return value - 2**64


def check_holds(value: Any, element: dtype) -> None:
    """Raise torch's RuntimeError where a dtype cannot hold a number."""
    if value.__class__ is int and -128 <= value <= 127:
        return
    if element.category == 0:
        return
    if value.__class__ is complex:
        if element.is_complex:
            return
        if value.imag:
            raise _overflow(value, element)
        value = value.real
    if element.category == 1:
        low = -(1 << (element.n_bits - 1)) if element.is_signed else -(1 << element.n_bits) + 1
        high = (1 << (element.n_bits - (1 if element.is_signed else 0))) - 1
        if value.__class__ is float:
            if not math.isfinite(value):
                raise _overflow(value, element)
            low = low if element.is_signed else 0  # only whole numbers wrap
        if not low <= value <= high:
            raise _overflow(value, element)
        return
    if element in dtypes.EIGHT_BITS and math.isinf(value):
        raise _overflow(value, element)
    held = element.to_real()
    if held is dtypes.float64 or value.__class__ is bool or not math.isfinite(value):
        return
    if abs(value) > dtypes.FLOAT_FACTS[held][1]:
        raise _overflow(value, element)


def check_numbers(name: str, values: Iterable[Any], element: dtype) -> None:
    """check_holds of the numbers of a call; a choice makes narrow floats infinite instead."""
    if name == "pow":
        _, exponent = values
        if element.category < 2 and exponent.__class__ is int and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if exponent.__class__ is int and (element.category == 1 or element is dtypes.float16):
            check_holds(exponent, element)
        return
    if name == "where" and element.is_floating_point and element is not dtypes.float32:
        return
    for value in values:
        check_holds(float(value) if name == "constant_pad_nd" else value, element)


def _overflow(value: Any, element: dtype) -> RuntimeError:
    return RuntimeError(
        helped(
            f"value cannot be converted to type {HELD_NAMES[element.name]} without overflow",
            given=f"{value} for {element}",
        )
    )


def held_number(value: Any, element: dtype) -> Any:
    """A number as a record carries it for a dtype that need not be floating: ints for integers,
    by their 64 bits read with a sign."""
    if value.__class__ is int and not -(2**63) <= value < 2**63 and element.category != 1:
        value = float(wide_integer(value, "fill", (), True))
    check_holds(value, element)
    if element.category == 0:
        return bool(value)
    if value.__class__ is complex and not element.is_complex:
        value = value.real
    if element.category == 1 and value.__class__ is float:
        value = int(value)
    if element is dtypes.uint64 and value >= 2**63:
        value -= 2**64
    return value
