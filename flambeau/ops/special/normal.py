"""Functions of the normal distribution, entropy, scaled error functions.

Keeps     tails keep their relative accuracy: erfcx by a continued fraction, the quantile by one
          step of Halley's on a rational approximation.
Touches   ops.define, ops.elementwise.powers.
Not here  erf and its inverse (ops.elementwise.trigonometric).
Source    Abramowitz and Stegun, 7.1.14; P. Acklam's approximation of the quantile."""

from __future__ import annotations

from typing import Any, Final

from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Tensor, operator
from flambeau.ops.elementwise.powers import XLogY

_ROOT_HALF: Final = 0.7071067811865476
_ROOT_PI: Final = 1.772453850905516
_ROOT_2_PI: Final = 2.5066282746310002
_CENTRE: Final = (
    (-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02, 1.383577518672690e02,
     -3.066479806614716e01, 2.506628277459239e00),
    (-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02, 6.680131188771972e01,
     -1.328068155288572e01, 1.0),
)  # fmt: skip
_TAIL: Final = (
    (-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00,
     -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00),
    (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00,
     1.0),
)  # fmt: skip
_TAIL_BELOW: Final = 0.02425


def _horner(k: Any, x: Any, coefficients: tuple[float, ...]) -> Any:
    total = k.constant(coefficients[0], k.dtype_of(x))
    for coefficient in coefficients[1:]:
        total = k.fma(total, x, coefficient)
    return total


def erfcx(k: Any, x: Any) -> Any:
    """exp(x^2) erfc(x)."""
    plain = k.mul(k.exp(k.mul(x, x)), k.erfc(x))
    large = k.max(x, 3.0)
    rest = large
    for n in range(24, 0, -1):
        rest = k.add(large, k.div(0.5 * n, rest))
    return k.select(k.lt(x, 3.0), plain, k.div(1.0 / _ROOT_PI, rest))


@operator("special_erfcx", aliases=("special.erfcx",), function=False, inplace=False)
class ScaledComplementaryError(Elementwise):
    """exp(input^2) erfc(input), which does not vanish for large input."""

    promote = INT_TO_FLOAT
    refuses_halves = True

    def formula(self, k: Any, input: Tensor) -> Any:
        return erfcx(k, input)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any) -> Any:
        return grad * (2 * input * out - 2 / _ROOT_PI)


@operator("special_entr", aliases=("special.entr",), function=False, inplace=False)
class Entropy(Elementwise):
    """-input log(input), 0 at 0, -infinity below."""

    promote = INT_TO_FLOAT
    domain = {"input": (0.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        found = k.neg(k.mul(input, k.log(input)))
        found = k.select(k.eq(input, 0), 0.0, found)
        return k.select(k.lt(input, 0), float("-inf"), found)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * (-input.log() - 1)


@operator("special_ndtr", aliases=("special.ndtr",), function=False, inplace=False)
class NormalDistribution(Elementwise):
    """Area under the standard normal curve up to input."""

    promote = INT_TO_FLOAT
    complex_kernel = "erf_vml_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.mul(k.erfc(k.mul(input, -_ROOT_HALF)), 0.5)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * (-0.5 * input * input).exp() / _ROOT_2_PI


@operator("special_log_ndtr", aliases=("special.log_ndtr",), function=False, inplace=False)
class LogNormalDistribution(Elementwise):
    """log of ndtr, exact far below 0."""

    promote = INT_TO_FLOAT
    refuses_halves = True

    def formula(self, k: Any, input: Tensor) -> Any:
        scaled = k.mul(input, _ROOT_HALF)
        below = k.min(scaled, -0.7)
        tail = k.sub(k.log(k.mul(erfcx(k, k.neg(below)), 0.5)), k.mul(below, below))
        above = k.log1p(k.mul(k.erfc(scaled), -0.5))
        return k.select(k.lt(scaled, -0.7), tail, above)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * ((2 / _ROOT_2_PI) / t.special_erfcx(input * -_ROOT_HALF))


@operator("special_ndtri", aliases=("special.ndtri",), function=False, inplace=False)
class NormalQuantile(Elementwise):
    """Where the standard normal curve has the area input below."""

    promote = INT_TO_FLOAT
    refuses_halves = True
    domain = {"input": (0.02, 0.98)}

    def formula(self, k: Any, input: Tensor) -> Any:
        upper = k.gt(input, 0.5)
        p = k.select(upper, k.sub(1.0, input), input)
        centred = k.sub(p, 0.5)
        square = k.mul(centred, centred)
        middle = k.div(
            k.mul(_horner(k, square, _CENTRE[0]), centred), _horner(k, square, _CENTRE[1])
        )
        root = k.sqrt(k.mul(k.log(p), -2.0))
        tail = k.div(_horner(k, root, _TAIL[0]), _horner(k, root, _TAIL[1]))
        x = k.select(k.lt(p, _TAIL_BELOW), tail, middle)
        error = k.sub(k.mul(k.erfc(k.mul(x, -_ROOT_HALF)), 0.5), p)
        step = k.mul(k.mul(error, _ROOT_2_PI), k.exp(k.mul(k.mul(x, x), 0.5)))
        x = k.sub(x, k.div(step, k.fma(k.mul(x, step), 0.5, 1.0)))
        x = k.select(k.eq(p, 0), float("-inf"), k.select(k.eq(p, 0.5), 0.0, x))
        return k.select(upper, k.neg(x), x)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * _ROOT_2_PI * (0.5 * out * out).exp()


@operator("special_xlog1py", aliases=("special.xlog1py",), function=False, inplace=False)
class XLog1PY(XLogY):
    """input * log1p(other), 0 where input is 0 (unless other is NaN)."""

    logarithm = "log1p"
    domain = {"other": (-0.8, 3.0)}

    def argument(self, other: Any) -> Any:
        return other + 1
