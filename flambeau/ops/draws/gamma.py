"""What follows a gamma variable's draw: its derivative with respect to the shape.

Keeps     a draw is made by random/; here it is an operand, and the concentration gets a gradient.
Touches   ops.define.
Not here  drawing (random/fills_sampled.py), gamma functions (trigonometric.py).
Source    Jankowiak and Obermeyer, Pathwise Derivatives Beyond the Reparameterization Trick, 2018:
          Taylor series for small values, saddle point for large shapes, else the rational
          approximation whose coefficients PyTorch publishes."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.define import Elementwise, Tensor, not_implemented, operator

# Powers of log(x / shape) down, of log(shape) across: numerator, then denominator.
_RATIONAL: Final = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343,
     1.0, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758,
     0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777,
     0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
)  # fmt: skip


@operator("standard_gamma", function=False, inplace=False, methods=())
class StandardGamma(Elementwise):
    """Draws of the gamma variables with the shapes `concentration`: the draws themselves."""

    def formula(self, k: Any, concentration: Tensor, drawn: Tensor) -> Any:
        return drawn

    def vjp(self, t: Any, grad: Any, concentration: Any, out: Any) -> Any:
        return grad * t._standard_gamma_grad(concentration, out), None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.constant(3, 4), s.constant(3, 4))]


@operator("_standard_gamma_grad", function=True, inplace=False, methods=())
class StandardGammaGradient(Elementwise):
    """Derivative of a gamma variable with respect to its shape, at the value drawn."""

    differentiable = False

    def check(self, common: dtype) -> None:
        if common not in (dtypes.float32, dtypes.float64):
            raise not_implemented("_standard_gamma_grad_cpu", common)

    def formula(self, k: Any, input: Tensor, output: Tensor) -> Any:
        small = _by_series(k, input, output)
        inner = k.and_(k.le(k.mul(0.9, input), output), k.le(output, k.mul(1.1, input)))
        large = k.select(inner, _near_mean(k, input, output), _far_from_mean(k, input, output))
        found = k.select(k.gt(input, 8.0), large, _by_rational(k, input, output))
        return k.select(k.lt(output, 0.8), small, found)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.constant(3, 4), s.constant(3, 4))]


def _by_series(k: Any, shape: Any, x: Any) -> Any:
    """Taylor series of the distribution function and of its derivative."""
    numerator = k.constant(1.0, k.dtype_of(x))
    denominator = shape
    first = k.div(numerator, denominator)
    second = k.div(numerator, k.mul(denominator, denominator))
    for count in range(1, 6):
        numerator = k.mul(numerator, k.div(k.neg(x), float(count)))
        denominator = k.add(denominator, 1.0)
        first = k.add(first, k.div(numerator, denominator))
        second = k.add(second, k.div(numerator, k.mul(denominator, denominator)))
    power = k.pow(x, shape)
    density = k.mul(k.pow(x, k.sub(shape, 1.0)), k.exp(k.neg(x)))
    below = k.mul(power, first)
    slope = k.sub(k.mul(k.sub(k.log(x), k.digamma(shape)), below), k.mul(power, second))
    found = k.div(k.neg(slope), density)
    return k.select(k.isnan(found), 0.0, found)


def _near_mean(k: Any, shape: Any, x: Any) -> Any:
    """Saddle point expansion within a tenth of the mean."""
    one = k.add(1.0, k.mul(k.mul(24.0, shape), k.add(1.0, k.mul(12.0, shape))))
    square = k.mul(shape, shape)
    two = k.add(k.mul(1440.0, square), k.mul(k.mul(6.0, x), k.sub(53.0, k.mul(120.0, x))))
    two = k.sub(two, k.div(k.mul(k.mul(65.0, x), x), shape))
    two = k.add(two, k.mul(shape, k.add(107.0, k.mul(3600.0, x))))
    return k.div(k.mul(one, two), k.mul(1244160.0, k.mul(square, square)))


def _far_from_mean(k: Any, shape: Any, x: Any) -> Any:
    """Saddle point expansion further away."""
    root = k.sqrt(k.mul(8.0, shape))
    apart = k.sub(shape, x)
    ratio = k.log(k.div(x, shape))
    two = k.div(root, apart)
    depth = k.sub(k.sub(x, shape), k.mul(shape, ratio))
    three = k.div(1.0, k.mul(depth, k.sqrt(depth)))
    both = k.select(k.lt(x, shape), k.sub(two, three), k.add(two, three))
    spread = k.div(k.mul(k.sqrt(k.div(2.0, shape)), k.add(shape, x)), k.mul(apart, apart))
    one = k.sub(k.mul(ratio, both), spread)
    inverse = k.div(1.0, k.mul(12.0, shape))
    stirling = k.add(1.0, k.mul(inverse, k.add(1.0, k.div(1.0, k.mul(24.0, shape)))))
    return k.div(k.mul(k.neg(stirling), k.mul(x, one)), root)


def _by_rational(k: Any, shape: Any, x: Any) -> Any:
    """exp of a rational function of log(x / shape) and log(shape)."""
    u, v = k.log(k.div(x, shape)), k.log(shape)
    columns = [
        k.fma(u, k.fma(u, k.constant(third, k.dtype_of(x)), second), first)
        for first, second, third in zip(*_RATIONAL, strict=True)
    ]
    above = below = None
    for place in (3, 2, 1, 0):
        above = columns[place] if above is None else k.fma(v, above, columns[place])
        low = columns[place + 4]
        below = low if below is None else k.fma(v, below, low)
    return k.exp(k.div(above, below))
