"""Powers, roots, exponentials and logarithms.

Keeps     a gradient reads the result where that is enough (sqrt, exp), so that the input is free.
Touches   ops.define.
Not here  how exp and log are computed (codegen/mathlib/)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout
from flambeau.ops.define import (
    INT_TO_FLOAT,
    Elementwise,
    Operand,
    Tensor,
    not_implemented,
    operator,
)

LN_2: Final = 0.6931471805599453
LN_10: Final = 2.302585092994046


@operator("square")
class Square(Elementwise):
    """input * input."""

    takes_complex = True
    holomorphic = True

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        # As input ** 2: the integer makes bool an integer.
        common = promotion.result_type((*operands, promotion.INTEGER))
        return common, common

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.mul(input, input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        if t.is_grad_enabled():  # as a power, whose derivatives end in zeros, not in nothing
            return grad * (input.pow(1) * 2)
        return grad * (input * 2)


@operator("sqrt")
class SquareRoot(Elementwise):
    """Square root; NaN below 0."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sqrt(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad / (2 * out)


@operator("rsqrt")
class ReciprocalSquareRoot(Elementwise):
    """1 / sqrt(input)."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.div(1, k.sqrt(input))

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return -0.5 * grad * (out * out * out)


@operator("reciprocal")
class Reciprocal(Elementwise):
    """1 / input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.3, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.div(1, input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return -grad * (out * out)


@operator("pow")
class Power(Elementwise):
    """input ** exponent; the common exponents are products and roots."""

    takes_complex = True
    holomorphic = True
    specials = {"exponent": (0, 0.5, 1, 2, 3, -0.5, -1, -2)}
    domain = {"input": (0.3, 2.0)}

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        common, result = super().promoted(operands, attributes)
        if common is dtypes.bool_ and type(operands[1]) is Layout:
            raise not_implemented("pow", common)
        return common, result

    def formula(self, k: Any, input: Operand, exponent: Operand) -> Any:
        if k.dtype_of(exponent if isinstance(input, (int, float)) else input).category < 2:
            return integer_power(k, input, exponent)
        if isinstance(exponent, (int, float)):
            return self.special(k, input, exponent)
        return k.pow(input, exponent)

    def special(self, k: Any, input: Any, exponent: float) -> Any:
        """The power for one of `specials`."""
        if exponent == 0:
            return k.constant(1, k.dtype_of(input))
        if exponent < 0:
            return k.div(1, self.special(k, input, -exponent))
        if exponent == 0.5:
            return k.sqrt(input)
        result = input
        for _ in range(int(exponent) - 1):
            result = k.mul(result, input)
        return result

    def vjp(self, t: Any, grad: Any, input: Any, exponent: Any, out: Any, needs: Any) -> Any:
        return (
            self.base_gradient(t, grad, input, exponent) if needs[0] else None,
            self.exponent_gradient(t, grad, input, exponent, out) if needs[1] else None,
        )

    saved_for = {"input": ("input", "exponent"), "exponent": ("input", "exponent", "out")}

    def base_gradient(self, t: Any, grad: Any, input: Any, exponent: Any) -> Any:
        """exponent * input ** (exponent - 1), and 0 for exponent 0, even at input 0."""
        if not isinstance(exponent, (int, float, complex)):
            slope = exponent * input.pow(exponent - 1)
            return t.where(exponent == 0, 0, grad * slope)
        if exponent == 0:
            return t.zeros_like(grad)
        if exponent == 2 and not t.is_grad_enabled():
            return grad * (input * 2)
        return grad * (input.pow(exponent - 1) * exponent)

    def exponent_gradient(self, t: Any, grad: Any, input: Any, exponent: Any, out: Any) -> Any:
        """out * log(input), and 0 where input is 0 and the exponent is not negative."""
        is_right = (exponent.real if exponent._layout.dtype.is_complex else exponent) >= 0
        if isinstance(input, (int, float, complex)):
            base = t.full_like(exponent, input, dtype=out.dtype)
            slope = out * base.log()
            return t.where(is_right, 0, grad * slope) if input == 0 else grad * slope
        flat = t.logical_and(input == 0, is_right)
        return grad * t.where(flat, 0, out * input.log())

    def samples(self, s: Any) -> list[Any]:
        special = [s(s.real(3, 4, low=0.3, high=2), each) for each in (2, 3, 0.5, -1, 1.7, 0)]
        return [*s.elementwise(self), *special, s(2.5, s.real(3, 4))]


def integer_power(k: Any, input: Any, exponent: Any) -> Any:
    """Power by squaring, wrapping as integers do; a negative exponent leaves only 1 and -1."""
    if isinstance(exponent, (int, float)) and exponent >= 0:
        result = k.constant(1, k.dtype_of(input))
        for _ in range(int(exponent)):
            result = k.mul(result, input)
        return result
    given = k.dtype_of(exponent if isinstance(input, (int, float)) else input)
    input, exponent = (
        k.constant(int(each), given) if isinstance(each, (int, float)) else each
        for each in (input, exponent)
    )
    one = k.constant(1, given)
    result, square, rest = one, input, exponent
    for _ in range(given.n_bits - (1 if given.is_signed else 0)):
        odd = k.ne(k.and_(rest, 1), 0)
        result = k.select(odd, k.mul(result, square), result)
        square = k.mul(square, square)
        rest = k.shift_right_logical(rest, 1)
    if not given.is_signed:
        return result
    odd = k.ne(k.and_(exponent, 1), 0)
    unit = k.select(k.and_(k.eq(input, -1), odd), -1, one)
    is_unit = k.or_(k.eq(input, 1), k.eq(input, -1))
    return k.select(k.lt(exponent, 0), k.select(is_unit, unit, 0), result)


@operator("float_power", inplace=False)
class FloatPower(Power):
    """input ** exponent in float64."""

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        common = promotion.result_type(operands)
        wide = dtypes.complex128 if common.is_complex else dtypes.float64
        return wide, wide

    def vjp(self, t: Any, grad: Any, input: Any, exponent: Any, out: Any, needs: Any) -> Any:
        # As wide as the result is; the caller converts each cotangent back.
        base, power = (
            each if isinstance(each, (int, float, complex)) else each.to(grad.dtype)
            for each in (input, exponent)
        )
        return super().vjp(t, grad, base, power, out, needs)


@operator("exp")
class Exponential(Elementwise):
    """e ** input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.exp(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * out


@operator("exp2", aliases=("special.exp2",))
class Exponential2(Elementwise):
    """2 ** input."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.exp2(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * out * LN_2


@operator("expm1", aliases=("special.expm1",))
class ExponentialMinus1(Elementwise):
    """e ** input - 1, exact near 0."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.expm1(input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return grad * (out + 1)


@operator("log")
class Logarithm(Elementwise):
    """Natural logarithm."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.log(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad / input


@operator("log2")
class Logarithm2(Elementwise):
    """Logarithm to base 2."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.log2(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad / (input * LN_2)


@operator("log10")
class Logarithm10(Elementwise):
    """Logarithm to base 10."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (0.2, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.log10(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad / (input * LN_10)


@operator("log1p", aliases=("special.log1p",))
class Logarithm1Plus(Elementwise):
    """log(1 + input), exact near 0."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    domain = {"input": (-0.8, 3.0)}

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.log1p(input)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad / (input + 1)


@operator("logaddexp", inplace=False)
class LogAddExp(Elementwise):
    """log(exp(input) + exp(other)), without overflow."""

    takes_complex = True
    holomorphic = True
    floating_kernel = "logaddexp_cpu"

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        if k.dtype_of(input).is_complex:
            is_low = k.lt(k.real(input), k.real(other))
            high, low = k.select(is_low, other, input), k.select(is_low, input, other)
            return k.add(high, k.log1p(k.exp(k.sub(low, high))))
        high = k.max(input, other)
        low = k.min(input, other)
        total = k.add(high, k.log1p(k.exp(k.sub(low, high))))
        # Equal infinities have no difference.
        infinite = k.and_(k.eq(input, other), k.eq(k.abs(input), float("inf")))
        return k.select(infinite, input, total)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        # Not by the result: of large numbers it is rounded off more than they differ.
        return (
            grad / (1 + (other - input).exp()) if needs[0] else None,
            grad / (1 + (input - other).exp()) if needs[1] else None,
        )


@operator("logaddexp2", inplace=False)
class LogAddExp2(Elementwise):
    """log2(2 ** input + 2 ** other), without overflow."""

    floating_kernel = "logaddexp2_cpu"

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        high = k.max(input, other)
        low = k.min(input, other)
        share = k.log1p(k.exp2(k.sub(low, high)))
        total = k.add(high, k.mul(share, 1 / LN_2))
        infinite = k.and_(k.eq(input, other), k.eq(k.abs(input), float("inf")))
        return k.select(infinite, input, total)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        return (
            grad / (1 + t.exp2(other - input)) if needs[0] else None,
            grad / (1 + t.exp2(input - other)) if needs[1] else None,
        )


@operator("xlogy", aliases=("special.xlogy",))
class XLogY(Elementwise):
    """input * log(other), 0 where input is 0 (unless other is NaN).

    logarithm   the word, in formulas and of tensors
    """

    logarithm = "log"
    promote = INT_TO_FLOAT
    domain = {"other": (0.2, 3.0)}

    def argument(self, other: Any) -> Any:
        """What the logarithm is taken of."""
        return other

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        product = k.mul(input, getattr(k, self.logarithm)(other))
        zero = k.and_(k.eq(input, 0), k.not_(k.isnan(other)))
        return k.select(zero, 0.0, product)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        input, other = (
            t.full((), each, dtype=grad.dtype, device=grad.device)
            if isinstance(each, (int, float))
            else each
            for each in (input, other)
        )
        argument = self.argument(other)
        into_input = None
        if needs[0]:
            flat = t.logical_and(input == 0, argument <= 0)
            into_input = grad * t.masked_fill(getattr(other, self.logarithm)(), flat, 0)
        return into_input, grad * input / argument if needs[1] else None


@operator("hypot")
class Hypotenuse(Elementwise):
    """sqrt(input^2 + other^2), without overflow in between."""

    floating_kernel = "hypot_cpu"

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        one, two = k.abs(input), k.abs(other)
        high, low = k.max(one, two), k.min(one, two)
        ratio = k.div(low, k.select(k.eq(high, 0), 1.0, high))
        length = k.mul(high, k.sqrt(k.fma(ratio, ratio, 1.0)))
        infinity = float("inf")
        infinite = k.or_(k.eq(one, infinity), k.eq(two, infinity))
        return k.select(infinite, infinity, length)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, out: Any, needs: Any) -> Any:
        return (
            grad * (input / out) if needs[0] else None,
            grad * (other / out) if needs[1] else None,
        )


@operator("ldexp")
class LoadExponent(Elementwise):
    """input * 2 ** other."""

    takes_complex = True
    holomorphic = True

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        common = promotion.result_type((*operands, promotion.REAL))
        return common, common

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.mul(input, k.exp2(other))

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, out: Any, needs: Any) -> Any:
        return (
            grad * t.exp2(other.to(grad.dtype)) if needs[0] else None,
            grad * out * LN_2 if needs[1] else None,
        )
