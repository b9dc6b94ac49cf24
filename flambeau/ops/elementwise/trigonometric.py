"""Trigonometric, hyperbolic and error functions.

Keeps     one class a function: the word of the vocabulary and its derivative.
Touches   ops.define.
Not here  how the words are computed (codegen/mathlib/)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Operand, Tensor, operator

PI: Final = 3.141592653589793
TWO_OVER_ROOT_PI: Final = 1.1283791670955126
# Bernoulli numbers of even index from B_2: coefficients of trigamma's asymptotic series.
BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


@operator("sin")
class Sine(Elementwise):
    """Sine of an angle in radians."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sin(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * input.cos()


@operator("cos")
class Cosine(Elementwise):
    """Cosine of an angle in radians."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.cos(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * -input.sin()


@operator("tan")
class Tangent(Elementwise):
    """Tangent of an angle in radians."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (-1.2, 1.2)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.tan(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * (out * out + 1)


@operator("asin", methods=("asin", "arcsin"), aliases=("arcsin",))
class ArcSine(Elementwise):
    """Angle in radians whose sine is the input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (-0.8, 0.8)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.asin(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * (1 - input * input).rsqrt()


@operator("acos", methods=("acos", "arccos"), aliases=("arccos",))
class ArcCosine(Elementwise):
    """Angle in radians whose cosine is the input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (-0.8, 0.8)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.acos(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * -(1 - input * input).rsqrt()


@operator("atan", methods=("atan", "arctan"), aliases=("arctan",))
class ArcTangent(Elementwise):
    """Angle in radians whose tangent is the input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.atan(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad / (input * input + 1)


@operator("atan2", methods=("atan2", "arctan2"), aliases=("arctan2",))
class ArcTangent2(Elementwise):
    """Angle in radians of the point (other, input), in (-pi, pi]."""

    promote = INT_TO_FLOAT
    domain = {"input": (0.3, 2.0)}

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.atan2(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        square = input * input + other * other
        # At the origin 0, as in torch.
        share = grad * t.masked_fill(square.reciprocal(), square == 0, 0)
        return share * other if needs[0] else None, share * -input if needs[1] else None


@operator("sinh")
class HyperbolicSine(Elementwise):
    """(e^x - e^-x) / 2."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sinh(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * input.cosh()


@operator("cosh")
class HyperbolicCosine(Elementwise):
    """(e^x + e^-x) / 2."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.cosh(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * input.sinh()


@operator("tanh", aliases=("nn.functional.tanh",))
class HyperbolicTangent(Elementwise):
    """sinh(x) / cosh(x)."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.tanh(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * (1 - out * out)


@operator("asinh", methods=("asinh", "arcsinh"), aliases=("arcsinh",))
class InverseHyperbolicSine(Elementwise):
    """Value whose hyperbolic sine is the input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.asinh(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * (input * input + 1).rsqrt()


@operator("acosh", methods=("acosh", "arccosh"), aliases=("arccosh",))
class InverseHyperbolicCosine(Elementwise):
    """Value of at least 0 whose hyperbolic cosine is the input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (1.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.acosh(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        if grad._layout.dtype.is_complex:
            return grad * ((input - 1).rsqrt() * (input + 1).rsqrt())
        return grad * (input * input - 1).rsqrt()


@operator("atanh", methods=("atanh", "arctanh"), aliases=("arctanh",))
class InverseHyperbolicTangent(Elementwise):
    """Value whose hyperbolic tangent is the input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (-0.8, 0.8)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.atanh(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad / (1 - input * input)


@operator("sigmoid", aliases=("special.expit", "nn.functional.sigmoid"))
class Sigmoid(Elementwise):
    """Logistic function, 1 / (1 + e^-x)."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sigmoid(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * ((1 - out) * out)


@operator("logit", aliases=("special.logit",))
class Logit(Elementwise):
    """log(x / (1 - x)); with eps, x is clamped to [eps, 1 - eps] first."""

    promote = INT_TO_FLOAT
    domain = {"input": (0.1, 0.9)}

    def formula(self, k: Any, input: Tensor, eps: float | None = None) -> Any:
        x = input if eps is None else k.min(k.max(input, eps), 1 - eps)
        return k.log(k.div(x, k.sub(1, x)))

    def vjp(self, t: Any, grad: Any, input: Any, eps: Any) -> Any:
        slope = grad / (input * (1 - input))
        if eps is None:
            return t.masked_fill(slope, t.logical_or(input < 0, input > 1), float("nan"))
        return t.where(t.logical_and(input >= eps, input <= 1 - eps), slope, 0)


@operator("erf", aliases=("special.erf",))
class ErrorFunction(Elementwise):
    """2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x."""

    complex_kernel = "erf_vml_cpu"
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.erf(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return TWO_OVER_ROOT_PI * (-(input * input)).exp() * grad


@operator("erfc", aliases=("special.erfc",))
class ComplementaryErrorFunction(Elementwise):
    """1 - erf(x), exact for large x."""

    complex_kernel = "erfc_vml_cpu"
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.erfc(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return -TWO_OVER_ROOT_PI * (-(input * input)).exp() * grad


@operator("erfinv", aliases=("special.erfinv",))
class InverseErrorFunction(Elementwise):
    """Value whose erf is the input."""

    complex_kernel = "erfinv_vml_cpu"
    promote = INT_TO_FLOAT
    domain = {"input": (-0.8, 0.8)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.erfinv(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return (1 / TWO_OVER_ROOT_PI) * (out * out).exp() * grad


@operator("lgamma", aliases=("special.gammaln",))
class LogGamma(Elementwise):
    """Logarithm of the absolute value of the gamma function."""

    complex_kernel = "lgamma_vml_cpu"
    promote = INT_TO_FLOAT
    domain = {"input": (0.5, 4.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.lgamma(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * t.digamma(input)


@operator("digamma", aliases=("special.digamma", "special.psi"))
class Digamma(Elementwise):
    """Derivative of lgamma."""

    complex_kernel = "digamma"
    promote = INT_TO_FLOAT
    domain = {"input": (0.5, 4.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.digamma(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * t.trigamma(input)


@operator("trigamma", function=False, inplace=False)
class Trigamma(Elementwise):
    """Derivative of digamma: the sum of 1 / (x + n)^2 over all n from 0.

    Source   Abramowitz and Stegun, 6.4.6, 6.4.7 and 6.4.12: ten terms, then the asymptotic series;
             by reflection for negative x."""

    promote = INT_TO_FLOAT
    complex_kernel = "trigamma"
    domain = {"input": (0.5, 4.0)}

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        negative = input < 0.5
        slope = -2 * t.special_zeta(3.0, t.where(negative, 1 - input, input))
        angle = t.where(negative, (input - input.round()) * PI, 1.0)
        reflected = slope - 2 * PI**3 * angle.cos() / angle.sin() ** 3
        return grad * t.where(negative, reflected, slope)

    def formula(self, k: Any, input: Tensor) -> Any:
        negative = k.lt(input, 0.5)
        x = k.select(negative, k.sub(1.0, input), input)
        total = k.constant(0.0, k.dtype_of(x))
        for _ in range(10):
            total = k.add(total, k.div(1.0, k.mul(x, x)))
            x = k.add(x, 1.0)
        inverse = k.div(1.0, x)
        square = k.mul(inverse, inverse)
        series = k.constant(BERNOULLI[-1], k.dtype_of(x))
        for coefficient in reversed(BERNOULLI[:-1]):
            series = k.fma(series, square, coefficient)
        tail = k.fma(k.mul(series, square), inverse, k.fma(square, 0.5, inverse))
        total = k.add(total, tail)
        sine = k.sin(k.mul(k.sub(input, k.rint(input)), PI))
        reflected = k.sub(k.div(PI * PI, k.mul(sine, sine)), total)
        return k.select(negative, reflected, total)


@operator("sinc", aliases=("special.sinc",))
class Sinc(Elementwise):
    """sin(pi x) / (pi x), 1 at 0."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.3, 2.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        angle = k.mul(input, PI)
        zero = k.eq(input, 0)
        return k.select(zero, 1.0, k.div(k.sin(angle), k.select(zero, 1.0, angle)))

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        angle = input * PI
        slope = grad * ((angle * angle.cos() - angle.sin()) / (angle * input))
        return t.masked_fill(slope, angle * angle == 0, 0)


@operator("deg2rad")
class DegreesToRadians(Elementwise):
    """Degrees to radians."""

    complex_error = (RuntimeError, "deg2rad is not supported for complex tensors.")
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.mul(input, PI / 180)

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad * (PI / 180)


@operator("rad2deg")
class RadiansToDegrees(Elementwise):
    """Radians to degrees."""

    complex_error = (RuntimeError, "rad2deg is not supported for complex tensors.")
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.mul(input, 180 / PI)

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad * (180 / PI)


@operator("copysign")
class CopySign(Elementwise):
    """|input| with the sign of other."""

    promote = INT_TO_FLOAT
    domain = {"input": (0.3, 2.0)}

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.copysign(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any) -> Any:
        return grad * t.masked_fill(out / input, input == 0, 0), t.zeros_like(grad)
