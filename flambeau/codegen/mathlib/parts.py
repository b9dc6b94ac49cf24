"""Pieces that several functions of mathlib share: polynomials, ranges, reduced exp and log.

Keeps     no branch and no trap: lanes of garbage compute garbage. Every fma is written out.
Touches   vocabulary words of the reader it is given; coefficients.
Not here  whole functions (exponential.py and its neighbours).
Source    Muller, Elementary Functions, 3rd ed. (2016), ch. 4, 9, 11; fdlibm's e_log.c.

"Light" pieces run in float64 for results that are rounded to float32: short polynomials, about
32 to 44 good bits. "Pair" pieces give an unevaluated sum high + low with 60 bits or more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table

INF: Final = float("inf")
NAN: Final = float("nan")


def single(value: float) -> float:
    """Nearest float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


LOG2E: Final = 1.4426950408889634
LN2: Final = 0.6931471805599453
LN2_HIGH: Final = float.fromhex("0x1.62e42fefap-1")  # 36 bits: times any exponent is exact
LN2_LOW: Final = float.fromhex("0x1.cf79abc9e3b398p-40")
LN2_HIGH_32: Final = float.fromhex("0x1.62e4p-1")  # 15 bits
LN2_LOW_32: Final = single(1.4286068203094172e-06)
# Adding 1.5 * 2^52 rounds to an integer, whose low bits are then the low bits of the sum.
MAGIC: Final = 1.5 * 2.0**52
MAGIC_32: Final = 1.5 * 2.0**23
ROOT_HALF_BITS: Final = 0x3FE6A09E667F3BCD
ROOT_HALF_BITS_32: Final = 0x3F3504F3
ONE_BITS: Final = 0x3FF0000000000000


