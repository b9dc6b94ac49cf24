"""asin, acos, atan, atan2 from the plain words.

Keeps     results outside the domain are NaN; atan2 has C's values on the axes and at infinity.
Touches   parts, coefficients.
Not here  sin, cos, tan (trigonometric.py).
Source    Cody & Waite, Software Manual (1980); break points of atan after fdlibm's s_atan.c.
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table
from flambeau.codegen.mathlib import parts
from flambeau.codegen.mathlib.parts import INF

PI: Final = (3.141592653589793, 1.2246467991473532e-16)
HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17)
# atan of 1/2, 1, 3/2 as high + low.
_ATAN: Final = {
    0.5: (0.4636476090008061, 2.2698777452961687e-17),
    1.0: (0.7853981633974483, 3.061616997868383e-17),
    1.5: (0.982793723247329, 1.3903311031230998e-17),
}


def _arc_parts(
    k: Any, magnitude: Any, coefficients: tuple[float, ...], short: bool
) -> tuple[Any, Any, Any, Any]:
    """(small, s, c, z): asin s = s + c, where s = |x| if small (<= 1/2) else sqrt(z),
    z = (1 - |x|) / 2."""
    small = k.lt(magnitude, 0.5)
    z = k.select(small, k.mul(magnitude, magnitude), k.fma(magnitude, -0.5, 0.5))
    s = k.select(small, magnitude, k.sqrt(z))
    polynomial = parts.horner if short else parts.estrin
    return small, s, k.mul(k.mul(s, z), polynomial(k, z, coefficients)), z


def asin_float32(k: Any, x: Any) -> Any:
    small, s, c, _ = _arc_parts(k, k.abs(parts.widened(k, x)), table.ASIN_LIGHT, True)
    arc = k.add(s, c)
    result = k.select(small, arc, k.fma(arc, -2.0, HALF_PI[0]))
    return k.copysign(parts.narrowed(k, result), x)


def acos_float32(k: Any, x: Any) -> Any:
    wide = parts.widened(k, x)
    small, s, c, _ = _arc_parts(k, k.abs(wide), table.ASIN_LIGHT, True)
    arc = k.copysign(k.add(s, c), wide)
    base = k.select(k.lt(wide, 0.0), k.constant(PI[0], dtypes.float64), 0.0)
    result = k.select(small, k.sub(HALF_PI[0], arc), k.fma(arc, 2.0, base))
    return parts.narrowed(k, result)


def _root_low(k: Any, s: Any, z: Any) -> Any:
    """What sqrt(z) = s lost, doubled; 0 for z = 0."""
    lost = k.div(k.fma(k.neg(s), s, z), s)
    return k.select(k.eq(s, 0.0), 0.0, lost)


def asin_float64(k: Any, x: Any) -> Any:
    """pi/2 - 2 asin(s) with the root's rounding error put back."""
    small, s, c, z = _arc_parts(k, k.abs(x), table.ASIN_64, False)
    twice = k.add(s, s)
    high = k.sub(HALF_PI[0], twice)
    low = k.sub(k.sub(HALF_PI[0], high), twice)
    correction = k.add(k.add(c, c), _root_low(k, s, z))
    large = k.add(high, k.add(low, k.sub(HALF_PI[1], correction)))
    return k.copysign(k.select(small, k.add(s, c), large), x)


def acos_float64(k: Any, x: Any) -> Any:
    """base - (m + m_low), one sum for the three ranges."""
    small, s, c, z = _arc_parts(k, k.abs(x), table.ASIN_64, False)
    root_low = k.select(small, 0.0, _root_low(k, s, z))
    m = k.select(small, s, k.add(s, s))
    m_low = k.select(small, c, k.add(k.add(c, c), root_low))
    negative = k.lt(x, 0.0)
    # Small: pi/2 - x. Near 1: 0 + m. Near -1: pi - m.
    flip = k.select(small, negative, k.not_(negative))
    m, m_low = k.select(flip, m, k.neg(m)), k.select(flip, m_low, k.neg(m_low))
    zero = k.constant(0.0, dtypes.float64)
    outer = [k.select(negative, pi, zero) for pi in PI]
    base = [k.select(small, half, each) for half, each in zip(HALF_PI, outer, strict=True)]
    high = k.add(base[0], m)
    low = k.add(k.sub(base[0], high), m)
    return k.add(high, k.add(low, k.add(base[1], m_low)))


