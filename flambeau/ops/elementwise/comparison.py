"""Comparisons, and the larger or smaller of two.

Keeps     a comparison with NaN is False (ne: True); NaN propagates through maximum, minimum and
          clamp, and is ignored by fmax and fmin.
Touches   ops.define.
Not here  extremes over dims (reduction/extremes.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout
from flambeau.base.promotion import Scalar
from flambeau.ops.define import (
    BOOL_RESULT,
    Elementwise,
    Operand,
    OptionalOperand,
    Tensor,
    Underivable,
    not_implemented,
    operator,
    type_name,
)


class Comparison(Elementwise):
    """A question about two values."""

    promote = BOOL_RESULT
    differentiable = False


@operator("eq")
class Equal(Comparison):
    """input == other."""

    takes_complex = True

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.eq(input, other)


@operator("ne", methods=("ne", "not_equal"), aliases=("not_equal",))
class NotEqual(Comparison):
    """input != other."""

    takes_complex = True

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.ne(input, other)


@operator("lt", methods=("lt", "less"), aliases=("less",))
class Less(Comparison):
    """input < other."""

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.lt(input, other)


@operator("le", methods=("le", "less_equal"), aliases=("less_equal",))
class LessEqual(Comparison):
    """input <= other."""

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.le(input, other)


@operator("gt", methods=("gt", "greater"), aliases=("greater",))
class Greater(Comparison):
    """input > other."""

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.gt(input, other)


@operator("ge", methods=("ge", "greater_equal"), aliases=("greater_equal",))
class GreaterEqual(Comparison):
    """input >= other."""

    def formula(self, k: Any, input: Tensor, other: Operand) -> Any:
        return k.ge(input, other)


class Classification(Elementwise):
    """A question about one value; integers are finite numbers."""

    promote = BOOL_RESULT
    inplace = False
    differentiable = False


@operator("isnan")
class IsNaN(Classification):
    """Whether a value is not a number."""

    takes_complex = True

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.ne(input, input)


@operator("isinf")
class IsInfinite(Classification):
    """Whether a value is an infinity."""

    takes_complex = True

    def formula(self, k: Any, input: Tensor) -> Any:
        if k.dtype_of(input).category < 2:
            return k.ne(input, input)
        if k.dtype_of(input).is_complex:
            return k.or_(self.formula(k, k.real(input)), self.formula(k, k.imag(input)))
        return k.eq(k.abs(input), float("inf"))


@operator("isposinf")
class IsPositiveInfinite(Classification):
    """Whether a value is +infinity."""

    complex_error = (RuntimeError, "isposinf does not support complex inputs.")

    def formula(self, k: Any, input: Tensor) -> Any:
        floating = k.dtype_of(input).is_floating_point
        return k.eq(input, float("inf")) if floating else k.ne(input, input)


@operator("isneginf")
class IsNegativeInfinite(Classification):
    """Whether a value is -infinity."""

    complex_error = (RuntimeError, "isneginf does not support complex inputs.")

    def formula(self, k: Any, input: Tensor) -> Any:
        floating = k.dtype_of(input).is_floating_point
        return k.eq(input, float("-inf")) if floating else k.ne(input, input)


@operator("isfinite")
class IsFinite(Classification):
    """Whether a value is neither NaN nor an infinity."""

    takes_complex = True

    def formula(self, k: Any, input: Tensor) -> Any:
        if k.dtype_of(input).category < 2:
            return k.eq(input, input)
        if k.dtype_of(input).is_complex:
            return k.and_(self.formula(k, k.real(input)), self.formula(k, k.imag(input)))
        return k.lt(k.abs(input), float("inf"))


@operator("isclose", inplace=False, differentiable=False)
class IsClose(Elementwise):
    """|input - other| <= atol + rtol * |other|, or equal."""

    takes_complex = True
    promote = BOOL_RESULT

    def validate(self, arguments: dict[str, Any]) -> None:
        input, other = arguments["input"], arguments["other"]
        if input.dtype is not other.dtype:
            raise RuntimeError(f"{type_name(input)} did not match {type_name(other)}")
        for name in ("rtol", "atol"):
            if arguments.get(name, 0) < 0:
                raise RuntimeError(
                    f"{name} must be greater than or equal to zero, but got {arguments[name]:g}"
                )

    def formula(
        self,
        k: Any,
        input: Tensor,
        other: Tensor,
        rtol: float = 1e-05,
        atol: float = 1e-08,
        equal_nan: bool = False,
    ) -> Any:
        close = k.eq(input, other)
        if equal_nan:
            close = k.or_(close, k.and_(k.ne(input, input), k.ne(other, other)))
        if rtol == 0 and atol == 0:
            return close
        if k.dtype_of(input).category < 2:
            input, other = (k.convert(each, dtypes.float64) for each in (input, other))
        difference = k.abs(k.sub(input, other))
        allowed = k.add(k.abs(k.mul(other, float(rtol))), float(atol))
        within = k.and_(k.lt(difference, float("inf")), k.le(difference, allowed))
        return k.or_(close, within)


@operator("maximum", inplace=False)
class Maximum(Elementwise):
    """The larger; NaN if either is."""

    complex_error = (RuntimeError, "maximum not implemented for complex tensors.")

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.max(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any) -> Any:
        # Equal values share the gradient.
        halved = t.where(input == other, grad / 2, grad)
        return t.masked_fill(halved, input < other, 0), t.masked_fill(halved, input > other, 0)


@operator("minimum", inplace=False)
class Minimum(Elementwise):
    """The smaller; NaN if either is."""

    complex_error = (RuntimeError, "minimum not implemented for complex tensors.")

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.min(input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any) -> Any:
        halved = t.where(input == other, grad / 2, grad)
        return t.masked_fill(halved, input > other, 0), t.masked_fill(halved, input < other, 0)


def ignoring_nan(k: Any, chosen: Any, input: Any, other: Any) -> Any:
    """`chosen`, or the one that is a number where only one is."""
    if not k.dtype_of(input).is_floating_point:
        return chosen
    return k.select(k.isnan(input), other, k.select(k.isnan(other), input, chosen))


@operator("fmax", inplace=False)
class FMax(Elementwise):
    """The larger; the other where one is NaN."""

    complex_error = (RuntimeError, "fmax not implemented for complex tensors.")

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return ignoring_nan(k, k.max(input, other), input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any) -> Any:
        taken = t.logical_or(input >= other, t.isnan(other))
        return t.where(taken, grad, 0), t.where(taken, 0, grad)


@operator("fmin", inplace=False)
class FMin(Elementwise):
    """The smaller; the other where one is NaN."""

    complex_error = (RuntimeError, "fmin not implemented for complex tensors.")

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return ignoring_nan(k, k.min(input, other), input, other)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any) -> Any:
        taken = t.logical_or(input <= other, t.isnan(other))
        return t.where(taken, grad, 0), t.where(taken, 0, grad)


@operator("clamp", methods=("clamp", "clip"), aliases=("clip",))
class Clamp(Elementwise):
    """The value, but at least min and at most max; max wins where they cross."""

    out_refusal = "Found dtype {given} but expected {result}"
    complex_error = (NotImplementedError, "clamp is not supported for complex types")

    def validate(self, arguments: dict[str, Any]) -> None:
        if arguments.get("min") is None and arguments.get("max") is None:
            raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
        bounds = [each for each in (arguments.get("min"), arguments.get("max")) if each is not None]
        has_tensor = any(type(each) is Layout and each.ndim > 0 for each in bounds)
        if has_tensor and any(type(each) is Scalar for each in bounds):
            raise TypeError("clamp(): min and max are both tensors or both numbers")

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        common, result = super().promoted(operands, attributes)
        n_tensors = sum(hasattr(each, "dtype") for each in operands[1:])
        if common is dtypes.bool_ and n_tensors != 1:  # one bound alone is a maximum or minimum
            raise not_implemented("clamp_cpu" if n_tensors else "clamp_scalar_cpu", common)
        return common, result

    def formula(
        self, k: Any, input: Tensor, min: OptionalOperand = None, max: OptionalOperand = None
    ) -> Any:
        value = input if min is None else k.max(input, min)
        return value if max is None else k.min(value, max)

    def vjp(self, t: Any, grad: Any, input: Any, min: Any, max: Any, needs: Any) -> Any:
        above = None if min is None else input >= min
        below = None if max is None else input <= max
        inside = below if above is None else above
        if above is not None and below is not None:
            inside = t.logical_and(above, below)
        low = high = None
        if needs[1]:
            at_low = input < min
            low = t.where(at_low if max is None else t.logical_and(at_low, min < max), grad, 0)
        if needs[2]:
            at_high = input > max
            high = t.where(at_high if min is None else t.logical_or(at_high, max < min), grad, 0)
        return t.where(inside, grad, 0) if needs[0] else None, low, high

    saved_for = {
        "input": ("input", "min", "max"),
        "min": ("input", "min", "max"),
        "max": ("input", "min", "max"),
    }

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 4), -0.5, 0.5),
            s(s.real(3, 4), min=0.1),
            s(s.real(3, 4), max=s.real(4)),
            s(s.real(3, 4), s.real(3, 1, low=-1, high=0), s.real(4, low=0, high=1)),
        ]


@operator("clamp_min")
class ClampMin(Clamp):
    """The value, but at least min."""

    def formula(self, k: Any, input: Tensor, min: Operand) -> Any:
        return k.max(input, min)

    def vjp(self, t: Any, grad: Any, input: Any, min: Any, needs: Any) -> Any:
        return super().vjp(t, grad, input, min, None, (*needs, False))[:2]

    saved_for = {"input": ("input", "min"), "min": ("input", "min")}

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0.1), s(s.real(3, 4), s.real(4))]


@operator("clamp_max")
class ClampMax(Clamp):
    """The value, but at most max."""

    def formula(self, k: Any, input: Tensor, max: Operand) -> Any:
        return k.min(input, max)

    def vjp(self, t: Any, grad: Any, input: Any, max: Any, needs: Any) -> Any:
        inside, _, high = super().vjp(t, grad, input, None, max, (needs[0], False, needs[1]))
        return inside, high

    saved_for = {"input": ("input", "max"), "max": ("input", "max")}

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0.1), s(s.real(3, 4), s.real(4))]


@operator("heaviside")
class Heaviside(Underivable, Elementwise):
    """0 below zero, 1 above, and `values` at zero."""

    complex_error = RuntimeError, "heaviside is not yet implemented for complex tensors."

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        if operands[0].dtype is not operands[1].dtype:
            raise RuntimeError(
                "heaviside is not yet implemented for tensors with different dtypes."
            )
        return operands[0].dtype, operands[0].dtype

    def formula(self, k: Any, input: Tensor, values: Tensor) -> Any:
        step = k.select(k.gt(input, 0), k.constant(1, k.dtype_of(input)), 0)
        return k.select(k.eq(input, 0), values, step)
