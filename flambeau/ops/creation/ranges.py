"""Evenly spaced numbers: arange, linspace, logspace.

Keeps     bounds and step are run-time numbers, computed with in the precision torch uses (float64
          for arange whatever the dtype), one formula a place: no sum of steps runs along.
Touches   constants, base.dtypes.
Not here  how many there are and torch's errors (tensor/fills.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.creation.constants import Creation
from flambeau.ops.define import Inferred, Number, operator


@operator("arange", function=False)
class Arange(Creation):
    """start, start + step, ...; `integral`: in int64."""

    def infer(self, result: Any, start: Number, step: Number) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, start: Any, step: Any, shape: Any, dtype: dtype) -> Any:
        wide = dtypes.float64 if dtype.is_floating_point else dtypes.int64

        def formula(k: Any, first: Any, by: Any, place: Any) -> Any:
            first, by, place = (k.convert(each, wide) for each in (first, by, place))
            return k.convert(k.add(first, k.mul(by, place)), dtype.compute)

        return b.map(formula, start, step, b.iota(shape, 0), dtype=dtype)


class Spaced(Creation):
    """Base of linspace and logspace: both halves are counted from their own end."""

    def spaced(self, k: Any, wide: dtype, start: Any, end: Any, gaps: Any, place: Any) -> Any:
        """The number at a place."""
        start, end = k.convert(start, wide), k.convert(end, wide)
        step = k.div(k.sub(end, start), k.convert(gaps, wide))
        forward = k.add(start, k.mul(step, k.convert(place, wide)))
        behind = k.convert(k.sub(gaps, place), wide)
        backward = k.sub(end, k.mul(step, behind))
        return k.select(k.lt(place, k.quotient(k.add(gaps, 1), 2)), forward, backward)

    def wide(self, dtype: dtype) -> dtype:
        """The dtype computed in."""
        return dtype.compute if dtype.is_floating_point else dtypes.float64


@operator("linspace", function=False)
class Linspace(Spaced):
    """Numbers from start to end, `gaps` steps apart."""

    def infer(self, result: Any, start: Number, end: Number, gaps: Number) -> Inferred:
        return self.made(result)

    def lower(self, b: Any, start: Any, end: Any, gaps: Any, shape: Any, dtype: dtype) -> Any:
        wide = self.wide(dtype)

        def formula(k: Any, *operands: Any) -> Any:
            return k.convert(self.spaced(k, wide, *operands), dtype.compute)

        return b.map(formula, start, end, gaps, b.iota(shape, 0), dtype=dtype)


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

        return b.map(formula, start, end, gaps, base, b.iota(shape, 0), dtype=dtype)
