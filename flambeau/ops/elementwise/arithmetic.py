"""Sums, products, quotients and their kin, element by element.

Keeps     a fused multiply-add where torch's kernels have one too (alpha, addcmul, lerp).
Touches   ops.define.
Not here  powers and roots (powers.py), rounding to integers (rounding.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout
from flambeau.base.promotion import BOOLEAN, COMPLEX, REAL
from flambeau.ops.define import (
    DEFAULT,
    INT_TO_FLOAT,
    SAME,
    Bound,
    Elementwise,
    Number,
    Operand,
    Operator,
    Tensor,
    Underivable,
    c_type_name,
    check_floating,
    not_implemented,
    operator,
)


def times(tensor: Any, factor: float) -> Any:
    """`tensor * factor`, and the tensor itself for 1."""
    return tensor if factor == 1 else tensor * factor


def scaled_sum(k: Any, input: Any, other: Any, alpha: Any) -> Any:
    """input + other * alpha, rounded once where floating."""
    if isinstance(alpha, (int, float)) and alpha in (1, -1):
        return k.add(input, other) if alpha == 1 else k.sub(input, other)
    if k.dtype_of(input).is_floating_point:
        return k.fma(other, alpha, input)
    return k.add(input, k.mul(other, alpha))


def is_bool(operand: Any) -> bool:
    """Whether an operand, seen in inference, is a bool tensor or number."""
    return operand is BOOLEAN or getattr(operand, "dtype", None) is dtypes.bool_


def check_factor(name: str, factor: Any, *operands: Any) -> None:
    """A factor (alpha, beta) may not be of a higher kind than the result."""
    if factor not in (REAL, BOOLEAN, COMPLEX):
        return
    common = promotion.result_type(operands)
    if factor is COMPLEX and common.is_floating_point:
        raise RuntimeError(
            f"For non-complex input tensors, argument {name} must not be a complex number."
        )
    if factor in (REAL, COMPLEX) and common.category < 2:
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )
    if factor is BOOLEAN and common is not dtypes.bool_:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")


@operator("add")
class Add(Elementwise):
    """input + alpha * other."""

    takes_complex = True
    specials = {"alpha": (1,)}

    def validate(self, arguments: dict[str, Any]) -> None:
        check_factor("alpha", arguments.get("alpha"), arguments["input"], arguments["other"])

    def formula(self, k: Any, input: Operand, other: Operand, *, alpha: Number = 1) -> Any:
        return scaled_sum(k, input, other, alpha)

    def vjp(self, t: Any, grad: Any, alpha: Any) -> Any:
        return grad, times(grad, alpha.conjugate())


@operator("sub", methods=("sub", "subtract"), aliases=("subtract",))
class Subtract(Elementwise):
    """input - alpha * other."""

    takes_complex = True
    specials = {"alpha": (1,)}

    def validate(self, arguments: dict[str, Any]) -> None:
        n_bools = sum(is_bool(arguments[name]) for name in ("input", "other"))
        if n_bools == 2:
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
                "`^` or `logical_xor()` operator instead."
            )
        if n_bools:
            raise RuntimeError(
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
                "trying to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        check_factor("alpha", arguments.get("alpha"), arguments["input"], arguments["other"])

    def formula(self, k: Any, input: Operand, other: Operand, *, alpha: Number = 1) -> Any:
        return scaled_sum(k, input, other, -alpha if alpha == 1 else k.neg(alpha))

    def vjp(self, t: Any, grad: Any, alpha: Any, needs: Any) -> Any:
        return grad, times(grad, -alpha.conjugate()) if needs[1] else None


@operator("rsub")
class ReverseSubtract(Subtract):
    """other - alpha * input."""

    inplace = False

    def formula(self, k: Any, input: Tensor, other: Operand, *, alpha: Number = 1) -> Any:
        return scaled_sum(k, other, input, -alpha if alpha == 1 else k.neg(alpha))

    def vjp(self, t: Any, grad: Any, alpha: Any, needs: Any) -> Any:
        return times(grad, -alpha.conjugate()) if needs[0] else None, grad


@operator("mul", methods=("mul", "multiply"), aliases=("multiply",))
class Multiply(Elementwise):
    """input * other."""

    takes_complex = True
    holomorphic = True
    taken_exactly = ("other",)
    saved_for = {"input": ("other",), "other": ("input",)}

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.mul(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        return grad * other if needs[0] else None, grad * input if needs[1] else None


def _as_divisor(k: Any, input: Any, other: Any) -> Any:
    """The divisor as an operand; the number 0 comes as itself."""
    return k.constant(other, k.dtype_of(input)) if isinstance(other, (int, float)) else other


def _divisor_bounds(input: Any, other: Any) -> list[Bound]:
    """Integers are not divided by 0. A number 0 is refused here: it has a signature of its own."""

    def error(value: int) -> Exception:
        return RuntimeError(
            helped(
                "ZeroDivisionError",
                given="a divisor of 0 in a division of integers",
                fix="divide floating tensors, or mask the zeros: torch.where(other == 0, 1, other)",
            )
        )

    for each in (input, other):
        if isinstance(each, Layout):
            if each.dtype.category > 1:
                return []
        elif not isinstance(each, int):
            return []
    if isinstance(other, Layout):
        return [("other", None, None, error)]
    if other == 0 and not (isinstance(input, Layout) and not input.n_elements):
        raise error(0)
    return []


@operator("div", methods=("div", "divide"), aliases=("divide",))
class Divide(Elementwise):
    """input / other; rounding_mode "trunc" or "floor" rounds the quotient."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT
    specials = {"other": (0,)}
    taken_exactly = ("other",)
    bounds_need = "rounding_mode"

    def bounds(self, input: Any, other: Any, rounding_mode: str | None = None) -> list[Bound]:
        return _divisor_bounds(input, other) if rounding_mode is not None else []

    def validate(self, arguments: dict[str, Any]) -> None:
        mode = arguments.get("rounding_mode")
        if mode not in (None, "trunc", "floor"):
            raise RuntimeError(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                f"'{mode}'"
            )

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        mode = attributes.get("rounding_mode")
        if mode is None:
            return promotion.promote(INT_TO_FLOAT, operands)
        common, result = promotion.promote(DEFAULT, operands)
        if common is dtypes.bool_ or common.is_complex:
            raise not_implemented(f"div_{mode}_cpu", common)
        return common, result

    def formula(
        self, k: Any, input: Operand, other: Operand, *, rounding_mode: str | None = None
    ) -> Any:
        other = _as_divisor(k, input, other)
        if rounding_mode == "floor":
            return floor_quotient(k, input, other)
        if k.dtype_of(input).category >= 2:
            quotient = k.div(input, other)
            return k.trunc(quotient) if rounding_mode == "trunc" else quotient
        return k.quotient(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, rounding_mode: Any, needs: Any) -> Any:
        if rounding_mode is not None:
            return t.zeros_like(grad), t.zeros_like(grad)
        return self.quotient_gradient(grad, input, other, needs)

    def quotient_gradient(self, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        """Cotangents of a true division."""
        return (
            grad / other if needs[0] else None,
            -grad * ((input / other) / other) if needs[1] else None,
        )

    saved_for = {"input": ("other",), "other": ("input", "other")}

    def samples(self, s: Any) -> list[Any]:
        return [
            *s.elementwise(self),
            s(s.real(3, 4), s.real(4, low=1, high=2), rounding_mode="floor"),
            s(s.real(3, 4), 0.7, rounding_mode="trunc"),
        ]


@operator("true_divide")
class TrueDivide(Divide):
    """input / other."""

    bounds_need = ""
    bounds = Operator.bounds

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.div(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        return self.quotient_gradient(grad, input, other, needs)

    def samples(self, s: Any) -> list[Any]:
        return s.elementwise(self)


def floor_quotient(k: Any, input: Any, other: Any) -> Any:
    """Quotient rounded down: Python's //, which torch follows for floats too."""
    if not k.dtype_of(input).is_floating_point:
        quotient = k.quotient(input, other)
        remainder = k.modulo(input, other)
        opposite = k.ne(k.lt(remainder, 0), k.lt(other, 0))
        inexact = k.and_(k.ne(remainder, 0), opposite)
        signed = k.dtype_of(input).is_signed
        return k.select(inexact, k.sub(quotient, 1), quotient) if signed else quotient
    remainder = k.fmod(input, other)
    quotient = k.div(k.sub(input, remainder), other)
    opposite = k.ne(k.lt(remainder, 0), k.lt(other, 0))
    lower = k.and_(k.ne(remainder, 0), opposite)
    quotient = k.select(lower, k.sub(quotient, 1), quotient)
    floor = k.floor(quotient)
    floor = k.select(k.gt(k.sub(quotient, floor), 0.5), k.add(floor, 1), floor)
    plain = k.div(input, other)
    floor = k.select(k.eq(quotient, 0), k.copysign(k.constant(0, k.dtype_of(input)), plain), floor)
    return k.select(k.eq(other, 0), plain, floor)


@operator("floor_divide")
class FloorDivide(Underivable, Elementwise):
    """input // other, rounded down."""

    complex_kernel = "div_floor_cpu"
    specials = {"other": (0,)}
    taken_exactly = ("other",)

    def bounds(self, input: Any, other: Any) -> list[Bound]:
        return _divisor_bounds(input, other)

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented("div_floor_cpu", common)

    domain = {"other": (0.5, 2.0)}

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return floor_quotient(k, input, _as_divisor(k, input, other))


@operator("remainder")
class Remainder(Elementwise):
    """input - other * floor(input / other): the sign is other's."""

    domain = {"other": (0.5, 2.0)}
    specials = {"other": (0,)}

    def bounds(self, input: Any, other: Any) -> list[Bound]:
        return _divisor_bounds(input, other)

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented("remainder_cpu", common)

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        other = _as_divisor(k, input, other)
        floating = k.dtype_of(input).is_floating_point
        remainder = k.fmod(input, other) if floating else k.modulo(input, other)
        opposite = k.ne(k.lt(remainder, 0), k.lt(other, 0))
        moved = k.and_(k.ne(remainder, 0), opposite)
        return k.select(moved, k.add(remainder, other), remainder)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        quotient = t.div(input, other, rounding_mode="floor") if needs[1] else None
        return grad, -grad * quotient if needs[1] else None

    saved_for = {"input": (), "other": ("input", "other")}


@operator("fmod")
class Fmod(Elementwise):
    """input - other * trunc(input / other): the sign is input's."""

    domain = {"other": (0.5, 2.0)}
    specials = {"other": (0,)}

    def bounds(self, input: Any, other: Any) -> list[Bound]:
        return _divisor_bounds(input, other)

    saved_for = {"input": (), "other": ("input", "other")}

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented("fmod_cpu", common)

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        other = _as_divisor(k, input, other)
        if k.dtype_of(input).is_floating_point:
            return k.fmod(input, other)
        return k.modulo(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        quotient = t.div(input, other, rounding_mode="trunc") if needs[1] else None
        return grad, -grad * quotient if needs[1] else None


@operator("addcmul")
class AddProduct(Elementwise):
    """input + value * tensor1 * tensor2."""

    takes_complex = True
    holomorphic = True
    specials = {"value": (1,)}
    saved_for = {"input": (), "tensor1": ("tensor2",), "tensor2": ("tensor1",)}

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented("addcmul_cpu_out", common)

    def formula(
        self, k: Any, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1
    ) -> Any:
        return scaled_sum(k, input, tensor1 if value == 1 else k.mul(value, tensor1), tensor2)

    def vjp(self, t: Any, grad: Any, tensor1: Any, tensor2: Any, value: Any, needs: Any) -> Any:
        return (
            grad,
            grad * times(tensor2, value) if needs[1] else None,
            grad * times(tensor1, value) if needs[2] else None,
        )


@operator("addcdiv")
class AddQuotient(Elementwise):
    """input + value * tensor1 / tensor2."""

    takes_complex = True
    holomorphic = True
    specials = {"value": (1,)}
    saved_for = {"input": (), "tensor1": ("tensor2",), "tensor2": ("tensor1", "tensor2")}
    domain = {"tensor2": (0.5, 2.0)}

    def check(self, common: dtype) -> None:
        if common.category < 2:
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported, and in a future  release "
                "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
                "behavior can be implemented as (input + value * torch.trunc(tensor1 / "
                "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
                "tensor2) for float inputs. The future addcdiv behavior is just the latter "
                "implementation: (input + value * tensor1 / tensor2), for all dtypes."
            )

    def formula(
        self, k: Any, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1
    ) -> Any:
        return k.add(input, k.div(tensor1 if value == 1 else k.mul(value, tensor1), tensor2))

    def vjp(self, t: Any, grad: Any, tensor1: Any, tensor2: Any, value: Any, needs: Any) -> Any:
        return (
            grad,
            grad * (value / tensor2) if needs[1] else None,
            -grad * (value * tensor1 / (tensor2 * tensor2)) if needs[2] else None,
        )


@operator("lerp")
class Lerp(Elementwise):
    """Point a share `weight` of the way from input to end; exact at weight 0 and 1."""

    takes_complex = True
    holomorphic = True
    promote = SAME
    taken_exactly = ("weight",)
    saved_for = {"input": ("weight",), "end": ("weight",), "weight": ("input", "end")}

    def validate(self, arguments: dict[str, Any]) -> None:
        input = arguments["input"]
        for name in ("end", "weight"):
            other = arguments[name]
            is_one = name == "weight" and not getattr(other, "shape", ())  # is taken as a number
            if hasattr(other, "dtype") and other.dtype is not input.dtype and not is_one:
                raise RuntimeError(
                    f"expected dtype {c_type_name(input)} for `{name}` but got dtype "
                    f"{c_type_name(other)}"
                )
        kind = "tensor" if hasattr(arguments["weight"], "dtype") else "scalar"
        if not input.dtype.is_complex:
            check_floating(f"lerp_kernel_{kind}", input)

    def formula(self, k: Any, input: Tensor, end: Tensor, weight: Operand) -> Any:
        near = k.lt(k.abs(weight), 0.5)
        share = k.select(near, weight, k.sub(weight, 1))
        return k.fma(share, k.sub(end, input), k.select(near, input, end))

    def vjp(self, t: Any, grad: Any, input: Any, end: Any, weight: Any, needs: Any) -> Any:
        return (
            grad * (1 - weight) if needs[0] else None,
            grad * weight if needs[1] else None,
            grad * (end - input) if needs[2] else None,
        )
