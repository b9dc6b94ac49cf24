"""Logic on truth values and bits, and choosing by a condition.

Keeps     any value but 0 is true; shift counts outside the width are defined by the vocabulary.
Touches   ops.define.
Not here  any and all over dims (reduction/sums.py), boolean indexing (indexing)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import contiguous
from flambeau.ops.define import (
    AS_GIVEN,
    BOOL_RESULT,
    Elementwise,
    Inferred,
    Operand,
    Operator,
    Tensor,
    c_type_name,
    not_implemented,
    operator,
)
from flambeau.ops.elementwise.copying import refuse_complex_value


class Logical(Elementwise):
    """A truth value of truth values."""

    takes_complex = True
    promote = BOOL_RESULT
    differentiable = False


@operator("logical_and")
class LogicalAnd(Logical):
    """Both are true."""

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.and_(k.ne(input, 0), k.ne(other, 0))


@operator("logical_or")
class LogicalOr(Logical):
    """At least one is true."""

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.or_(k.ne(input, 0), k.ne(other, 0))


@operator("logical_xor")
class LogicalXor(Logical):
    """One is true, the other not."""

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.ne(k.ne(input, 0), k.ne(other, 0))


@operator("logical_not")
class LogicalNot(Logical):
    """It is not true."""

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.eq(input, 0)


class Bitwise(Elementwise):
    """An operation on the bits of integers, or on truth values."""

    keeps_bool = True
    differentiable = False

    def check(self, common: dtype) -> None:
        if common.category > 1:
            raise not_implemented(f"{self.name}_cpu", common)

    def samples(self, s: Any) -> list[Any]:
        if "other" not in self.kinds():
            return [s(s.integer(3, 4)), s(s.boolean(3, 4))]
        return [
            s(s.integer(3, 4), s.integer(4)),
            s(s.boolean(3, 1), s.boolean(4)),
            s(s.integer(3, 4), 3),
        ]


@operator("bitwise_and")
class BitwiseAnd(Bitwise):
    """Bits set in both."""

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.and_(input, other)


@operator("bitwise_or")
class BitwiseOr(Bitwise):
    """Bits set in either."""

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.or_(input, other)


@operator("bitwise_xor")
class BitwiseXor(Bitwise):
    """Bits set in one of them."""

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.xor(input, other)


@operator("bitwise_not")
class BitwiseNot(Bitwise):
    """Bits flipped."""

    out_refusal = AS_GIVEN

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.not_(input)


class Shift(Bitwise):
    """A shift of integers; bool is refused."""

    def check_complex(self, common: dtype) -> None:
        self.check(common)

    keeps_bool = False
    kernel = ""

    def check(self, common: dtype) -> None:
        if common.category != 1:
            raise not_implemented(self.kernel, common)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.integer(3, 4), s.integer(4, low=0, high=5)), s(s.integer(3, 4), 2)]


@operator("bitwise_left_shift")
class LeftShift(Shift):
    """input * 2 ** other, bits beyond the width lost."""

    kernel = "lshift_cpu"

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.shift_left(input, other)


@operator("bitwise_right_shift")
class RightShift(Shift):
    """input / 2 ** other, rounded down."""

    kernel = "rshift_cpu"

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        return k.shift_right(input, other)


@operator("where", methods=())
class Where(Operator):
    """input where the condition holds, other elsewhere; the method is input.where(condition,
    other)."""

    out_refusal = "Expected out type to be {result} but got {given}"

    # Gradients choose between a cotangent and 0: a constant of the kernel.
    specials = {"input": (0,), "other": (0,)}

    def infer(self, condition: Tensor, input: Operand, other: Operand) -> Inferred:
        if condition.dtype not in (dtypes.bool_, dtypes.uint8):
            raise RuntimeError(
                helped(
                    "where expected condition to be a boolean tensor, but got a tensor with dtype "
                    f"{promotion.SCALAR_TYPE_NAMES[condition.dtype.name]}",
                    fix="compare first, as in x != 0",
                )
            )
        common = promotion.result_type((input, other))
        out = shapes.elementwise_layout((condition, input, other), common)
        return Inferred((out,), {"common": common})

    def lower(self, b: Any, condition: Any, input: Any, other: Any, common: dtype) -> Any:
        compute = common.compute
        given = []
        for each in (input, other):
            if hasattr(each, "shape"):
                # A number in a map takes the dtype beside it: here that may be the condition's.
                given.append(each if each.shape else b.convert(b.memory(each), compute))

        def formula(k: Any, chosen: Any, *values: Any) -> Any:
            rest = iter(values)
            yes, no = (
                k.convert(next(rest), compute) if hasattr(each, "shape") else k.constant(0, compute)
                for each in (input, other)
            )
            return k.select(k.convert(chosen, dtypes.bool_), yes, no)

        return b.map(formula, condition, *given, dtype=common)

    def vjp(self, t: Any, grad: Any, condition: Any, needs: Any) -> Any:
        return (
            None,
            t.where(condition, grad, 0) if needs[1] else None,
            t.where(condition, 0, grad) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.boolean(3, 4), s.real(3, 4), s.real(4)),
            s(s.boolean(4), s.real(3, 1), 0.5),
            s(s.boolean(3, 1), 1.0, s.real(4)),
        ]


@operator("masked_fill")
class MaskedFill(Operator):
    """input, but `value` where the mask is True."""

    inplace = True
    writes_chosen = True

    def infer(self, input: Tensor, mask: Tensor, value: Operand) -> Inferred:
        if mask.dtype is not dtypes.bool_:
            raise RuntimeError(
                helped(
                    "masked_fill_ only supports boolean masks, but got mask with dtype "
                    f"{c_type_name(mask)}",
                    fix="mask.bool(), or compare first",
                )
            )
        if hasattr(value, "shape") and value.shape:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        refuse_complex_value(input, value)
        shape = shapes.broadcast_shapes(input.shape, mask.shape)
        out = contiguous(shape, input.dtype, shapes.common_device((input, mask)))
        return Inferred((out,), {"common": input.dtype})

    def lower(self, b: Any, input: Any, mask: Any, value: Any, common: dtype) -> Any:
        def formula(k: Any, kept: Any, masked: Any, number: Any) -> Any:
            return k.select(masked, k.convert(number, common.compute), kept)

        return b.map(formula, input, mask, value, dtype=common)

    def vjp(self, t: Any, grad: Any, mask: Any, needs: Any) -> Any:
        return (
            t.masked_fill(grad, mask, 0) if needs[0] else None,
            None,
            t.where(mask, grad, 0) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 4), s.boolean(3, 4), 0.5),
            s(s.real(3, 1), s.boolean(4), s.real()),
        ]
