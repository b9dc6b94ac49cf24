"""exp, exp2, expm1, log, log2, log10, log1p, pow from the plain words.

Keeps     special values as C's: exact thresholds of overflow, gradual underflow, NaN through.
Touches   parts, coefficients.
Not here  sigmoid and the hyperbolic functions (hyperbolic.py).
Source    x = n log 2 + r, then a minimax polynomial in r; logarithms after fdlibm's e_log.c.
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table
from flambeau.codegen.mathlib import parts
from flambeau.codegen.mathlib.parts import INF, NAN, clamp

LOG2_10: Final = (0.30102999566224753, 1.7336659603752853e-12)  # high part: 37 bits
INVERSE_LN10: Final = (0.4342944819032518, 1.098319650216765e-17)
INVERSE_LN2: Final = (1.4426950408889634, 2.0355273740931033e-17)
LN2_SINGLE: Final = parts.single(parts.LN2)


def _scaled(k: Any, value: Any, shifted: Any) -> Any:
    """value * 2^n, rounded once; n as in parts.two_powers."""
    if k.has_scale:
        return k.scale(value, parts.multiple_of(k, shifted))
    first, second = parts.two_powers(k, shifted)
    return k.mul(k.mul(value, first), second)


def _in_range(k: Any, x: Any, low: float, high: float) -> Any:
    """x moved to where n has its powers. At the low end both are 0: what is far down, -inf above
    all, is then 0 without a product that underflows, for which some CPUs take a hundred cycles."""
    return parts.at_most(k, x, high) if k.has_scale else clamp(k, x, low, high)


def exp_float32(k: Any, x: Any) -> Any:
    """Below -104.5 all is 0, above 89.5 all is inf: the range keeps n inside two powers."""
    x = _in_range(k, x, -176.0, 89.5)
    n, shifted = parts.nearest_multiple(k, x, parts.LOG2E, 254)
    return _scaled(k, parts.exp_reduced_32(k, x, n), shifted)


def exp_float64(k: Any, x: Any) -> Any:
    x = _in_range(k, x, -1418.0, 710.0)
    n, shifted = parts.nearest_multiple(k, x, parts.LOG2E, 2046)
    r = k.fma(n, -parts.LN2_LOW, k.fma(n, -parts.LN2_HIGH, x))
    high, low = parts.two_sum(k, k.constant(1.0, dtypes.float64), r)
    result = k.add(high, parts.exp_curve(k, r, low))
    return _scaled(k, result, shifted)


def exp2_float32(k: Any, x: Any) -> Any:
    x = _in_range(k, x, -254.0, 129.0)
    n, shifted = parts.nearest_multiple(k, x, 1.0, 254)
    f = k.sub(x, n)
    u = k.fma(f, LN2_SINGLE, k.mul(f, parts.horner(k, f, table.EXP2_32)))
    return _scaled(k, k.add(u, 1.0), shifted)


def exp2_float64(k: Any, x: Any) -> Any:
    x = _in_range(k, x, -2046.0, 1025.0)
    n, shifted = parts.nearest_multiple(k, x, 1.0, 2046)
    f = k.sub(x, n)
    u = k.fma(f, parts.LN2, k.mul(f, parts.estrin(k, f, table.EXP2_64)))
    return _scaled(k, k.add(u, 1.0), shifted)


def expm1_float32(k: Any, x: Any) -> Any:
    wide = clamp(k, parts.widened(k, x), -104.0, 90.0)
    return k.copysign(parts.narrowed(k, parts.expm1_light(k, wide)), x)


def expm1_float64(k: Any, x: Any) -> Any:
    """2^n e^r - 1, halved until the end so that it overflows no sooner than it must.

    The sum (2^n - 1) + 2^n r is kept exactly; what follows it in e^r is small beside it."""
    c = clamp(k, x, -44.0, 709.99)
    n, shifted = parts.nearest_multiple(k, c, parts.LOG2E, 1022)
    exact = k.fma(n, -parts.LN2_HIGH, c)
    r, r_low = parts.two_sum(k, exact, k.mul(n, -parts.LN2_LOW))
    curve = parts.exp_curve(k, r, r_low)
    power = parts.power_of_two(k, shifted)
    less = k.sub(power, 0.5)
    lost = k.sub(k.sub(power, less), 0.5)
    high, low = parts.two_sum(k, less, k.mul(power, r))
    half = k.add(high, k.fma(power, curve, k.add(low, lost)))
    return k.select(k.lt(k.abs(x), 2.0**-54), x, k.add(half, half))


def log_float32(k: Any, x: Any) -> Any:
    tiny = k.lt(x, 2.0**-126)
    bits = k.bitcast(k.select(tiny, k.mul(x, 2.0**23), x), dtypes.int32)
    bits = k.sub(bits, parts.ROOT_HALF_BITS_32)
    exponent = k.convert(k.shift_right(bits, 23), dtypes.float32)
    exponent = k.sub(exponent, k.select(tiny, k.constant(23.0, dtypes.float32), 0.0))
    fraction = k.add(k.and_(bits, 0x7FFFFF), parts.ROOT_HALF_BITS_32)
    f = k.sub(k.bitcast(fraction, dtypes.float32), 1.0)
    z = k.mul(f, f)
    cubic = k.mul(k.mul(z, f), parts.horner(k, f, table.LOG_32))
    small = k.fma(z, -0.5, k.fma(exponent, parts.LN2_LOW_32, cubic))
    result = k.fma(exponent, parts.LN2_HIGH_32, k.add(f, small))
    return parts.log_special(k, x, result)


def _log_tail(k: Any, f: Any, extra: Any) -> Any:
    """log(1 + f) + extra for a reduced f, the rounding of f - f^2 / 2 kept small (fdlibm)."""
    s = k.div(f, k.add(f, 2.0))
    z = k.mul(s, s)
    curve = k.mul(z, parts.estrin(k, z, table.LOG_64))
    half_square = k.mul(k.mul(f, f), 0.5)
    tail = k.fma(s, k.add(half_square, curve), extra)
    return k.sub(f, k.sub(half_square, tail))


def _split_any(k: Any, x: Any) -> tuple[Any, Any]:
    """parts.split for denormals too."""
    tiny = k.lt(x, 2.0**-1022)
    exponent, f = parts.split(k, k.select(tiny, k.mul(x, 2.0**54), x))
    return k.sub(exponent, k.select(tiny, k.constant(54.0, dtypes.float64), 0.0)), f


def log_float64(k: Any, x: Any) -> Any:
    exponent, f = _split_any(k, x)
    rest = _log_tail(k, f, k.mul(exponent, parts.LN2_LOW))
    return parts.log_special(k, x, k.fma(exponent, parts.LN2_HIGH, rest))


def log1p_float32(k: Any, x: Any) -> Any:
    wide = parts.widened(k, x)
    result = parts.narrowed(k, parts.log1p_light(k, wide))
    result = k.select(k.lt(x, INF), result, x)
    special = k.select(k.lt(x, -1.0), NAN, k.select(k.eq(x, -1.0), -INF, result))
    return k.select(k.eq(x, 0.0), x, special)


def log1p_float64(k: Any, x: Any) -> Any:
    """log(1 + x): what rounding 1 + x lost goes back in, divided by it."""
    total = k.add(x, 1.0)
    over, under = k.sub(1.0, k.sub(total, x)), k.sub(x, k.sub(total, 1.0))
    lost = k.div(k.select(k.gt(x, 1.0), over, under), total)
    exponent, f = parts.split(k, total)
    rest = _log_tail(k, f, k.fma(exponent, parts.LN2_LOW, lost))
    result = k.fma(exponent, parts.LN2_HIGH, rest)
    result = k.select(k.lt(x, INF), result, x)
    special = k.select(k.lt(x, -1.0), NAN, k.select(k.eq(x, -1.0), -INF, result))
    return k.select(k.eq(x, 0.0), x, special)


def _log_base_float32(k: Any, x: Any, unit: float, inverse: float) -> Any:
    wide = parts.widened(k, x)
    exponent, f = parts.split(k, wide)
    result = k.fma(exponent, unit, k.mul(parts.log1p_small(k, f), inverse))
    return parts.log_special(k, x, parts.narrowed(k, result))


def log2_float32(k: Any, x: Any) -> Any:
    return _log_base_float32(k, x, 1.0, INVERSE_LN2[0])


def log10_float32(k: Any, x: Any) -> Any:
    return _log_base_float32(k, x, LOG2_10[0] + LOG2_10[1], INVERSE_LN10[0])


def _log_base_float64(
    k: Any, x: Any, unit: tuple[float, float], inverse: tuple[float, float]
) -> Any:
    exponent, f = _split_any(k, x)
    high, low = parts.log_pair(k, f)
    product, product_low = parts.two_product(k, high, inverse[0])
    product_low = k.fma(low, inverse[0], k.fma(high, inverse[1], product_low))
    total, total_low = parts.two_sum(k, k.mul(exponent, unit[0]), product)
    if unit[1]:
        product_low = k.fma(exponent, unit[1], product_low)
    return parts.log_special(k, x, k.add(total, k.add(total_low, product_low)))


def log2_float64(k: Any, x: Any) -> Any:
    return _log_base_float64(k, x, (1.0, 0.0), INVERSE_LN2)


def log10_float64(k: Any, x: Any) -> Any:
    return _log_base_float64(k, x, LOG2_10, INVERSE_LN10)


def _pow_special(k: Any, x: Any, y: Any, magnitude: Any) -> Any:
    """Sign and special values of C's pow around |x|^y."""
    whole = k.eq(k.trunc(y), y)
    half = k.mul(y, 0.5)
    odd = k.and_(whole, k.ne(k.trunc(half), half))
    negative = k.lt(k.copysign(k.constant(1.0, k.dtype_of(x)), x), 0.0)
    result = k.select(k.and_(odd, negative), k.neg(magnitude), magnitude)
    finite_negative = k.and_(k.lt(x, 0.0), k.gt(x, -INF))
    result = k.select(k.and_(finite_negative, k.not_(whole)), NAN, result)
    return k.select(k.or_(k.eq(x, 1.0), k.eq(y, 0.0)), 1.0, result)


