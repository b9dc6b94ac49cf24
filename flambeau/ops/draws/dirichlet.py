"""What follows the draw of shares: its derivative with respect to the concentrations.

Keeps     a draw is made by random/; here it is an operand, and the concentrations get gradients.
Touches   ops.define.
Not here  drawing (random/fills_sampled.py), gamma variables (gamma.py).
Source    Jankowiak and Obermeyer, Pathwise Derivatives Beyond the Reparameterization Trick, 2018:
          a share is a beta variable. Taylor series near 0 and 1, saddle point for large shapes,
          else a rational correction whose coefficients PyTorch publishes."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.define import Elementwise, Tensor, not_implemented, operator

_TERMS_AT_0 = 10
_TERMS_AT_1 = 8
# Numerator, then denominator: powers of log(x) down, of log(shape / x) across blocks of four powers
# of log(total x / shape).
_RATIONAL: Final = (
    ((1.003668233, -0.01061107488, -0.0657888334, 0.01201642863,
      0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033,
      -0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
     (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814,
      -0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057,
      0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
     (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565,
      0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181,
      0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05)),
    ((1.0, -0.02924021934, -0.04438342661, 0.007285809825,
      0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521,
      -0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
     (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273,
      0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956,
      -0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
     (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05,
      0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05,
      -0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06)),
)  # fmt: skip


@operator("sample_dirichlet", function=False, inplace=False, methods=())
class SampleDirichlet(Elementwise):
    """Draws of shares with the concentrations `concentration`: the draws themselves."""

    def formula(self, k: Any, concentration: Tensor, drawn: Tensor) -> Any:
        return drawn

    def vjp(self, t: Any, grad: Any, concentration: Any, out: Any) -> Any:
        total = t.expand(t.sum(concentration, -1, True), tuple(concentration.shape))
        slope = t._dirichlet_grad(out, concentration, total)
        return slope * (grad - t.sum(out * grad, -1, True)), None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.constant(3, 4), s.constant(3, 4))]


@operator("_dirichlet_grad", function=True, inplace=False, methods=())
class DirichletGradient(Elementwise):
    """Derivative of a share with respect to its concentration, over what the others have."""

    differentiable = False

    def check(self, common: dtype) -> None:
        if common not in (dtypes.float32, dtypes.float64):
            raise not_implemented("_dirichlet_grad_cpu", common)

    def formula(self, k: Any, x: Tensor, alpha: Tensor, total: Tensor) -> Any:
        narrow = k.dtype_of(x)
        share, shape, whole = (k.convert(each, dtypes.float64) for each in (x, alpha, total))
        rest = k.sub(whole, shape)
        left = k.sub(1.0, share)
        edge = k.mul(k.mul(whole, share), left)
        large = k.and_(k.gt(shape, 6.0), k.gt(rest, 6.0))
        found = k.select(
            large, _by_saddle_point(k, share, shape, rest), _by_rational(k, share, shape, whole)
        )
        at_1 = k.and_(k.ge(share, 0.5), k.lt(edge, 0.75))
        found = k.select(at_1, k.neg(_near_0_by_other(k, left, rest, shape)), found)
        at_0 = k.and_(k.le(share, 0.5), k.lt(edge, 2.5))
        found = k.select(at_0, _near_0(k, share, shape, rest), found)
        return k.convert(found, narrow)

    def samples(self, s: Any) -> list[Any]:
        unit = s.constant(3, 4, low=0.05, high=0.95)
        return [s(unit, s.constant(3, 4, low=0.5, high=9), s.constant(3, 4, low=10, high=30))]


def _near_0(k: Any, x: Any, one: Any, other: Any) -> Any:
    """Taylor series of a beta variable's derivative with respect to its first shape."""
    slope = k.sub(k.sub(k.digamma(one), k.digamma(k.add(one, other))), k.log(x))
    power = k.constant(1.0, dtypes.float64)
    total = k.div(k.add(slope, k.div(1.0, one)), one)
    for count in range(1, _TERMS_AT_0 + 1):
        power = k.mul(power, k.div(k.mul(k.sub(float(count), other), x), float(count)))
        below = k.add(one, float(count))
        total = k.add(total, k.mul(k.div(power, below), k.add(slope, k.div(1.0, below))))
    return _number(k, k.mul(k.mul(x, k.pow(k.sub(1.0, x), k.neg(other))), total))


def _near_0_by_other(k: Any, x: Any, one: Any, other: Any) -> Any:
    """Taylor series of a beta variable's derivative with respect to its second shape."""
    slope = k.sub(k.digamma(k.add(one, other)), k.digamma(other))
    power = product = k.constant(1.0, dtypes.float64)
    derived = k.constant(0.0, dtypes.float64)
    total = k.div(slope, one)
    for count in range(1, _TERMS_AT_1 + 1):
        power = k.mul(power, k.div(k.neg(x), float(count)))
        factor = k.sub(other, float(count))
        derived = k.add(k.mul(derived, factor), product)
        product = k.mul(product, factor)
        inner = k.add(derived, k.mul(slope, product))
        total = k.add(total, k.mul(k.div(power, k.add(one, float(count))), inner))
    return _number(k, k.neg(k.mul(k.pow(k.sub(1.0, x), k.sub(1.0, other)), total)))


