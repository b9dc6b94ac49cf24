"""Bessel functions J, Y, K of order 0 and 1, spherical j0, Airy's function Ai.

Keeps     computed in float64 whatever the dtype: near zero a polynomial in x^2, far from it the
          amplitudes of a wave (or of a decay) as polynomials in 1 / x. As in torch there are no
          gradients, and infinity gives NaN, except where the function decays without waves.
Touches   ops.define, bessel.py.
Not here  the coefficients (bessel_tables.py), I of order 0 and 1 with gradients (bessel.py).
Source    Abramowitz and Stegun, 9.1.11, 9.2.5, 9.6.11, 9.7.2, 10.4.59 to 10.4.64."""

from __future__ import annotations

import math
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Tensor, operator
from flambeau.ops.special import bessel_tables as table
from flambeau.ops.special.bessel import bessel_i

_FAR: Final = 8.0
_TWO_OVER_PI: Final = 2 / math.pi
_INFINITE: Final = float("inf")
_NAN: Final = float("nan")


def _chebyshev(k: Any, y: Any, coefficients: tuple[float, ...]) -> Any:
    """Sum of Chebyshev polynomials at y in -1 .. 1, by Clenshaw's recurrence."""
    twice = k.add(y, y)
    last = k.constant(coefficients[-1], dtypes.float64)
    before = k.constant(0.0, dtypes.float64)
    for coefficient in reversed(coefficients[1:-1]):
        last, before = k.add(k.fma(twice, last, k.neg(before)), coefficient), last
    return k.add(k.fma(y, last, k.neg(before)), coefficients[0])


def _unit(k: Any, x: Any) -> Any:
    """0 .. 1 as -1 .. 1."""
    return k.fma(x, 2.0, -1.0)


def _near(k: Any, size: Any, coefficients: tuple[float, ...], end: float = _FAR) -> Any:
    """A polynomial in the square of 0 .. `end`."""
    inside = k.min(size, end)
    return _chebyshev(k, _unit(k, k.mul(k.mul(inside, inside), end**-2)), coefficients)


def _wave(k: Any, size: Any, order: int, is_second: bool) -> Any:
    """J (or Y, the second kind) from 8 on: sqrt(2 / pi x) (P cos - Q sin of the phase)."""
    x = k.max(size, _FAR)
    inverse = k.div(_FAR, x)
    place = _unit(k, k.mul(inverse, inverse))
    p = _chebyshev(k, place, table.P1 if order else table.P0)
    q = k.mul(k.div(1.0, x), _chebyshev(k, place, table.Q1 if order else table.Q0))
    sine, cosine = k.sin(x), k.cos(x)
    # Cosine and sine of x - pi/4, times sqrt(2); of x - 3 pi/4 for order 1.
    first, second = k.add(cosine, sine), k.sub(sine, cosine)
    if order:
        first, second = second, k.neg(first)
    wave = (
        k.add(k.mul(p, second), k.mul(q, first))
        if is_second
        else k.sub(k.mul(p, first), k.mul(q, second))
    )
    return k.div(wave, k.sqrt(k.mul(x, math.pi)))


def _first_kind(k: Any, x: Any, order: int) -> Any:
    size = k.abs(x)
    near = _near(k, size, table.J1 if order else table.J0)
    if order:
        near = k.mul(near, size)
    found = k.select(k.lt(size, _FAR), near, _wave(k, size, order, is_second=False))
    found = k.select(k.lt(size, _INFINITE), found, _NAN)
    return k.mul(found, k.copysign(1.0, x)) if order else found


