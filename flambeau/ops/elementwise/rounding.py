"""Rounding to integers, the parts of a number, and replacing what is not finite.

Keeps     integers pass unchanged; gradients of steps are zero.
Touches   ops.define.
Not here  rounded quotients (arithmetic.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.define import (
    AS_GIVEN,
    Elementwise,
    OptionalNumber,
    Tensor,
    not_implemented,
    operator,
)


class Step(Elementwise):
    """A function that is constant between jumps."""

    out_refusal = AS_GIVEN

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented(f"{self.name}_vml_cpu", common)

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.zeros_like(grad)


@operator("floor")
class Floor(Step):
    """Largest integer not above."""

    complex_error = (NotImplementedError, "floor is not supported for complex inputs")

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.floor(input) if k.dtype_of(input).is_floating_point else input


@operator("ceil")
class Ceil(Step):
    """Smallest integer not below."""

    complex_error = (NotImplementedError, "ceil is not supported for complex inputs")

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.ceil(input) if k.dtype_of(input).is_floating_point else input


@operator("trunc", methods=("trunc", "fix"), aliases=("fix",))
class Trunc(Step):
    """Integer part."""

    complex_error = (NotImplementedError, "trunc is not supported for complex inputs")

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.trunc(input) if k.dtype_of(input).is_floating_point else input


@operator("round", aliases=("special.round",))
class Round(Step):
    """Nearest integer, ties to even; or nearest multiple of 10 ** -decimals."""

    complex_kernel = "round_vml_cpu"

    def validate(self, arguments: dict[str, Any]) -> None:
        given = arguments["input"].dtype
        if arguments.get("decimals", 0) and not given.is_floating_point:
            raise not_implemented("round_cpu", given)

    def formula(self, k: Any, input: Tensor, *, decimals: int = 0) -> Any:
        if not k.dtype_of(input).is_floating_point:
            return input
        scale = float(f"1e{abs(decimals)}")  # infinite where no float is as large
        if decimals > 0:
            return k.div(k.rint(k.mul(input, scale)), scale)
        if decimals < 0:
            return k.mul(k.rint(k.div(input, scale)), scale)
        return k.rint(input)

    def samples(self, s: Any) -> list[Any]:
        more = [s(s.real(3, 4), decimals=2), s(s.real(5, low=-300, high=300), decimals=-1)]
        return [*s.elementwise(self), *more]


@operator("frac")
class Frac(Elementwise):
    """input - trunc(input)."""

    out_refusal = AS_GIVEN
    floating_kernel = "frac_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sub(input, k.trunc(input))

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad


@operator("nan_to_num")
class NanToNum(Elementwise):
    """NaN and the infinities replaced by finite numbers."""

    takes_complex = True

    def formula(
        self,
        k: Any,
        input: Tensor,
        nan: OptionalNumber = None,
        posinf: OptionalNumber = None,
        neginf: OptionalNumber = None,
    ) -> Any:
        if k.dtype_of(input).is_complex:
            parts = [self.formula(k, each(input), *map(k.real, (nan, posinf, neginf)))
                     for each in (k.real, k.imag)]  # fmt: skip
            return k.pair(*parts)
        if not k.dtype_of(input).is_floating_point:
            return input
        infinity = float("inf")
        result = k.select(k.isnan(input), nan, input)
        result = k.select(k.eq(input, infinity), posinf, result)
        return k.select(k.eq(input, -infinity), neginf, result)

    def lower(self, b: Any, *operands: Any, common: dtype, **named: Any) -> Any:
        arguments = {**dict(zip(self.kinds(), operands, strict=False)), **named}
        # The largest finite number of the result's dtype, not of the one computed in.
        largest = dtypes.FLOAT_FACTS.get(common.to_real(), (0, 0.0))[1]
        for name, default in (("nan", 0.0), ("posinf", largest), ("neginf", -largest)):
            if arguments.get(name) is None:
                arguments[name] = default
        return super().lower(b, common=common, **arguments)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return t.where(t.isfinite(input), grad, 0)