def _number(k: Any, found: Any) -> Any:
    return k.select(k.isnan(found), 0.0, found)


def _by_saddle_point(k: Any, x: Any, one: Any, other: Any) -> Any:
    """Rice's saddle point expansion, and a polynomial where it divides by nearly 0."""
    whole = k.add(one, other)
    mean = k.div(one, whole)
    spread = k.div(k.sqrt(k.div(k.mul(one, other), k.add(whole, 1.0))), whole)
    inner = k.le(k.abs(k.sub(x, mean)), k.mul(0.1, spread))
    return k.select(inner, _at_mean(k, x, one, other, whole), _off_mean(k, x, one, other, whole))


def _at_mean(k: Any, x: Any, one: Any, other: Any, whole: Any) -> Any:
    left = k.sub(1.0, x)
    square = k.mul(other, other)
    fourth = k.mul(k.mul(8.0, left), k.sub(k.mul(135.0, other), 11.0))
    third = k.sub(k.add(453.0, k.mul(k.mul(1620.0, other), left)), k.mul(455.0, x))
    second = k.sub(k.add(59.0, k.mul(180.0, other)), k.mul(90.0, x))
    first = k.add(43.0, k.mul(k.mul(20.0, k.add(16.0, k.mul(27.0, other))), x))
    found = k.add(k.mul(third, other), k.mul(one, fourth))
    found = k.add(k.mul(k.mul(3.0, second), square), k.mul(one, found))
    found = k.add(k.mul(k.mul(first, square), other), k.mul(one, found))
    found = k.add(k.mul(k.mul(47.0, x), k.mul(square, square)), k.mul(one, found))
    above = k.mul(k.add(1.0, k.mul(12.0, one)), k.add(1.0, k.mul(12.0, other)))
    cube = k.mul(k.mul(12960.0, one), k.mul(one, one))
    below = k.mul(k.mul(cube, square), k.add(1.0, k.mul(12.0, whole)))
    return k.div(k.mul(k.div(k.div(above, k.mul(whole, whole)), left), found), below)


def _off_mean(k: Any, x: Any, one: Any, other: Any, whole: Any) -> Any:
    apart = k.add(k.mul(one, k.sub(x, 1.0)), k.mul(other, x))
    above = k.mul(k.mul(2.0, k.mul(one, one)), k.sub(x, 1.0))
    above = k.add(above, k.mul(k.mul(one, other), k.sub(x, 1.0)))
    above = k.sub(above, k.mul(x, k.mul(other, other)))
    below = k.mul(k.sqrt(k.div(k.mul(2.0, one), other)), k.mul(whole, k.sqrt(whole)))
    first = k.div(above, k.mul(below, k.mul(apart, apart)))
    ratio = k.log(k.div(one, k.mul(whole, x)))
    product = k.div(k.mul(one, other), whole)
    third = k.div(k.sqrt(k.mul(8.0, product)), apart)
    depth = k.mul(other, k.log(k.div(other, k.mul(whole, k.sub(1.0, x)))))
    depth = k.add(depth, k.mul(one, ratio))
    fourth = k.div(1.0, k.mul(depth, k.sqrt(depth)))
    signed = k.select(k.lt(x, k.div(one, whole)), fourth, k.neg(fourth))
    found = k.add(first, k.mul(k.mul(0.5, ratio), k.add(third, signed)))
    stirling = k.mul(_stirling(k, one), k.div(_stirling(k, other), _stirling(k, whole)))
    return k.mul(stirling, k.mul(k.div(k.neg(x), k.sqrt(k.mul(2.0, product))), found))


def _stirling(k: Any, shape: Any) -> Any:
    inverse = k.div(1.0, k.mul(12.0, shape))
    return k.add(1.0, k.add(inverse, k.mul(0.5, k.mul(inverse, inverse))))


def _by_rational(k: Any, x: Any, shape: Any, whole: Any) -> Any:
    """What is exact to first order, times a rational function of logarithms."""
    u = k.log(x)
    a = k.sub(k.log(shape), u)
    b = k.sub(k.log(whole), a)
    above, below = (_polynomial(k, rows, u, a, b) for rows in _RATIONAL)
    slope = k.sub(k.digamma(whole), k.digamma(shape))
    return k.mul(k.div(above, below), k.div(k.mul(x, slope), k.sub(whole, shape)))


def _polynomial(k: Any, rows: Any, u: Any, a: Any, b: Any) -> Any:
    found = None
    for row in reversed(rows):
        across = None
        for start in (8, 4, 0):
            inner = k.constant(row[start + 3], dtypes.float64)
            for place in (2, 1, 0):
                inner = k.fma(b, inner, row[start + place])
            across = inner if across is None else k.fma(a, across, inner)
        found = across if found is None else k.fma(u, found, across)
    return found