def _log_of_zero_or_inf(k: Any, magnitude: Any, log: Any) -> Any:
    """log with -inf at 0, inf and NaN passed on."""
    log = k.select(k.lt(magnitude, INF), log, magnitude)
    return k.select(k.eq(magnitude, 0.0), -INF, log)


def pow_float32(k: Any, x: Any, y: Any) -> Any:
    magnitude = k.abs(parts.widened(k, x))
    log = _log_of_zero_or_inf(k, magnitude, parts.log_light(k, magnitude))
    power = clamp(k, parts.widened(k, y), -(2.0**200), 2.0**200)  # 0 * inf must not arise
    product = clamp(k, k.mul(power, log), -120.0, 100.0)
    two_n, u = parts.exp_light(k, product)
    return _pow_special(k, x, y, parts.narrowed(k, k.fma(two_n, u, two_n)))


def pow_float64(k: Any, x: Any, y: Any) -> Any:
    """e^(y log|x|) with log|x| and its product with y as pairs."""
    magnitude = k.abs(x)
    exponent, f = _split_any(k, magnitude)
    log, log_low = parts.log_pair(k, f)
    high, low = parts.two_sum(k, k.mul(exponent, parts.LN2_HIGH), log)
    low = k.add(low, k.fma(exponent, parts.LN2_LOW, log_low))
    high = _log_of_zero_or_inf(k, magnitude, high)
    power = clamp(k, y, -(2.0**970), 2.0**970)  # 0 * inf must not arise
    product, product_low = parts.two_product(k, power, high)
    product_low = k.fma(power, low, product_low)
    inside = clamp(k, product, -750.0, 712.0)
    product_low = k.select(k.eq(inside, product), product_low, 0.0)
    shifted, result, result_low = parts.exp_pair(k, inside, product_low)
    return _pow_special(k, x, y, _scaled(k, k.add(result, result_low), shifted))
