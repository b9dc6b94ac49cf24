"""sigmoid, tanh, sinh, cosh, asinh, acosh, atanh from the plain words.

Keeps     odd functions keep the sign of zero; float32 results come from float64 arithmetic, those
          of sigmoid and tanh from float32.
Touches   parts, coefficients, exponential.
Not here  exp and log themselves.
Source    e^x - 1 carried as a sum high + low, one division, its remainder put back.
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table
from flambeau.codegen.mathlib import exponential, parts
from flambeau.codegen.mathlib.parts import INF, NAN, at_most, clamp

# Up to here tanh is a polynomial in float32.
TANH_BORDER: Final = 1.0


def sigmoid_float32(k: Any, x: Any) -> Any:
    """1 / (1 + e) with e = e^-x = 2^n (high + low); far down all of it times 2^-40 and back, as e
    has no float32 there."""
    x = clamp(k, x, -106.0, 40.0)
    far = k.lt(x, -80.0)
    unit = k.select(far, 2.0**-40, k.constant(1.0, dtypes.float32))
    n, shifted = parts.nearest_multiple(k, x, -parts.LOG2E, 127)
    r = parts.reduced_32(k, k.neg(x), n)
    curve = k.mul(k.mul(r, r), parts.horner(k, r, table.EXP_32))
    high, low = parts.two_sum(k, k.constant(1.0, dtypes.float32), k.add(r, curve))
    bits = k.sub(k.bitcast(shifted, dtypes.int32), k.select(far, k.constant(40, dtypes.int32), 0))
    power = k.bitcast(k.shift_left(bits, 23), dtypes.float32)
    divisor, divisor_low = parts.any_sum(k, unit, k.mul(power, high))
    divisor_low = k.fma(power, low, divisor_low)
    inverse = k.div(1.0, divisor)
    rest = k.fma(k.neg(inverse), divisor_low, k.fma(k.neg(inverse), divisor, 1.0))
    return k.mul(k.fma(rest, inverse, inverse), unit)


def sigmoid_float64(k: Any, x: Any) -> Any:
    """With e = e^-|x| = high + low: 1 / (1 + e), or e / (1 + e) below 0, scaled last."""
    negative = k.lt(x, 0.0)
    small = clamp(k, k.neg(k.abs(x)), -746.0, 0.0)
    shifted, high, low = parts.exp_pair(k, small)
    first, second = parts.two_powers(k, shifted)
    e, e_low = k.mul(k.mul(high, first), second), k.mul(k.mul(low, first), second)
    one = k.constant(1.0, dtypes.float64)
    divisor, divisor_low = parts.two_sum(k, one, e)
    divisor_low = k.add(divisor_low, e_low)
    top, top_low = k.select(negative, high, one), k.select(negative, low, 0.0)
    inverse = k.div(1.0, divisor)
    ratio = k.mul(top, inverse)
    rest = k.fma(k.neg(ratio), divisor, top)
    rest = k.fma(k.neg(ratio), divisor_low, k.add(rest, top_low))
    ratio = k.fma(rest, inverse, ratio)
    ratio = k.mul(ratio, k.select(negative, first, 1.0))
    return k.mul(ratio, k.select(negative, second, 1.0))


def tanh_float32(k: Any, x: Any) -> Any:
    """Up to 1 an odd polynomial; beyond, 1 - 2 / (e^(2|x|) + 1), which rounds to 1 from 9.02 on."""
    t = at_most(k, k.abs(x), 10.0)
    twice = k.add(t, t)
    n, shifted = parts.nearest_multiple(k, twice, parts.LOG2E, 127)
    power = k.bitcast(k.shift_left(k.bitcast(shifted, dtypes.int32), 23), dtypes.float32)
    divisor = k.fma(power, parts.exp_reduced_32(k, twice, n), 1.0)
    large = k.sub(1.0, k.div(2.0, divisor))
    z = k.mul(t, t)
    small = k.fma(parts.horner(k, z, table.TANH_32), k.mul(z, t), t)
    return k.copysign(k.select(k.gt(t, TANH_BORDER), large, small), x)


def _expm1_pair(k: Any, x: Any) -> tuple[Any, Any]:
    """e^x - 1 as high + low, relative even near 0; 0 <= x < 700."""
    n, shifted = parts.nearest_multiple(k, x, parts.LOG2E, 1023)
    exact = k.fma(n, -parts.LN2_HIGH, x)
    r, r_low = parts.two_sum(k, exact, k.mul(n, -parts.LN2_LOW))
    u, u_low = parts.two_sum(k, r, parts.exp_curve(k, r))
    u_low = k.fma(r_low, k.add(u, 1.0), u_low)
    power = parts.power_of_two(k, shifted)
    high, low = parts.any_sum(k, k.sub(power, 1.0), k.mul(power, u))
    return high, k.fma(power, u_low, low)


def tanh_float64(k: Any, x: Any) -> Any:
    high, low = _expm1_pair(k, at_most(k, k.mul(k.abs(x), 2.0), 44.0))
    divisor, divisor_low = parts.any_sum(k, high, k.constant(2.0, dtypes.float64))
    divisor_low = k.add(divisor_low, low)
    inverse = k.div(1.0, divisor)
    ratio = k.mul(high, inverse)
    rest = k.add(k.fma(k.neg(ratio), divisor, high), low)
    rest = k.fma(k.neg(ratio), divisor_low, rest)
    return k.copysign(k.fma(rest, inverse, ratio), x)


def sinh_float32(k: Any, x: Any) -> Any:
    """(e + e / (e + 1)) / 2 with e = e^|x| - 1."""
    e = parts.expm1_light(k, at_most(k, k.abs(parts.widened(k, x)), 91.0))
    result = k.mul(k.add(e, k.div(e, k.add(e, 1.0))), 0.5)
    return k.copysign(parts.narrowed(k, result), x)


def cosh_float32(k: Any, x: Any) -> Any:
    power, u = parts.exp_light(k, at_most(k, k.abs(parts.widened(k, x)), 91.0))
    e = k.fma(power, u, power)
    return parts.narrowed(k, k.mul(k.add(e, k.div(1.0, e)), 0.5))


def _exp_and_inverse(k: Any, magnitude: Any) -> tuple[Any, Any, Any, Any, Any]:
    """(first, second, high, low, inverse): e^m / 2 = first second (high + low), and e^-m / 2
    divided by the same powers; m up to 711."""
    shifted, high, low = parts.exp_pair(k, magnitude, bias=2045)
    first, second = parts.two_powers(k, shifted)
    # e^-m beside e^m matters while n is small; beyond, its power underflows to 0.
    scale = k.mul(first, second)
    down = k.div(0.25, k.mul(k.mul(scale, scale), high))
    return first, second, high, low, down


def sinh_float64(k: Any, x: Any) -> Any:
    """Below 1 an odd polynomial, else (e^|x| - e^-|x|) / 2."""
    magnitude = k.abs(x)
    first, second, high, low, down = _exp_and_inverse(k, at_most(k, magnitude, 711.0))
    total, total_low = parts.two_sum(k, high, k.neg(down))
    total = k.add(total, k.add(total_low, low))
    large = k.mul(k.mul(total, first), second)
    z = k.mul(x, x)
    curve = parts.estrin(k, z, table.SINH_64)
    small = k.fma(k.mul(z, magnitude), curve, magnitude)
    return k.copysign(k.select(k.lt(magnitude, 1.0), small, large), x)


def cosh_float64(k: Any, x: Any) -> Any:
    first, second, high, low, down = _exp_and_inverse(k, at_most(k, k.abs(x), 711.0))
    total, total_low = parts.two_sum(k, high, down)
    # The low part of e^m changes e^-m the other way.
    low = k.fma(k.neg(k.div(down, high)), low, low)
    total = k.add(total, k.add(total_low, low))
    return k.mul(k.mul(total, first), second)


def asinh_float32(k: Any, x: Any) -> Any:
    """log1p(m + m^2 / (1 + sqrt(1 + m^2))), m = |x|."""
    m = k.abs(parts.widened(k, x))
    square = k.mul(m, m)
    inner = k.add(m, k.div(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0)))
    result = parts.narrowed(k, parts.log1p_light(k, inner))
    result = k.select(k.lt(k.abs(x), INF), result, x)
    return k.copysign(result, x)


def asinh_float64(k: Any, x: Any) -> Any:
    """As in float32 up to 2^28, log(2 m) beyond."""
    m = k.abs(x)
    square = k.mul(m, m)
    inner = k.add(m, k.div(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0)))
    huge = k.gt(m, 2.0**28)
    log = exponential.log1p_float64(k, k.select(huge, k.sub(m, 1.0), inner))
    result = k.add(log, k.select(huge, k.constant(parts.LN2, dtypes.float64), 0.0))
    return k.copysign(result, x)


def acosh_float32(k: Any, x: Any) -> Any:
    """log1p(t + sqrt(2 t + t^2)), t = x - 1."""
    t = k.sub(parts.widened(k, x), 1.0)
    inner = k.add(t, k.sqrt(k.fma(t, t, k.add(t, t))))
    result = parts.narrowed(k, parts.log1p_light(k, inner))
    result = k.select(k.lt(x, INF), result, x)
    return k.select(k.lt(x, 1.0), NAN, result)


def acosh_float64(k: Any, x: Any) -> Any:
    t = k.sub(x, 1.0)
    huge = k.gt(x, 2.0**28)
    inner = k.add(t, k.sqrt(k.fma(t, t, k.add(t, t))))
    log = exponential.log1p_float64(k, k.select(huge, t, inner))
    result = k.add(log, k.select(huge, k.constant(parts.LN2, dtypes.float64), 0.0))
    return k.select(k.lt(x, 1.0), NAN, result)


def atanh_float32(k: Any, x: Any) -> Any:
    """log1p(2 m / (1 - m)) / 2, m = |x|."""
    m = k.abs(parts.widened(k, x))
    inner = k.div(k.add(m, m), k.sub(1.0, m))
    result = parts.narrowed(k, k.mul(parts.log1p_light(k, inner), 0.5))
    result = k.select(k.eq(k.abs(x), 1.0), INF, result)
    result = k.select(k.le(k.abs(x), 1.0), result, NAN)
    return k.copysign(result, x)


def atanh_float64(k: Any, x: Any) -> Any:
    m = k.abs(x)
    twice = k.add(m, m)
    inner = k.div(twice, k.sub(1.0, m))
    result = k.mul(exponential.log1p_float64(k, inner), 0.5)
    return k.copysign(result, x)