def _atan_light(k: Any, t: Any) -> Any:
    """atan t for 0 <= t <= 1, 36 good bits."""
    z = k.mul(t, t)
    return k.fma(k.mul(z, t), parts.estrin(k, z, table.ATAN_LIGHT), t)


def atan_float32(k: Any, x: Any) -> Any:
    m = k.abs(parts.widened(k, x))
    large = k.gt(m, 1.0)
    arc = _atan_light(k, k.select(large, k.div(1.0, m), m))
    return k.copysign(parts.narrowed(k, k.select(large, k.sub(HALF_PI[0], arc), arc)), x)


def atan2_float32(k: Any, y: Any, x: Any) -> Any:
    wide_y, wide_x = parts.widened(k, y), parts.widened(k, x)
    across, along = k.abs(wide_y), k.abs(wide_x)
    steep = k.gt(across, along)
    ratio = k.div(k.select(steep, along, across), k.select(steep, across, along))
    arc = _atan_light(k, _ratio_special(k, ratio, across, along))
    arc = k.select(steep, k.sub(HALF_PI[0], arc), arc)
    behind = k.lt(k.copysign(k.constant(1.0, dtypes.float32), x), 0.0)
    arc = k.select(behind, k.sub(PI[0], arc), arc)
    return k.copysign(parts.narrowed(k, arc), y)


def _ratio_special(k: Any, ratio: Any, across: Any, along: Any) -> Any:
    """0 / 0 counts as 0 and inf / inf as 1."""
    ratio = k.select(k.and_(k.eq(across, 0.0), k.eq(along, 0.0)), 0.0, ratio)
    return k.select(k.and_(k.eq(across, INF), k.eq(along, INF)), 1.0, ratio)


def _atan_pair(k: Any, m: Any) -> tuple[Any, Any]:
    """atan m for m >= 0 as high + low; |t| <= 7/16 is left after the break points."""
    zero = k.constant(0.0, dtypes.float64)
    centre, high, low = zero, zero, zero
    for bound, value in ((0.4375, 0.5), (0.6875, 1.0), (1.1875, 1.5)):
        beyond = k.ge(m, bound)
        centre = k.select(beyond, value, centre)
        high = k.select(beyond, _ATAN[value][0], high)
        low = k.select(beyond, _ATAN[value][1], low)
    large = k.ge(m, 2.4375)
    top = k.select(large, -1.0, k.sub(m, centre))
    t = k.div(top, k.select(large, m, k.fma(centre, m, 1.0)))
    high, low = k.select(large, HALF_PI[0], high), k.select(large, HALF_PI[1], low)
    z = k.mul(t, t)
    curve = k.mul(k.mul(z, t), parts.estrin(k, z, table.ATAN_64))
    total, total_low = parts.two_sum(k, high, t)
    return total, k.add(total_low, k.add(low, curve))


def atan_float64(k: Any, x: Any) -> Any:
    return k.copysign(k.add(*_atan_pair(k, k.abs(x))), x)


def atan2_float64(k: Any, y: Any, x: Any) -> Any:
    across, along = k.abs(y), k.abs(x)
    ratio = _ratio_special(k, k.div(across, along), across, along)
    high, low = _atan_pair(k, ratio)
    behind = k.lt(k.copysign(k.constant(1.0, dtypes.float64), x), 0.0)
    turned = k.sub(PI[0], high)
    turned_low = k.sub(k.add(k.sub(k.sub(PI[0], turned), high), PI[1]), low)
    high, low = k.select(behind, turned, high), k.select(behind, turned_low, low)
    return k.copysign(k.add(high, low), y)
