"""Signs: negation, absolute values, the sign itself.

Keeps     the sign of a complex number is the number of length 1 in its direction.
Touches   ops.define.
Not here  sums and products (arithmetic.py), conjugates and angles (complex_parts.py)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.define import (
    AS_GIVEN,
    BOOL_RESULT,
    Elementwise,
    Tensor,
    not_implemented,
    operator,
)

NO_COMPLEX_SIGN: Final = (
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn "
    "instead."
)


def direction(tensor: Any) -> Any:
    """The sign of a tensor: derivative of its absolute value."""
    return tensor.sgn() if tensor._layout.dtype.is_complex else tensor.sign()


@operator("neg", methods=("neg", "negative"), aliases=("negative",))
class Negate(Elementwise):
    """-input."""

    out_refusal = AS_GIVEN
    takes_complex = True

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead."
            )

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.neg(input)

    def vjp(self, t: Any, grad: Any) -> Any:
        return -grad


@operator("abs", methods=("abs", "absolute"), aliases=("absolute",))
class Absolute(Elementwise):
    """|input|."""

    out_refusal = AS_GIVEN
    takes_complex = True
    gives_real = True

    def takes_out(self, result: dtype, given: dtype) -> bool:
        return given is result or given.is_complex

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented("abs_cpu", common)

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.abs(input) if k.dtype_of(input).is_signed else input

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * direction(input)


@operator("sign")
class Sign(Elementwise):
    """-1, 0 or 1; NaN gives 0, as torch's."""

    out_refusal = AS_GIVEN
    complex_error: ClassVar[tuple[type[Exception], str] | None] = (
        NotImplementedError, NO_COMPLEX_SIGN,
    )  # fmt: skip

    def formula(self, k: Any, input: Tensor) -> Any:
        one = k.constant(1, k.dtype_of(input))
        positive = k.select(k.gt(input, 0), one, 0)
        return k.select(k.lt(input, 0), -1, positive) if k.dtype_of(input).is_signed else positive

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.zeros_like(grad)


@operator("sgn")
class ComplexSign(Sign):
    """sign, and of complex numbers the number of length 1 in their direction, 0 for 0."""

    takes_complex = True
    complex_error = None

    def formula(self, k: Any, input: Tensor) -> Any:
        if not k.dtype_of(input).is_complex:
            return super().formula(k, input)
        length = k.abs(input)
        is_zero = k.eq(length, 0)
        divisor = k.select(is_zero, 1.0, length)
        parts = (k.div(part, divisor) for part in (k.real(input), k.imag(input)))
        return k.pair(*[k.select(is_zero, 0.0, part) for part in parts])

    def vjp(self, t: Any, grad: Any, input: Any, out: Any) -> Any:
        if not grad._layout.dtype.is_complex:
            return t.zeros_like(grad)
        length = input.abs()
        turning = grad - t.real(grad * t.conj_physical(out)) * out
        return t.masked_fill(turning / length, length == 0, 0)


@operator("signbit", inplace=False)
class SignBit(Elementwise):
    """Whether the sign is a minus, -0 included."""

    promote = BOOL_RESULT
    differentiable = False
    complex_error = NotImplementedError, "signbit is not implemented for complex tensors."

    def formula(self, k: Any, input: Tensor) -> Any:
        if k.dtype_of(input).is_floating_point:
            return k.lt(k.copysign(k.constant(1.0, k.dtype_of(input)), input), 0)
        return k.lt(input, 0)