def _second_kind(k: Any, x: Any, order: int) -> Any:
    near = _near(k, x, table.Y1 if order else table.Y0)
    log = k.mul(k.log(x), _TWO_OVER_PI)
    if order:
        near = k.fma(near, x, k.fma(log, _first_kind(k, x, 1), k.div(-_TWO_OVER_PI, x)))
    else:
        near = k.fma(log, _first_kind(k, x, 0), near)
    found = k.select(k.lt(x, _FAR), near, _wave(k, x, order, is_second=True))
    found = k.select(k.and_(k.gt(x, 0), k.lt(x, _INFINITE)), found, _NAN)
    return k.select(k.eq(x, 0), -_INFINITE, found)


def _decaying(k: Any, x: Any, order: int, scaled: bool) -> Any:
    """K, or e^x K."""
    log = k.log(k.mul(x, 0.5))
    part = _near(k, x, table.K1_SMALL if order else table.K0_SMALL, 2.0)
    inside = k.min(x, 2.0)
    if order:
        near = k.fma(part, x, k.fma(log, bessel_i(k, inside, 1, False), k.div(1.0, x)))
    else:
        near = k.fma(k.neg(log), bessel_i(k, inside, 0, False), part)
    outside = k.max(x, 2.0)
    place = _unit(k, k.div(2.0, outside))
    far = _chebyshev(k, place, table.K1_LARGE if order else table.K0_LARGE)
    far = k.div(far, k.sqrt(outside))
    if scaled:
        near = k.mul(near, k.exp(inside))
    else:
        far = k.mul(far, k.exp(k.neg(outside)))
    found = k.select(k.lt(x, 2.0), near, far)
    found = k.select(k.eq(x, 0), _INFINITE, found)
    return k.select(k.ge(x, 0), found, _NAN)


def _airy(k: Any, x: Any) -> Any:
    near = _chebyshev(k, k.div(k.min(k.max(x, -3.0), 3.0), 3.0), table.AIRY)
    size = k.max(k.abs(x), 3.0)
    root = k.sqrt(size)
    zeta = k.mul(k.mul(size, root), 2 / 3)
    inverse = k.div(2 * math.sqrt(3.0), zeta)
    quarter = k.mul(k.sqrt(root), math.sqrt(math.pi))
    decay = _chebyshev(k, _unit(k, inverse), table.AIRY_DECAY)
    decay = k.div(k.mul(k.mul(decay, 0.5), k.exp(k.neg(zeta))), quarter)
    place = _unit(k, k.mul(inverse, inverse))
    f = _chebyshev(k, place, table.AIRY_F)
    g = k.mul(inverse, _chebyshev(k, place, table.AIRY_G))
    sine, cosine = k.sin(zeta), k.cos(zeta)
    # Sine and cosine of zeta + pi/4, times sqrt(2).
    wave = k.sub(k.mul(f, k.add(sine, cosine)), k.mul(g, k.sub(cosine, sine)))
    wave = k.div(k.mul(wave, math.sqrt(0.5)), quarter)
    far = k.select(k.lt(x, 0), wave, decay)
    found = k.select(k.lt(k.abs(x), 3.0), near, far)
    return k.select(k.lt(k.abs(x), _INFINITE), found, _NAN)


class _Cylinder(Elementwise):
    """A function of one real argument that torch does not differentiate."""

    promote = INT_TO_FLOAT
    refuses_halves = True
    differentiable = False
    domain = {"input": (0.2, 2.0)}  # torch's answers further out have seven digits alone

    def wide(self, k: Any, x: Any) -> Any:
        """The function of a float64."""
        raise NotImplementedError

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.convert(self.wide(k, k.convert(input, dtypes.float64)), k.dtype_of(input))


@operator("special_bessel_j0", aliases=("special.bessel_j0",), function=False, inplace=False)
class BesselJ0(_Cylinder):
    """Bessel function of the first kind, of order 0."""

    def wide(self, k: Any, x: Any) -> Any:
        return _first_kind(k, x, 0)


@operator("special_bessel_y0", aliases=("special.bessel_y0",), function=False, inplace=False)
class BesselY0(_Cylinder):
    """Bessel function of the second kind, of order 0; NaN below 0."""

    def wide(self, k: Any, x: Any) -> Any:
        return _second_kind(k, x, 0)


