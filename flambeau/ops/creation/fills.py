"""Fresh tensors from numbers: full, arange, linspace, eye.

Keeps     numbers are run-time arguments, so that other values make no new kernel.
Touches   ops.define.
Not here  torch.full, torch.arange ... themselves (tensor/creation.py), which work out sizes."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Number, Operator, operator


class Filling(Operator):
    """A tensor without operands."""

    differentiable = False
    out = False


def as_byte(element: dtype) -> dtype:
    """The dtype a fill is computed in."""
    return dtypes.uint8 if element is dtypes.bool_ else element.compute


@operator("full_of", function=False)
class Full(Filling):
    """`value` everywhere."""

    def infer(self, size: Any, value: Number, dtype: dtype, device: Any) -> Layout:
        return contiguous(tuple(size), dtype, device)

    def lower(self, b: Any, size: Any, value: Any, dtype: dtype, device: Any) -> Any:
        compute = dtype.compute
        return b.map(
            lambda k, number: k.convert(number, compute), b.expand(value, tuple(size)), dtype=dtype
        )

    def samples(self, s: Any) -> list[Any]:
        return [s((2, 3), 1.5, s.float32, s.cpu), s((2,), 2, s.int64, s.cpu)]


@operator("arange_of", function=False)
class Arange(Filling):
    """start + i * step for i in [0, n)."""

    def infer(self, n: int, start: Number, step: Number, dtype: dtype, device: Any) -> Layout:
        return contiguous((n,), dtype, device)

    def lower(self, b: Any, n: int, start: Any, step: Any, dtype: dtype, device: Any) -> Any:
        # torch multiplies in float64 (int64 for integers) and rounds once.
        wide = dtypes.float64 if dtype.is_floating_point else dtypes.int64

        def formula(k: Any, place: Any, first: Any, by: Any) -> Any:
            first, by = (k.convert(each, wide) for each in (first, by))
            return k.add(first, k.mul(k.convert(place, wide), by))

        return b.map(formula, b.iota((n,), 0), start, step, dtype=dtype)

    def samples(self, s: Any) -> list[Any]:
        return [s(5, 0, 1, s.int64, s.cpu), s(5, 0.5, 0.25, s.float32, s.cpu)]


@operator("linspace_of", function=False)
class Linspace(Filling):
    """n numbers from start to end at equal distances; the second half counts from the end."""

    def infer(self, n: int, start: Number, end: Number, dtype: dtype, device: Any) -> Layout:
        return contiguous((n,), dtype, device)

    def lower(self, b: Any, n: int, start: Any, end: Any, dtype: dtype, device: Any) -> Any:
        compute = dtype.compute if dtype.is_floating_point else dtypes.float32
        sizes = [b.size_number(each, compute) for each in (max(n - 1, 1), n // 2, n - 1)]

        def formula(k: Any, i: Any, first: Any, last: Any, gaps: Any, half: Any, top: Any) -> Any:
            place = k.convert(i, compute)
            first, last = (k.convert(each, compute) for each in (first, last))
            step = k.div(k.sub(last, first), gaps)
            low = k.add(first, k.mul(step, place))
            high = k.sub(last, k.mul(step, k.sub(top, place)))
            return k.select(k.lt(place, half), low, high)

        return b.map(formula, b.iota((n,), 0), start, end, *sizes, dtype=dtype)

    def samples(self, s: Any) -> list[Any]:
        return [s(5, 0.0, 1.0, s.float32, s.cpu), s(4, -1.0, 2.0, s.float64, s.cpu)]


@operator("eye_of", function=False)
class Eye(Filling):
    """1 on the main diagonal, 0 elsewhere."""

    def infer(self, n: int, m: int, dtype: dtype, device: Any) -> Layout:
        return contiguous((n, m), dtype, device)

    def lower(self, b: Any, n: int, m: int, dtype: dtype, device: Any) -> Any:
        rows, columns = (b.iota((n, m), dim) for dim in (0, 1))
        return b.map(
            lambda k, i, j: k.convert(k.eq(i, j), as_byte(dtype)), rows, columns, dtype=dtype
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(3, 4, s.float32, s.cpu), s(2, 2, s.bool, s.cpu)]
