"""Evenly spaced numbers: arange, linspace, logspace.

Keeps     bounds and step are run-time numbers, computed with in the precision torch uses (float64
          for arange whatever the dtype), one formula a place: no sum of steps runs along.
Touches   constants, base.dtypes.
Not here  how many there are and torch's errors (tensor/public/ranges.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.creation.constants import Creation
from flambeau.ops.define import Inferred, Number, operator


@operator("arange", function=False)
class Arange(Creation):
    """start, start + step, ...: in float64, or int64 for integers."""

    def infer(self, result: Any, start: Number, step: Number) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, start: Any, step: Any, shape: Any, dtype: dtype) -> Any:
        wide = dtypes.float64 if dtype.is_floating_point else dtypes.int64

        def formula(k: Any, first: Any, by: Any, place: Any) -> Any:
            return k.convert(k.add(first, k.mul(by, place)), dtype.compute)

        return b.map(formula, start, step, b.iota(shape, 0), compute=wide, dtype=dtype)


class Spaced(Creation):
    """Base of linspace and logspace: both halves are counted from their own end."""

    def spaced(self, k: Any, wide: dtype, start: Any, end: Any, gaps: Any, place: Any) -> Any:
        """The number at a place."""
        is_first_half = k.le(k.add(k.mul(k.real(place), 2), 1), k.real(gaps))
        behind = k.convert(k.sub(gaps, place), wide)
        start, end, gaps, place = (k.convert(each, wide) for each in (start, end, gaps, place))
        step = k.div(k.sub(end, start), gaps)
        forward = k.add(start, k.mul(step, place))
        return k.select(is_first_half, forward, k.sub(end, k.mul(step, behind)))

    def numbers(self, dtype: dtype) -> dtype:
        """The dtype that numbers and places come in."""
        return dtypes.complex128 if dtype.is_complex else dtypes.float64

    def wide(self, dtype: dtype) -> dtype:
        """The dtype computed in."""
        return dtype.compute if dtype.category >= 2 else dtypes.float64


@operator("linspace", function=False)
class Linspace(Spaced):
    """Numbers from start to end, `gaps` steps apart."""

    def infer(self, result: Any, start: Number, end: Number, gaps: Number) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, start: Any, end: Any, gaps: Any, shape: Any, dtype: dtype) -> Any:
        wide = self.wide(dtype)

        def formula(k: Any, *operands: Any) -> Any:
            return k.convert(self.spaced(k, wide, *operands), dtype.compute)

        return b.map(
            formula, start, end, gaps, b.iota(shape, 0), compute=self.numbers(dtype), dtype=dtype
        )


@operator("logspace", function=False)
class Logspace(Spaced):
    """`base` to the power of numbers from start to end."""

    def infer(
        self, result: Any, start: Number, end: Number, gaps: Number, base: Number
    ) -> Inferred:
        return self.made(result)

    def lower(
        self, b: Any, start: Any, end: Any, gaps: Any, base: Any, shape: Any, dtype: dtype
    ) -> Any:
        wide = self.wide(dtype)

        def formula(k: Any, first: Any, last: Any, count: Any, root: Any, place: Any) -> Any:
            power = self.spaced(k, wide, first, last, count, place)
            return k.convert(k.pow(k.convert(root, wide), power), dtype.compute)

        return b.map(
            formula, start, end, gaps, base, b.iota(shape, 0), compute=self.numbers(dtype),
            dtype=dtype,
        )  # fmt: skip
