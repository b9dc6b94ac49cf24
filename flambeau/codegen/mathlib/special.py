"""erf, erfc, erfinv from the plain words.

Keeps     erfc keeps its relative precision down to the smallest denormal.
Touches   parts, coefficients.
Not here  lgamma, digamma (gamma.py).
Source    erfc as e^(-x^2) times a polynomial in (x - 4) / (x + 4): Shepherd & Laframboise, Math.
          Comp. 36 (1981). erfinv in w = -log(1 - x^2): Giles, GPU Computing Gems (2011).
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table
from flambeau.codegen.mathlib import parts
from flambeau.codegen.mathlib.parts import INF, NAN, at_most

# From here on erfc is computed for itself, below 1/4.
BORDER: Final = 0.8134
HALF_ROOT_PI: Final = 0.886226925452758  # sqrt(pi) / 2


def erf_float32(k: Any, x: Any) -> Any:
    """Up to 0.9277 an odd polynomial; beyond, 1 - e^(t p(t) - t); from 3.93 on it rounds to 1."""
    t = at_most(k, k.abs(x), 3.93)
    power = k.fma(parts.horner(k, t, table.ERF_TAIL_32), t, k.neg(t))
    n, shifted = parts.nearest_multiple(k, power, parts.LOG2E, 127)
    scale = k.bitcast(k.shift_left(k.bitcast(shifted, dtypes.int32), 23), dtypes.float32)
    large = k.fma(k.neg(scale), parts.exp_reduced_32(k, power, n), 1.0)
    small = k.fma(parts.horner(k, k.mul(x, x), table.ERF_32), x, x)
    return k.select(k.gt(t, 0.9277), k.copysign(large, x), small)


def erfc_float32(k: Any, x: Any) -> Any:
    wide = parts.widened(k, x)
    t = at_most(k, k.abs(wide), 10.5)
    power, u = parts.exp_light(k, k.mul(t, k.neg(t)))
    y = k.div(k.sub(t, 4.0), k.add(t, 4.0))
    curve = k.div(parts.estrin(k, y, table.ERFC_LIGHT), k.fma(t, 2.0, 1.0))
    result = k.mul(curve, k.fma(power, u, power))
    return parts.narrowed(k, k.select(k.lt(x, 0.0), k.sub(2.0, result), result))


def _erf_small(k: Any, x: Any) -> Any:
    """(erf(x) - x) / x up to BORDER."""
    return parts.estrin(k, k.mul(x, x), table.ERF_64)


def _erfc_curve(k: Any, t: Any) -> Any:
    """erfc(t) e^(t^2) for t >= BORDER: (1 + g(y)) / (1 + 2 t), y = (t - 4) / (t + 4), both
    quotients with their remainders put back."""
    inverse = k.div(1.0, k.add(t, 4.0))
    y = k.mul(k.sub(t, 4.0), inverse)
    remainder = k.fma(k.neg(t), y, k.fma(k.add(y, 1.0), -4.0, t))
    y = k.fma(inverse, remainder, y)
    g = parts.estrin(k, y, table.ERFC_64)
    inverse = k.div(0.5, k.add(t, 0.5))
    ratio = k.fma(g, inverse, inverse)
    remainder = k.add(k.fma(k.add(ratio, ratio), k.neg(t), 1.0), k.sub(g, ratio))
    return k.fma(remainder, inverse, ratio)


def _erfc_pieces(k: Any, t: Any) -> tuple[Any, Any, Any, Any]:
    """(tail, e, first, second): e^(-t^2) = e first second to 52 bits, erfc(t) = tail first second,
    BORDER <= t <= 27.5."""
    square, square_low = parts.two_product(k, t, t)
    shifted, high, low = parts.exp_pair(k, k.neg(square), k.neg(square_low))
    first, second = parts.two_powers(k, shifted)
    curve = _erfc_curve(k, t)
    return k.fma(curve, high, k.mul(curve, low)), high, first, second


def erfc_float64(k: Any, x: Any) -> Any:
    tail, _, first, second = _erfc_pieces(k, at_most(k, k.abs(x), 27.5))
    tail = k.mul(k.mul(tail, first), second)
    large = k.select(k.lt(x, 0.0), k.sub(2.0, tail), tail)
    # Around 0: (1 - x) - x p(x^2), with what 1 - x lost.
    whole = k.sub(1.0, x)
    lost = k.sub(k.sub(1.0, whole), x)
    small = k.add(whole, k.fma(k.neg(x), _erf_small(k, x), lost))
    return k.select(k.lt(k.abs(x), BORDER), small, large)


def erf_float64(k: Any, x: Any) -> Any:
    t = at_most(k, k.abs(x), 6.0)
    tail, _, first, second = _erfc_pieces(k, t)
    large = k.sub(1.0, k.mul(k.mul(tail, first), second))
    small = k.fma(_erf_small(k, x), x, x)
    return k.select(k.lt(t, BORDER), small, k.copysign(large, x))


def _erfinv_light(k: Any, x: Any, tail: tuple[float, ...], centre: float) -> Any:
    """erfinv(x) for |x| < 1, 30 good bits in the middle, those of `tail` in the tails."""
    m = k.abs(x)
    w = k.neg(parts.log_light(k, k.mul(k.sub(1.0, m), k.add(m, 1.0))))
    middle = parts.estrin(k, k.sub(w, 2.5), table.ERFINV_LIGHT)
    outer = parts.estrin(k, k.sub(k.sqrt(w), centre), tail)
    return k.mul(x, k.select(k.lt(w, 5.0), middle, outer))


def _erfinv_special(k: Any, x: Any, result: Any) -> Any:
    result = k.select(k.lt(k.abs(x), 1.0), result, NAN)
    return k.select(k.eq(k.abs(x), 1.0), k.copysign(k.constant(INF, k.dtype_of(x)), x), result)


def erfinv_float32(k: Any, x: Any) -> Any:
    result = _erfinv_light(k, parts.widened(k, x), table.ERFINV_TAIL_LIGHT, 3.0)
    return _erfinv_special(k, x, parts.narrowed(k, result))


def erfinv_float64(k: Any, x: Any) -> Any:
    """One step of Halley from 21 bits or more; the residual is taken where it is small: from
    erf(y) - x up to BORDER, from (1 - x) - erfc(y) beyond."""
    m = k.abs(x)
    y = _erfinv_light(k, m, table.ERFINV_TAIL_WIDE, 4.0)
    tail, e, first, second = _erfc_pieces(k, y)
    tail, gauss = (k.mul(k.mul(each, first), second) for each in (tail, e))
    near = k.fma(y, _erf_small(k, y), k.sub(y, m))
    far = k.sub(k.sub(1.0, m), tail)
    residual = k.select(k.lt(y, BORDER), near, far)
    step = k.mul(k.div(residual, gauss), HALF_ROOT_PI)
    step = k.div(step, k.fma(y, step, 1.0))
    return _erfinv_special(k, x, k.copysign(k.sub(y, step), x))
