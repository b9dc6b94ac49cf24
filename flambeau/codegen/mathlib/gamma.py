"""lgamma, digamma from the plain words.

Keeps     poles as torch has them: lgamma inf at 0 and below at integers; digamma -inf at +0, inf
          at -0, NaN at negative integers.
Touches   parts, exponential (log), trigonometric (kernels).
Not here  erf and its kin (special.py).
Source    Abramowitz & Stegun 6.1.17, 6.1.40, 6.3.5, 6.3.7, 6.3.18; minimax polynomials for
          lgamma on [1, 2.5] and for the asymptotic series from 8 on.
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table
from flambeau.codegen.mathlib import exponential, parts, trigonometric
from flambeau.codegen.mathlib.parts import INF, NAN

PI: Final = 3.141592653589793
PI_LOW: Final = 1.2246467991473532e-16
LOG_PI: Final = 1.1447298858494002
# (log(2 pi) - 1) / 2: Stirling's constant once (x - 1/2) (log x - 1) is taken out.
STIRLING: Final = 0.4189385332046728


def _sine_of_pi(k: Any, x: Any) -> tuple[Any, Any]:
    """(|sin(pi f)|, cos(pi f) with the sign of f) for the fraction f = x - rint(x)."""
    f = k.sub(x, k.rint(x))
    m = k.abs(f)
    steep = k.gt(m, 0.25)
    g = k.select(steep, k.sub(0.5, m), m)
    a, a_low = parts.two_product(k, g, PI)
    a_low = k.fma(g, PI_LOW, a_low)
    z = k.mul(a, a)
    sine = k.add(a, trigonometric.sine_kernel(k, a, a_low, z))
    cosine = k.add(*trigonometric.cosine_kernel(k, a, a_low, z))
    signed = k.copysign(k.select(steep, sine, cosine), f)
    return k.select(steep, cosine, sine), signed


def lgamma_float64(k: Any, x: Any) -> Any:
    log = exponential.log_float64
    m = k.abs(x)
    large = k.ge(m, 8.0)
    below_one = k.lt(m, 1.0)
    # From 2.5 to 8: down to [1.5, 2.5) by the recurrence; below 1: up by one.
    product = k.select(below_one, m, 1.0)
    for i in range(1, 7):
        product = k.mul(product, k.select(k.ge(m, i + 1.5), k.sub(m, float(i)), 1.0))
    logarithm = log(k, k.select(large, m, product))
    whole = k.select(k.lt(m, 2.5), 1.0, k.floor(k.sub(m, 0.5)))
    f = k.sub(m, k.select(below_one, 0.0, whole))  # that argument less 1
    curve = parts.estrin(k, k.sub(f, 0.75), table.LGAMMA_64)
    middle = k.fma(k.mul(f, k.sub(f, 1.0)), curve, k.select(below_one, k.neg(logarithm), logarithm))
    inverse = k.div(1.0, m)
    series = k.fma(parts.horner(k, k.mul(inverse, inverse), table.STIRLING_64), inverse, STIRLING)
    high = k.fma(k.sub(m, 0.5), k.sub(logarithm, 1.0), series)
    result = k.select(large, high, middle)
    # Reflection: log(pi / (m |sin(pi m)|)) - lgamma(m); next to 0 both are -log m.
    sine, _ = _sine_of_pi(k, m)
    mirrored = k.sub(k.sub(LOG_PI, log(k, k.mul(m, sine))), result)
    result = k.select(k.lt(x, -(2.0**-70)), mirrored, result)
    pole = k.and_(k.le(x, 0.0), k.eq(sine, 0.0))
    return k.select(k.or_(pole, k.eq(m, INF)), INF, result)


def lgamma_float32(k: Any, x: Any) -> Any:
    """In full float64: beside the zeros between negative integers no bit is to spare."""
    return parts.narrowed(k, lgamma_float64(k, parts.widened(k, x)))


def digamma_float64(k: Any, x: Any) -> Any:
    """digamma(t) = digamma(t + 8) - sum of 1 / (t + i); reflected below 0."""
    negative = k.lt(x, 0.0)
    t = k.select(negative, k.sub(1.0, x), x)
    large = k.ge(t, 8.0)
    top: Any = k.constant(1.0, dtypes.float64)
    below = t
    for i in range(1, 8):
        factor = k.add(t, float(i))
        top = k.fma(top, factor, below)
        below = k.mul(below, factor)
    u = k.select(large, t, k.add(t, 8.0))
    inverse = k.div(1.0, u)
    z = k.mul(inverse, inverse)
    series = k.fma(z, parts.horner(k, z, table.DIGAMMA_64), k.mul(inverse, 0.5))
    result = k.sub(exponential.log_float64(k, u), series)
    result = k.select(large, result, k.sub(result, k.div(top, below)))
    sine, cosine = _sine_of_pi(k, x)
    mirrored = k.sub(result, k.mul(k.div(cosine, sine), PI))
    result = k.select(negative, mirrored, result)
    result = k.select(k.and_(negative, k.eq(sine, 0.0)), NAN, result)
    return k.select(k.eq(x, INF), INF, result)


def digamma_float32(k: Any, x: Any) -> Any:
    return parts.narrowed(k, digamma_float64(k, parts.widened(k, x)))
