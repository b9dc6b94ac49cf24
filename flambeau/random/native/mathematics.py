"""log, exp, sin, cos and tan in float64, within 0.54 ulp, scalar or four lanes alike.

Keeps     closed formulas over + - * / fma and bits: the same bits on every machine. Each result is
          a double plus a correction that is added last, which is what leaves hardly more than the
          error of that addition; callers that go on computing may take both parts.
Touches   writer.py.
Not here  float32's Cephes polynomials (normal.py): those follow torch bit by bit instead.
Source    Reductions and minimax coefficients of fdlibm (Sun Microsystems, 1993)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from flambeau.random.native.writer import Function, Value, like

Pair = tuple[Value, Value]  # a value and its correction

_SQRT_HALF_BITS: Final = 0x3FE6A09E667F3BCD
_ONE_BITS: Final = 0x3FF0000000000000
_MANTISSA: Final = 0x000FFFFFFFFFFFFF
_TWO_52: Final = 2.0**52
_TWO_52_BITS: Final = 0x4330000000000000
_ROUNDER: Final = 1.5 * 2.0**52  # adding it leaves an integer in the low bits of the mantissa
# The high part ends in 32 zero bits: its product with an exponent is exact.
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_LOG2_E: Final = 1.44269504088896338700e00
# pi / 2 cut after 40 binary places, then after 41 more: products with small integers are exact.
_HALF_PI: Final = (
    float.fromhex("0x1.921fb54442000p+0"),
    float.fromhex("0x1.a308d31319000p-41"),
    float.fromhex("0x1.145c06e0e6895p-82"),
)
_LOG: Final = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
    1.479819860511658591e-01,
)  # fmt: skip
# Taylor's: fdlibm's shorter polynomials leave 2^-58, which would show in 1 % of the last bits.
_SIN: Final = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 9))
_COS: Final = tuple((-1) ** n / math.factorial(2 * n) for n in range(2, 10))
_SIXTH_LOW: Final = -9.25185853854297066e-18  # -1/6 - _SIN[0]
_EXP: Final = tuple(1 / math.factorial(n) for n in range(3, 15))


def polynomial(f: Function, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme, lowest power first, each step fused."""
    total = f.constant(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = f.fma(total, x, coefficient)
    return total


def log_pair(f: Function, x: Value) -> Pair:
    """Logarithm of a positive normal number, 2 atanh(f / (2 + f)) after taking out 2^k."""
    bits = x.bits_as(like(x.type, "i64")) + (_ONE_BITS - _SQRT_HALF_BITS)
    k = ((bits >> 52) | _TWO_52_BITS).bits_as(x.type) - (_TWO_52 + 1023.0)
    m = ((bits & _MANTISSA) + _SQRT_HALF_BITS).bits_as(x.type)
    part = m - 1.0
    divisor = part + 2.0
    divisor_low = part - (divisor - 2.0)
    s = part / divisor
    s_low = (f.fma(-s, divisor, part) - s * divisor_low) / divisor
    z = s * s
    rest = f.fma(k, _LN2_LOW, f.fma(s * z, polynomial(f, z, _LOG), s_low + s_low))
    whole, double = k * _LN2_HIGH, s + s
    high = whole + double
    return high, (double - (high - whole)) + rest


def log(f: Function, x: Value) -> Value:
    """Logarithm of a positive normal number or zero."""
    high, low = log_pair(f, x)
    return x.equal(0.0).choose(float("-inf"), high + low)


def log1p(f: Function, x: Value) -> Value:
    """log(1 + x) for x > -1: what 1 + x loses comes back as a first-order term."""
    total = x + 1.0
    lost = x - (total - 1.0)
    high, low = log_pair(f, total)
    return high + (low + lost / total)


def log1p_of_negative(f: Function, u: Value) -> Value:
    """log1p(-u) for u = 0 .. 1 - 2^-53, a multiple of 2^-53, step by step as fdlibm has it.

    Off by up to 0.9 ulp, but so are the C libraries torch calls, in the same places: with a better
    logarithm 6 % of float64 exponentials differed from torch's, with this one 0.1 %.
    """
    integer = like(u.type, "i64")
    rest = 1.0 - u  # exact
    word = u.bits_as(integer) >> 32
    keeps = word < 0x3FD2BEC4  # u < 0.2929: no power of two is taken out
    bits = rest.bits_as(integer)
    mantissa = (bits >> 32) & 0xFFFFF
    is_low = mantissa < 0x6A09E
    scaled = (bits & _MANTISSA) | is_low.choose(
        f.constant(integer, _ONE_BITS), f.constant(integer, 0x3FE0000000000000)
    )
    part = keeps.choose(-u, scaled.bits_as(u.type) - 1.0)
    exponent = ((bits >> 52) | _TWO_52_BITS).bits_as(u.type) - (_TWO_52 + 1023.0)
    exponent = is_low.choose(exponent, exponent + 1.0)
    exponent = keeps.choose(0.0, exponent)
    half_square = part * 0.5 * part
    s = part / (part + 2.0)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    pairs = [z * _LOG[i + 1] + _LOG[i] for i in (1, 3, 5)]
    series = z * _LOG[0] + z2 * pairs[0] + z4 * pairs[1] + (z4 * z2) * pairs[2]
    low = exponent * _LN2_LOW
    inner = half_square - (s * (half_square + series) + low)
    # |part| < 2^-20 after a power of two was taken out: two terms of the series are enough.
    near_one = (mantissa.equal(0) | (mantissa > 0xFFFFC)) & (word > 0x3FD2BEC3)
    short = half_square * (1.0 - part * 0.66666666666666666)
    inner = near_one.choose(short - low, inner)
    result = exponent * _LN2_HIGH - (inner - part)
    return (word < 0x3E200000).choose(-u - u * u * 0.5, result)


def exp(f: Function, x: Value, low: Value | None = None) -> Value:
    """e to the power x + low; overflows to infinity and underflows to zero."""
    x = (x < -760.0).choose(-760.0, x)
    x = (x > 720.0).choose(720.0, x)
    shifted = f.fma(x, _LOG2_E, _ROUNDER)
    k = shifted - _ROUNDER
    reduced = f.fma(-k, _LN2_HIGH, x)
    taken = k * _LN2_LOW
    r = reduced - taken
    r_low = (reduced - r) - taken
    if low is not None:
        r_low = r_low + low
    square = r * r
    half = square * 0.5
    half_low = f.fma(r, r, -square) * 0.5
    first = r + 1.0
    high = first + half
    lost = (r - (first - 1.0)) + (half - (high - first))
    rest = f.fma(square * r, polynomial(f, r, _EXP), half_low + lost)
    rest = f.fma(r_low, high + rest, rest)
    # 2^k in two factors, so that neither overflows where the result does not.
    integer = like(x.type, "i64")
    half_power = f.fma(k, 0.5, _ROUNDER)
    other = k - (half_power - _ROUNDER) + _ROUNDER
    powers = [
        ((each.bits_as(integer) + 1023) << 52).bits_as(x.type) for each in (half_power, other)
    ]
    return (high + rest) * powers[0] * powers[1]


def power(f: Function, base: Value, exponent: Value) -> Value:
    """base ** exponent for a positive normal base."""
    whole, rest = log_pair(f, base)
    high = whole + rest
    low = rest - (high - whole)
    product = high * exponent
    lost = f.fma(high, exponent, -product)
    return exp(f, product, f.fma(low, exponent, lost))


def sine_cosine_pairs(f: Function, angle: Value) -> tuple[Pair, Pair]:
    """Sine and cosine of an angle within a few turns."""
    shifted = f.fma(angle, 0.63661977236758134308, _ROUNDER)
    j = shifted - _ROUNDER
    quadrant = shifted.bits_as(like(angle.type, "i64"))
    first = f.fma(-j, _HALF_PI[0], angle)
    taken = j * _HALF_PI[1]
    r = first - taken
    back = r - first
    r_low = f.fma(-j, _HALF_PI[2], (first - (r - back)) - (taken + back))
    z = r * r
    square_low = f.fma(r, r, -z)
    half = z * 0.5
    # The next terms are large enough for their rounding to show: they are carried exactly.
    cube = r * z
    cube_low = f.fma(r, square_low, f.fma(r, z, -cube))
    term = cube * _SIN[0]
    term_low = cube * _SIXTH_LOW + f.fma(cube_low, _SIN[0], f.fma(cube, _SIN[0], -term))
    sine_high = r + term
    small = f.fma(cube * z, polynomial(f, z, _SIN[1:]), f.fma(-half, r_low, r_low) + term_low)
    sine: Pair = sine_high, (term - (sine_high - r)) + small
    whole = 1.0 - half
    fourth = z * z
    fourth_low = f.fma(z + z, square_low, f.fma(z, z, -fourth))
    term = fourth * _COS[0]
    term_low = f.fma(fourth_low, _COS[0], f.fma(fourth, _COS[0], -term))
    cosine_high = whole + term
    small = f.fma(fourth * z, polynomial(f, z, _COS[1:]), f.fma(-r, r_low, term_low))
    small = f.fma(square_low, -0.5, (term - (cosine_high - whole)) + small)
    cosine: Pair = cosine_high, ((1.0 - whole) - half) + small
    swaps = (quadrant & 1).differs(0)
    sine_negative = (quadrant & 2).differs(0)
    cosine_negative = ((quadrant + 1) & 2).differs(0)
    return (
        _signed(sine_negative, swaps, cosine, sine),
        _signed(cosine_negative, swaps, sine, cosine),
    )


def _signed(negative: Value, swaps: Value, swapped: Pair, kept: Pair) -> Pair:
    high, low = (swaps.choose(s, k) for s, k in zip(swapped, kept, strict=True))
    return negative.choose(-high, high), negative.choose(-low, low)


def tangent(f: Function, angle: Value) -> Value:
    """Tangent of an angle within a few turns."""
    (n_high, n_low), (d_high, d_low) = sine_cosine_pairs(f, angle)
    n, d = n_high + n_low, d_high + d_low
    n_rest, d_rest = n_low - (n - n_high), d_low - (d - d_high)
    quotient = n / d
    missing = f.fma(-quotient, d_rest, f.fma(-quotient, d, n) + n_rest)
    return quotient + missing / d


def polar(f: Function, radius: Value, angle: Value) -> Pair:
    """radius * cos(angle), radius * sin(angle), cosine and sine rounded first."""
    sine, cosine = sine_cosine_pairs(f, angle)
    return radius * (cosine[0] + cosine[1]), radius * (sine[0] + sine[1])
