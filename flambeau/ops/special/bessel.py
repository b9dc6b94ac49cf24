"""Modified Bessel functions of the first kind, of order 0 and 1, and scaled by exp(-|x|).

Keeps     below 18 the power series, whose terms have one sign; above it the asymptotic series,
          cut where its terms are below the last bit.
Touches   ops.define.
Not here  the window made of them (tensor.public.statistics.windows).
Source    Abramowitz and Stegun, 9.6.10 and 9.7.1."""

from __future__ import annotations

from typing import Any, Final

from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Tensor, operator

_SPLIT: Final = 18.0
_N_SERIES: Final = 44
_N_ASYMPTOTIC: Final = 22
_TWO_PI: Final = 6.283185307179586


def _series(k: Any, x: Any, order: int) -> Any:
    """sum of (x^2 / 4)^n / (n! (n + order)!), by Horner's rule."""
    quarter = k.mul(k.mul(x, x), 0.25)
    total = k.constant(1.0, k.dtype_of(x))
    for n in range(_N_SERIES, 0, -1):
        total = k.fma(k.mul(total, quarter), 1.0 / (n * (n + order)), 1.0)
    return total


def _asymptotic(k: Any, x: Any, order: int) -> Any:
    """1 - (m - 1) / 8x + (m - 1)(m - 9) / 2! (8x)^2 - ..., m = 4 order^2."""
    inverse = k.div(-0.125, x)
    total = k.constant(1.0, k.dtype_of(x))
    for n in range(_N_ASYMPTOTIC, 0, -1):
        total = k.fma(k.mul(total, inverse), (4 * order * order - (2 * n - 1) ** 2) / n, 1.0)
    return total


def bessel_i(k: Any, input: Any, order: int, scaled: bool) -> Any:
    """The function of an order, scaled by exp(-|input|) or not."""
    size = k.abs(input)
    small = k.min(size, _SPLIT)
    near = _series(k, small, order)
    if order:
        near = k.mul(near, k.mul(small, 0.5))
    large = k.max(size, _SPLIT)
    far = k.div(_asymptotic(k, large, order), k.sqrt(k.mul(large, _TWO_PI)))
    if scaled:
        near = k.mul(near, k.exp(k.neg(small)))
    else:
        half = k.exp(k.mul(large, 0.5))  # in two steps: the whole exponential ends sooner
        far = k.mul(k.mul(far, half), half)
    found = k.select(k.lt(size, _SPLIT), near, far)
    found = k.select(k.isnan(input), input, found)
    return k.copysign(found, input) if order else found


class _Bessel(Elementwise):
    """A modified Bessel function."""

    promote = INT_TO_FLOAT


@operator("i0", aliases=("special.i0",))
class BesselI0(_Bessel):
    """Modified Bessel function of order 0."""

    complex_kernel = "i0_vml_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return bessel_i(k, input, 0, scaled=False)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * t.special_i1(input)


@operator("special_i0e", aliases=("special.i0e",), function=False, inplace=False)
class BesselI0Scaled(_Bessel):
    """exp(-|input|) times the modified Bessel function of order 0."""

    def formula(self, k: Any, input: Tensor) -> Any:
        return bessel_i(k, input, 0, scaled=True)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any) -> Any:
        return grad * (t.special_i1e(input) - input.sign() * out)


@operator("special_i1", aliases=("special.i1",), function=False, inplace=False)
class BesselI1(_Bessel):
    """Modified Bessel function of order 1."""

    def formula(self, k: Any, input: Tensor) -> Any:
        return bessel_i(k, input, 1, scaled=False)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any) -> Any:
        share = out / t.masked_fill(input, input == 0, 1)
        return grad * (t.i0(input) - t.masked_fill(share, input == 0, 0.5))


@operator("special_i1e", aliases=("special.i1e",), function=False, inplace=False)
class BesselI1Scaled(_Bessel):
    """exp(-|input|) times the modified Bessel function of order 1."""

    def formula(self, k: Any, input: Tensor) -> Any:
        return bessel_i(k, input, 1, scaled=True)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any) -> Any:
        share = out / t.masked_fill(input, input == 0, 1)
        slope = t.special_i0e(input) - out * (input.sign() + 0) - share
        return grad * t.masked_fill(slope, input == 0, 0.5)
