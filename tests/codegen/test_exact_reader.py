"""The oracle itself: exact words, one rounding, C's special values, distances in ulp."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from flambeau.base import dtypes
from flambeau.codegen.exact_reader import exact_value, fraction_of, rounded, ulp_error
from flambeau.codegen.vocabulary import MATH_WORDS

F32, F64 = dtypes.float32, dtypes.float64
INF, NAN = math.inf, math.nan


def value(word, *operands, of=F64):
    return exact_value(lambda k, *each: getattr(k, word)(*each), of, operands)


def test_nothing_is_rounded_between_words():
    real = exact_value(lambda k, x: k.sub(k.add(x, 2.0**-80), x), F32, [1.0])
    assert fraction_of(real) == Fraction(1, 2**80)
    assert rounded(exact_value(lambda k, x: k.mul(x, k.div(1.0, x)), F64, [49.0]), F64) == 1.0


def test_literals_are_rounded_to_their_dtype_once():
    assert fraction_of(exact_value(lambda k, x: k.add(x, 0.1), F32, [0.0])) == Fraction(
        13421773, 2**27
    )


@pytest.mark.parametrize(
    ("exact", "of", "nearest"),
    [
        (Fraction(1) + Fraction(1, 2**24), F32, 1.0),  # halves to even
        (Fraction(1) + Fraction(3, 2**24), F32, 1 + 2.0**-22),
        (Fraction(2) ** -150, F32, 0.0),
        (Fraction(3, 2) * Fraction(2) ** -149, F32, 2.0**-148),
        (Fraction(2) ** 128 - Fraction(2) ** 103, F32, INF),
        (-(Fraction(2) ** 1024), F64, -INF),
    ],
)
def test_rounding(exact, of, nearest):
    import mpmath

    with mpmath.workprec(2000):
        number = mpmath.mpf(exact.numerator) / exact.denominator
    assert rounded(number, of) == nearest


def test_ulp_error():
    third = value("div", 1.0, 3.0)
    assert ulp_error(1 / 3, third, F64) == pytest.approx(1 / 3, abs=1e-9)
    assert ulp_error(math.nextafter(1 / 3, 1), third, F64) == pytest.approx(2 / 3, abs=1e-9)
    assert ulp_error(NAN, NAN, F64) == ulp_error(INF, INF, F64) == 0
    assert ulp_error(NAN, third, F64) == ulp_error(0.1, NAN, F64) == INF
    assert ulp_error(INF, third, F64) == ulp_error(-INF, INF, F64) == INF
    assert ulp_error(0.0, -0.0, F64) == INF
    assert ulp_error(5e-324, value("mul", 1e-200, 1e-200), F64) <= 1


def same(measured, expected):
    return (measured == expected and math.copysign(1, measured) == math.copysign(1, expected)) or (
        measured != measured and expected != expected
    )


@pytest.mark.parametrize("word", [w for w in MATH_WORDS if hasattr(math, w)])
def test_special_values_agree_with_c(word):
    """Python's math calls C and raises where C gives NaN or infinity."""
    function = getattr(math, word)
    for x in (0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 0.5, 1e300):
        operands = (x, 2.5) if word in ("pow", "atan2", "fmod") else (x,)
        try:
            expected = function(*operands)
        except (ValueError, OverflowError):
            assert not math.isfinite(rounded(value(word, *operands), F64))
            continue
        measured = rounded(value(word, *operands), F64)
        close = math.isfinite(expected) and measured == pytest.approx(expected, rel=1e-15)
        assert close or same(measured, expected), (x, measured, expected)


def test_numbers_beyond_memory_are_answered():
    assert value("exp", 1e300) == INF
    assert value("exp", -1e300) == 0
    assert value("pow", -1e300, 1e15 + 1) == -INF
    assert value("erfc", 1e300) == 0


def test_integer_words_wrap_and_shift():
    largest = 2**31 - 1
    assert value("add", largest, 1, of=dtypes.int32) == -(2**31)
    assert value("quotient", -7, 2, of=dtypes.int32) == -3
    assert value("modulo", -7, 2, of=dtypes.int32) == -1
    assert value("quotient", 7, 0, of=dtypes.int32) == 0
    assert value("quotient", -(2**31), -1, of=dtypes.int32) == -(2**31)
    assert value("shift_right_logical", -1, 28, of=dtypes.int32) == 15
    assert value("shift_left", 1, 40, of=dtypes.int32) == 0
    assert value("shift_right", -8, 99, of=dtypes.int32) == -1


def test_conversions_and_bits():
    def bits(k, x):
        return k.bitcast(x, dtypes.int32)

    assert exact_value(bits, F32, [1.0]) == 0x3F800000
    assert exact_value(lambda k, x: k.convert(x, dtypes.int32), F64, [-2.9]) == -2
    assert exact_value(lambda k, x: k.convert(x, dtypes.int64), F64, [NAN]) == -(2**63)
    assert exact_value(lambda k, x: k.convert(x, dtypes.int32), F64, [1e300]) == -(2**31)
    assert exact_value(lambda k, x: k.convert(x, dtypes.int16), F64, [2.0**31 + 5]) == 0
    assert exact_value(lambda k, x: k.convert(x, dtypes.uint8), F64, [2.0**31 + 5]) == 5
    narrowed = exact_value(lambda k, x: k.convert(x, F32), F64, [0.1])
    assert fraction_of(narrowed) == Fraction(13421773, 2**27)


def test_min_and_max_order_zeros_and_pass_nan():
    assert same(value("min", 0.0, -0.0), -0.0)
    assert same(value("max", -0.0, 0.0), 0.0)
    assert same(value("max", NAN, 1.0), NAN)
