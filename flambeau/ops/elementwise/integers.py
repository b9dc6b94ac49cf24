"""Powers of two, steps and signs.

Keeps     -0 has a sign, and is zero for steps.
Touches   ops.define.
Not here  divisors (tensor.public.statistics.divisors), shifts (logical.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import promotion
from flambeau.base.dtypes import dtype
from flambeau.ops.define import BOOL_RESULT, Elementwise, Tensor, operator


@operator("ldexp")
class LoadExponent(Elementwise):
    """input * 2 ** other."""

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
            grad * out * 0.6931471805599453 if needs[1] else None,
        )


@operator("heaviside")
class Heaviside(Elementwise):
    """0 below zero, 1 above, and `values` at zero."""

    differentiable = False

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


@operator("signbit", inplace=False)
class SignBit(Elementwise):
    """Whether the sign is a minus, -0 included."""

    promote = BOOL_RESULT
    differentiable = False

    def formula(self, k: Any, input: Tensor) -> Any:
        if k.dtype_of(input).is_floating_point:
            return k.lt(k.copysign(k.constant(1.0, k.dtype_of(input)), input), 0)
        return k.lt(input, 0)
