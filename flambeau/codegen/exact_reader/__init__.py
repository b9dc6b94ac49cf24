"""Exact reader: what a formula would be in real arithmetic, to measure every other reader by.

Keeps     plain words are exact to DIGITS digits and math words are mpmath's own functions, never
          mathlib's formulas; a result is rounded once, to nearest even. NaN, infinities and the
          sign of zero follow C. Integer words, comparisons, rint and conversions mean what
          vocabulary.py says.
Touches   mpmath, imported at first use; vocabulary.
Not here  tolerances: tests state them, in ulp.

Numbers stay Python floats while a word is exact on them anyway (signs, selects, infinities), and
become mpmath's otherwise; integers are Python ints, wrapped to their width.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.exact_reader import functions
from flambeau.codegen.vocabulary import MATH_WORDS, THROUGH_INT64, Vocabulary

DIGITS: Final = 60
_LEAST_EXPONENT: Final = {dtypes.float32: -149, dtypes.float64: -1074}
_PRECISION: Final = {dtypes.float32: 24, dtypes.float64: 53}


class Exact:
    """A value and its dtype: float or mpmath number, int, or bool."""

    __slots__ = ("dtype", "value")

    def __init__(self, value: Any, of: dtype) -> None:
        self.value = value
        self.dtype = of


class ExactReader(Vocabulary):
    """Evaluates words on Exact operands."""

    def dtype_of(self, operand: Any) -> dtype:
        return operand.dtype

    def apply(
        self, word: str, arguments: tuple[Any, ...], result: dtype, value: Any = None
    ) -> Exact:
        if word == "constant":
            return Exact(rounded(value, result) if result.is_floating_point else value, result)
        if word == "convert":
            return Exact(_converted(arguments[0], result), result)
        if word == "bitcast":
            return Exact(_bitcast(arguments[0], result), result)
        values = [each.value for each in arguments]
        if word == "select":
            return Exact(values[1] if values[0] else values[2], result)
        of = arguments[0].dtype
        if word in MATH_WORDS or of.is_floating_point:
            return Exact(functions.evaluate(word, values, DIGITS), result)
        return Exact(_wrapped(_integer(word, values, of), result), result)


def exact_value(formula: Callable[..., Any], of: dtype, operands: Sequence[Any]) -> Any:
    """What `formula(k, *operands)` is in real arithmetic for operands of dtype `of`: a float,
    int or bool where that says it all, else an mpmath number with DIGITS digits.

    >>> exact_value(lambda k, x: k.sub(k.exp(x), 1.0), dtypes.float32, [0.0])
    0.0
    """
    reader = ExactReader()
    result = formula(reader, *(Exact(each, of) for each in operands))
    return result.value


def rounded(value: Any, of: dtype) -> float:
    """Nearest number of dtype `of` (float32 or float64), halves to even, as a Python float."""
    if isinstance(value, float) and (of is dtypes.float64 or not math.isfinite(value)):
        return value
    exact = fraction_of(value)
    if exact == 0:
        return math.copysign(0.0, value) if isinstance(value, float) else 0.0
    unit = Fraction(2) ** last_place(exact, of)
    steps = round(exact / unit)  # Python's round of a Fraction goes to even
    nearest = steps * unit
    limit = Fraction(2) ** (128 if of is dtypes.float32 else 1024)
    if abs(nearest) >= limit:
        return math.inf if exact > 0 else -math.inf
    return float(nearest) if nearest or exact > 0 else -0.0


def fraction_of(value: Any) -> Fraction:
    """A finite float, int or mpmath number as a Fraction, exactly."""
    if isinstance(value, (int, float)):
        return Fraction(value)
    sign, mantissa, exponent, _ = value._mpf_
    size: Fraction = int(mantissa) * Fraction(2) ** int(exponent)
    return -size if sign else size


def last_place(value: Fraction, of: dtype) -> int:
    """Exponent of the last place of numbers of dtype `of` beside `value`."""
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    return max(exponent + 1 - _PRECISION[of], _LEAST_EXPONENT[of])


def ulp_error(measured: float, exact: Any, of: dtype) -> float:
    """Distance in units in the last place of the exact value; inf where one is NaN, or infinite
    after rounding, or zero of the wrong sign, and the other is not."""
    nearest = rounded(exact, of)
    if math.isnan(nearest) or math.isnan(measured):
        return 0.0 if math.isnan(nearest) and math.isnan(measured) else math.inf
    if math.isinf(nearest) or math.isinf(measured):
        return 0.0 if nearest == measured else math.inf
    if isinstance(exact, float) and exact == 0.0 and measured == 0.0:
        return 0.0 if math.copysign(1, exact) == math.copysign(1, measured) else math.inf
    target = fraction_of(exact)
    unit = Fraction(2) ** (last_place(target, of) if target else _LEAST_EXPONENT[of])
    distance = abs(Fraction(measured) - target) / unit
    return float(distance) if distance < 2**1000 else math.inf


def _converted(operand: Exact, result: dtype) -> Any:
    value = operand.value
    if result is dtypes.bool_:
        return value != 0
    if result.is_floating_point:
        return rounded(value, result) if result in _PRECISION else value
    if operand.dtype.is_floating_point:
        finite = math.isfinite(value) if isinstance(value, float) else True
        through = 64 if result in THROUGH_INT64 else 32
        smallest = -(1 << (through - 1))
        value = math.trunc(fraction_of(value)) if finite else smallest
        end = 2**64 if result is dtypes.uint64 else -smallest
        if not smallest <= value < end:
            value = smallest
    return _wrapped(int(value), result)


def _bitcast(operand: Exact, result: dtype) -> Any:
    value = operand.value
    if operand.dtype.is_floating_point:
        value = rounded(value, operand.dtype)
    packed = struct.pack("<" + operand.dtype.format, value)
    return struct.unpack("<" + result.format, packed)[0]


def _wrapped(value: Any, of: dtype) -> Any:
    if of is dtypes.bool_:
        return bool(value)
    low = value & ((1 << of.n_bits) - 1)
    return low - (1 << of.n_bits) if of.is_signed and low >> (of.n_bits - 1) else low


def _integer(word: str, values: list[Any], of: dtype) -> Any:
    a: Any = values[0]
    b: Any = values[1] if len(values) > 1 else 0
    if word in ("shift_left", "shift_right", "shift_right_logical"):
        inside = 0 <= b < of.n_bits
        if word == "shift_left":
            return a << b if inside else 0
        if word == "shift_right":
            return a >> (b if inside else of.n_bits - 1) if of.is_signed or inside else 0
        return (a & ((1 << of.n_bits) - 1)) >> b if inside else 0
    if word in ("quotient", "modulo"):
        if b == 0:
            return 0
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if word == "quotient" else a - quotient * b
    return _INTEGER_WORDS[word](a, b)


_INTEGER_WORDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "neg": lambda a, b: -a, "abs": lambda a, b: abs(a),
    "min": lambda a, b: min(a, b), "max": lambda a, b: max(a, b),
    "and_": lambda a, b: a & b, "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "not_": lambda a, b: not a if isinstance(a, bool) else ~a,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "isnan": lambda a, b: False,
}  # fmt: skip
