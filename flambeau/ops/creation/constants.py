"""The same value everywhere: zeros, ones, full; and eye.

Keeps     the layout of the result is an attribute, the value of `full` a run-time number: a loop
          over values makes one kernel.
Touches   ops.define.
Not here  torch's arguments and their defaults (tensor/public/fills.py), ranges (ranges.py)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.base.dtypes import dtype
from flambeau.ops.define import Inferred, Number, Operator, operator


class Creation(Operator):
    """Base: `result` is the Layout of what is made."""

    out = False
    differentiable = False
    sizes = ("shape",)

    def made(self, result: Any) -> Inferred:
        """The result as an output, its parts as attributes."""
        return Inferred((result,), {"shape": result.shape, "dtype": result.dtype})


class Constant(Creation):
    """Base of operators that write one constant."""

    value: ClassVar[int] = 0

    def infer(self, result: Any) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, shape: Any, dtype: dtype) -> Any:
        value = bool(self.value) if dtype.category == 0 else self.value
        return b.full(shape, value, dtype)


@operator("zeros", function=False)
class Zeros(Constant):
    """0 everywhere."""


@operator("ones", function=False, value=1)
class Ones(Constant):
    """1 everywhere."""


@operator("full", function=False)
class Full(Creation):
    """A number everywhere."""

    def infer(self, result: Any, fill_value: Number) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, fill_value: Any, shape: Any, dtype: dtype) -> Any:
        def formula(k: Any, number: Any) -> Any:
            return k.convert(number, dtype.compute)

        return b.map(formula, b.expand(fill_value, shape), dtype=dtype)


@operator("eye", function=False)
class Eye(Creation):
    """1 on the diagonal, 0 elsewhere."""

    def infer(self, result: Any) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, shape: Any, dtype: dtype) -> Any:
        rows, columns = b.iota(shape, 0), b.iota(shape, 1)
        return b.convert(b.map(lambda k, i, j: k.eq(i, j), rows, columns), dtype)