def horner(k: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """Polynomial with the fewest words; one chain of fma."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = k.fma(x, total, coefficient)
    return total


def estrin(k: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """Polynomial by pairs, a chain of logarithmic length; the constant term comes last, so that
    what is rounded before it is small beside it."""
    terms: list[Any] = list(coefficients[1:])
    power = x
    while len(terms) > 1:
        paired = [k.fma(power, terms[i + 1], terms[i]) for i in range(0, len(terms) - 1, 2)]
        if len(terms) % 2:
            paired.append(terms[-1])
        terms = paired
        if len(terms) > 1:
            power = k.mul(power, power)
    return k.fma(x, terms[0], coefficients[0])


def at_most(k: Any, x: Any, high: float) -> Any:
    """Smaller of x and high; NaN passes."""
    return k.select(k.gt(x, high), high, x)


def clamp(k: Any, x: Any, low: float, high: float) -> Any:
    """x moved into [low, high]; NaN passes."""
    x = at_most(k, x, high)
    return k.select(k.lt(x, low), low, x)


def two_sum(k: Any, large: Any, small: Any) -> tuple[Any, Any]:
    """Sum and its rounding error; needs |large| >= |small| or large = 0."""
    total = k.add(large, small)
    return total, k.add(k.sub(large, total), small)


def any_sum(k: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Sum and its rounding error, whichever is larger."""
    total = k.add(a, b)
    part = k.sub(total, a)
    return total, k.add(k.sub(a, k.sub(total, part)), k.sub(b, part))


def two_product(k: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Product and its rounding error."""
    product = k.mul(a, b)
    return product, k.fma(a, b, k.neg(product))


def narrowed(k: Any, x: Any) -> Any:
    """float64 result rounded to float32."""
    return k.convert(x, dtypes.float32)


def widened(k: Any, x: Any) -> Any:
    """float32 operand as float64."""
    return k.convert(x, dtypes.float64)


def nearest_multiple(k: Any, x: Any, factor: float, bias: int = 0) -> tuple[Any, Any]:
    """n = rint(x * factor) and the sum whose low bits are n + bias."""
    is_single = k.dtype_of(x) is dtypes.float32
    magic = (MAGIC_32 if is_single else MAGIC) + bias
    shifted = k.fma(x, single(factor) if is_single else factor, magic)
    return k.sub(shifted, magic), shifted


def multiple_of(k: Any, shifted: Any) -> Any:
    """n of a sum made with the bias of two_powers."""
    is_single = k.dtype_of(shifted) is dtypes.float32
    return k.sub(shifted, MAGIC_32 + 254 if is_single else MAGIC + 2046)


def power_of_two(k: Any, shifted: Any) -> Any:
    """2^n as float64 for normal results, of a sum made with bias 1023."""
    bits = k.shift_left(k.bitcast(shifted, dtypes.int64), 52)
    return k.bitcast(bits, dtypes.float64)


def two_powers(k: Any, shifted: Any) -> tuple[Any, Any]:
    """2^(n // 2) and 2^(n - n // 2), of a sum made with bias 254 (float32) or 2046.

    Multiplied one after the other they round once, into denormals and infinity alike."""
    is_single = k.dtype_of(shifted) is dtypes.float32
    kind, integer, width = (
        (dtypes.float32, dtypes.int32, 23) if is_single else (dtypes.float64, dtypes.int64, 52)
    )
    bits = k.bitcast(shifted, integer)
    half = k.shift_right_logical(bits, 1)
    rest = k.sub(bits, half)
    first, second = k.shift_left(half, width), k.shift_left(rest, width)
    return k.bitcast(first, kind), k.bitcast(second, kind)


def reduced_32(k: Any, x: Any, n: Any) -> Any:
    """x - n log 2, float32."""
    return k.fma(n, -LN2_LOW_32, k.fma(n, -LN2_HIGH_32, x))


def exp_reduced_32(k: Any, x: Any, n: Any) -> Any:
    """e^(x - n log 2), float32. The last steps are 1 + r (1 + r p): each rounding is small
    beside the next."""
    return horner(k, reduced_32(k, x, n), (1.0, 1.0, *table.EXP_32))


def exp_light(k: Any, x: Any, scale: float = 1.0) -> tuple[Any, Any]:
    """(2^n, u) with e^(scale x) = 2^n (1 + u), 32 good bits in u; float64, |n| < 1023.

    `scale` is plus or minus a power of two; it costs nothing."""
    n, shifted = nearest_multiple(k, x, LOG2E * scale, 1023)
    r = k.fma(n, -LN2 / scale, x)
    scaled = [c * scale ** (i + 1) for i, c in enumerate(table.EXP_LIGHT)]
    return power_of_two(k, shifted), k.mul(r, horner(k, r, scaled))


def expm1_light(k: Any, x: Any, scale: float = 1.0) -> Any:
    """e^(scale x) - 1 with 31 good bits, relative even near 0."""
    power, u = exp_light(k, x, scale)
    return k.fma(power, u, k.sub(power, 1.0))


def exp_curve(k: Any, r: Any, extra: Any = None) -> Any:
    """e^r - 1 - r (+ extra) for a reduced r, float64; r^2 / 2 is rounded apart."""
    square = k.mul(r, r)
    cube = k.mul(square, r)
    curve = estrin(k, r, table.EXP_64)
    rest = k.mul(cube, curve) if extra is None else k.fma(cube, curve, extra)
    return k.fma(square, 0.5, rest)


def exp_pair(k: Any, x: Any, x_low: Any = None, bias: int = 2046) -> tuple[Any, Any, Any]:
    """(shifted, high, low): e^(x + x_low) = 2^n (high + low), float64; see two_powers.

    One less in the bias halves the powers."""
    n, shifted = nearest_multiple(k, x, LOG2E, bias)
    exact = k.fma(n, -LN2_HIGH, x)
    r, r_low = two_sum(k, exact, k.mul(n, -LN2_LOW))
    if x_low is not None:
        r_low = k.add(r_low, x_low)
    u, u_low = two_sum(k, r, exp_curve(k, r))
    high, low = two_sum(k, k.constant(1.0, dtypes.float64), u)
    return shifted, high, k.fma(r_low, high, k.add(low, u_low))


def split(k: Any, x: Any) -> tuple[Any, Any]:
    """(e, f) with x = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1); x float64, normal, > 0."""
    bits = k.add(k.bitcast(x, dtypes.int64), ONE_BITS - ROOT_HALF_BITS)
    biased = k.or_(k.shift_right_logical(bits, 52), 0x4330000000000000)
    exponent = k.sub(k.bitcast(biased, dtypes.float64), 2.0**52 + 1023)
    fraction = k.add(k.and_(bits, 0xFFFFFFFFFFFFF), ROOT_HALF_BITS)
    return exponent, k.sub(k.bitcast(fraction, dtypes.float64), 1.0)


def log1p_small(k: Any, f: Any) -> Any:
    """log(1 + f) for a reduced f, 44 good bits, float64."""
    s = k.div(f, k.add(f, 2.0))
    z = k.mul(s, s)
    tail = k.mul(z, horner(k, z, table.LOG_LIGHT))
    return k.fma(s, tail, k.add(s, s))


def log_light(k: Any, x: Any) -> Any:
    """log x with 44 good bits, relative even near 1; x float64, normal, > 0."""
    exponent, f = split(k, x)
    return k.fma(exponent, LN2, log1p_small(k, f))


def log1p_light(k: Any, x: Any) -> Any:
    """log(1 + x) for x > -1 that came from float32: the part of x lost in 1 + x is put back."""
    total = k.add(x, 1.0)
    return k.add(log_light(k, total), k.sub(x, k.sub(total, 1.0)))


def log_pair(k: Any, f: Any) -> tuple[Any, Any]:
    """log(1 + f) of a reduced f as high + low, about 65 good bits, float64.

    s = f / (2 + f) as a pair, log(1 + f) = 2 s + s z (2/3 + z W(z)), z = s^2."""
    divisor = k.add(f, 2.0)
    divisor_low = k.sub(f, k.sub(divisor, 2.0))
    inverse = k.div(1.0, divisor)
    s = k.mul(f, inverse)
    s_low = k.mul(k.fma(k.neg(s), divisor_low, k.fma(k.neg(s), divisor, f)), inverse)
    twice = k.add(s, s)
    z, z_low = two_product(k, s, s)
    z_low = k.fma(twice, s_low, z_low)
    two_thirds = k.constant(2 / 3, dtypes.float64)
    c, c_low = two_sum(k, two_thirds, k.mul(z, estrin(k, z, table.LOG_WIDE)))
    c_low = k.add(c_low, 3.700743415417188e-17)  # 2/3 - float64(2/3)
    t, t_low = two_product(k, z, c)
    t_low = k.add(k.fma(z, c_low, k.mul(z_low, c)), t_low)
    g, g_low = two_product(k, s, t)
    g_low = k.add(k.fma(s, t_low, k.mul(s_low, t)), g_low)
    high, low = two_sum(k, twice, g)
    return high, k.add(low, k.fma(s_low, 2.0, g_low))


def log_special(k: Any, x: Any, result: Any) -> Any:
    """Result of a logarithm with inf and NaN passed on, -inf at 0, NaN below."""
    result = k.select(k.lt(x, INF), result, x)
    return k.select(k.eq(x, 0.0), -INF, k.select(k.lt(x, 0.0), NAN, result))