@operator(
    "special_modified_bessel_i0",
    aliases=("special.modified_bessel_i0",),
    function=False,
    inplace=False,
)
class ModifiedBesselI0(_Cylinder):
    """Modified Bessel function of the first kind, of order 0; no gradient."""

    def wide(self, k: Any, x: Any) -> Any:
        return k.select(k.lt(k.abs(x), _INFINITE), bessel_i(k, x, 0, False), _NAN)


@operator(
    "special_modified_bessel_k0",
    aliases=("special.modified_bessel_k0",),
    function=False,
    inplace=False,
)
class ModifiedBesselK0(_Cylinder):
    """Modified Bessel function of the second kind, of order 0; NaN below 0."""

    def wide(self, k: Any, x: Any) -> Any:
        return _decaying(k, x, 0, scaled=False)


@operator(
    "special_scaled_modified_bessel_k0",
    aliases=("special.scaled_modified_bessel_k0",),
    function=False,
    inplace=False,
)
class ScaledModifiedBesselK0(_Cylinder):
    """e^input times the modified Bessel function of the second kind, of order 0."""

    def wide(self, k: Any, x: Any) -> Any:
        return _decaying(k, x, 0, scaled=True)


@operator("special_bessel_j1", aliases=("special.bessel_j1",), function=False, inplace=False)
class BesselJ1(_Cylinder):
    """Bessel function of the first kind, of order 1."""

    def wide(self, k: Any, x: Any) -> Any:
        return _first_kind(k, x, 1)


@operator("special_bessel_y1", aliases=("special.bessel_y1",), function=False, inplace=False)
class BesselY1(_Cylinder):
    """Bessel function of the second kind, of order 1; NaN below 0."""

    def wide(self, k: Any, x: Any) -> Any:
        return _second_kind(k, x, 1)


@operator(
    "special_modified_bessel_i1",
    aliases=("special.modified_bessel_i1",),
    function=False,
    inplace=False,
)
class ModifiedBesselI1(_Cylinder):
    """Modified Bessel function of the first kind, of order 1; no gradient."""

    def wide(self, k: Any, x: Any) -> Any:
        return k.select(k.lt(k.abs(x), _INFINITE), bessel_i(k, x, 1, False), _NAN)


@operator(
    "special_modified_bessel_k1",
    aliases=("special.modified_bessel_k1",),
    function=False,
    inplace=False,
)
class ModifiedBesselK1(_Cylinder):
    """Modified Bessel function of the second kind, of order 1; NaN below 0."""

    def wide(self, k: Any, x: Any) -> Any:
        return _decaying(k, x, 1, scaled=False)


@operator(
    "special_scaled_modified_bessel_k1",
    aliases=("special.scaled_modified_bessel_k1",),
    function=False,
    inplace=False,
)
class ScaledModifiedBesselK1(_Cylinder):
    """e^input times the modified Bessel function of the second kind, of order 1."""

    def wide(self, k: Any, x: Any) -> Any:
        return _decaying(k, x, 1, scaled=True)


@operator("special_airy_ai", aliases=("special.airy_ai",), function=False, inplace=False)
class AiryAi(_Cylinder):
    """Airy's function Ai."""

    def wide(self, k: Any, x: Any) -> Any:
        return _airy(k, x)


@operator("special_spherical_bessel_j0", aliases=("special.spherical_bessel_j0",),
          function=False, inplace=False)  # fmt: skip
class SphericalBesselJ0(_Cylinder):
    """Spherical Bessel function of order 0, sin(input) / input."""

    def wide(self, k: Any, x: Any) -> Any:
        found = k.div(k.sin(x), x)
        found = k.select(k.eq(x, 0), 1.0, found)
        return k.select(k.eq(k.abs(x), _INFINITE), 0.0, found)
