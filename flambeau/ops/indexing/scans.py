"""Running sums and products, sorting, triangles.

Keeps     cumsum and cumprod carry float64 and round each element once, as torch does; sorting is
          stable, NaN last.
Touches   ops.define, base.shapes.
Not here  the kernels (devices/cpu/scans/, devices/cpu/sorting/): `b.kernel` names them."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous, layout
from flambeau.ops.define import Inferred, Number, Operator, not_implemented, operator


class Scan(Operator):
    """A running fold along one dim."""

    out_refusal = None

    inplace = True
    kernel = ""

    def infer(self, input: Layout, dim: int, *, dtype: dtype | None = None) -> Inferred:
        at = shapes.wrap_dim(dim, input.ndim)
        result = dtype or (dtypes.int64 if input.dtype.category < 2 else input.dtype)
        if result is dtypes.bool_:
            raise not_implemented(f"{self.name}_out_cpu", result)
        out = contiguous(input.shape, result, input.device)
        return Inferred((out,), {"dim": at, "dtype": result})

    def lower(self, b: Any, input: Any, dim: int, dtype: dtype) -> Any:
        elements = b.convert(input, dtype)
        if not input.shape or 0 in input.shape:
            return elements
        result = b.temporary(input.shape, dtype)
        b.kernel(self.kernel, (elements,), (result,), dim=dim)
        return result

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0), s(s.real(3, 4), -1), s(s.real(2, 3, 4), 1), s(s.real(), 0)]


def reversed_sum(tensor: Any, dim: int) -> Any:
    """Running sum from the end."""
    return tensor.flip((dim,)).cumsum(dim).flip((dim,)) if tensor.dim() else tensor


@operator("cumsum")
class CumulativeSum(Scan):
    """Sum of all elements up to each place of a dim."""

    kernel = "scans.cumsum"

    def vjp(self, t: Any, grad: Any, dim: int) -> Any:
        return reversed_sum(grad, dim)


@operator("cumprod")
class CumulativeProduct(Scan):
    """Product of all elements up to each place of a dim."""

    kernel = "scans.cumprod"
    holomorphic = True

    def lower(self, b: Any, input: Any, dim: int, dtype: dtype) -> Any:
        elements = b.convert(input, dtype)
        if not dtype.is_complex or 0 in input.shape or not input.shape:
            return super().lower(b, elements, dim, dtype)
        # Products of 2, 4, 8 ... elements: a scan that carries pairs is no loop of reals.
        count, reach = int(input.shape[dim]), 1
        while reach < count:
            first = b.narrow(elements, dim, 0, reach)
            rest = count - reach
            later = b.map(
                lambda k, x, y: k.mul(x, y),
                b.narrow(elements, dim, 0, rest), b.narrow(elements, dim, reach, rest),
            )  # fmt: skip
            joined = b.temporary(input.shape, dtype)
            b.write(b.narrow(joined, dim, 0, reach), first)
            b.write(b.narrow(joined, dim, reach, rest), later)
            elements, reach = joined, 2 * reach
        return elements

    def vjp(self, t: Any, grad: Any, input: Any, out: Any, dim: int) -> Any:
        if not input.dim():
            return grad
        zeros = input == 0
        ordinary = reversed_sum(grad * out, dim) / t.masked_fill(input, zeros, 1)
        # At the first zero the products go on with it left out; later zeros end them.
        first_zero = t.logical_and(zeros, zeros.cumsum(dim) == 1)
        without = t.masked_fill(input, first_zero, 1).cumprod(dim)
        at_first = reversed_sum(grad * without, dim)
        later = t.masked_fill(ordinary, zeros, 0)
        if t.is_grad_enabled():
            # At the second zero 0 by the first, on which it depends.
            second_zero = t.logical_and(zeros, zeros.cumsum(dim) == 2)
            rest = t.masked_fill(input, second_zero, 1).cumprod(dim)
            later = t.where(second_zero, reversed_sum(grad * rest, dim), later)
        return t.where(first_zero, at_first, later)


class Sorting(Operator):
    """(values, indices) in order along a dim."""

    returns = ("values", "indices")

    def outputs(self, input: Layout, dim: int, size: int | None = None) -> tuple[Layout, Layout]:
        """Layouts of values and indices; a sort keeps the order of dims in memory."""
        if input.dtype.is_complex:
            name = "Sort" if self.name == "sort" else self.name
            raise RuntimeError(f" {name} does not support complex dtypes on CPU")
        if size is None:
            strides = shapes.like_strides(input)
            return (
                layout(input.shape, strides, input.dtype, input.device),
                layout(input.shape, strides, dtypes.int64, input.device),
            )
        shape = list(input.shape)
        if shape:
            shape[dim] = size
        return (
            contiguous(tuple(shape), input.dtype, input.device),
            contiguous(tuple(shape), dtypes.int64, input.device),
        )

    def vjp(self, t: Any, grad: Any, input_layout: Any, indices: Any, dim: int) -> Any:
        zeros = t.zeros(input_layout.shape, dtype=grad.dtype, device=grad.device)
        return zeros.scatter(dim, indices, grad)


@operator("sort")
class Sort(Sorting):
    """Elements in order along a dim and where they come from; stable, NaN as the largest."""

    def infer(
        self, input: Layout, dim: int = -1, descending: bool = False, stable: bool | None = False
    ) -> Inferred:
        at = shapes.wrap_dim(dim, input.ndim)
        return Inferred(self.outputs(input, at), {"dim": at, "descending": descending})

    def lower(self, b: Any, input: Any, dim: int, descending: bool) -> Any:
        if not input.shape:
            return input, b.full((), 0, dtypes.int64)
        values = b.temporary(input.shape, input.dtype)
        indices = b.temporary(input.shape, dtypes.int64)
        if 0 not in input.shape:
            b.kernel(
                "sorting.sort", (input,), (values, indices),
                dim=dim, descending=descending, wanted="both",
            )  # fmt: skip
        return values, indices

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0, True), s(s.integer(2, 5)), s(s.real())]


@operator("topk")
class TopK(Sorting):
    """The k largest or smallest elements along a dim, in order, and where they are."""

    def infer(
        self, input: Layout, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
    ) -> Inferred:
        if input.dtype is dtypes.bool_:
            raise RuntimeError("topk does not support bool dtypes on CPU")
        at = shapes.wrap_dim(dim, input.ndim)
        if not 0 <= k <= (input.shape[at] if input.ndim else 1):
            raise RuntimeError("selected index k out of range")
        outputs = self.outputs(input, at, k)
        return Inferred(outputs, {"dim": at, "k": k, "largest": largest})

    def lower(self, b: Any, input: Any, k: int, dim: int, largest: bool) -> Any:
        if not input.shape:
            return input, b.full((), 0, dtypes.int64)
        shape = (*input.shape[:dim], k, *input.shape[dim + 1 :])
        values, indices = b.temporary(shape, input.dtype), b.temporary(shape, dtypes.int64)
        if 0 not in shape:
            b.kernel(
                "sorting.topk", (input,), (values, indices),
                dim=dim, k=k, largest=largest, wanted="both",
            )  # fmt: skip
        return values, indices

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 5), 2), s(s.real(3, 5), 2, 0, False)]


class Triangle(Operator):
    """Part of matrices on one side of a diagonal, 0 elsewhere."""

    inplace = True

    def inferred(self, input: Layout) -> Layout:
        """Layout of the result."""
        if input.ndim < 2:
            raise RuntimeError(f"{self.name}: input tensor must have at least 2 dimensions")
        return contiguous(input.shape, input.dtype, input.device)

    def lower(self, b: Any, input: Any, diagonal: Any) -> Any:
        ndim = len(input.shape)
        row, column = (b.iota(tuple(input.shape), dim) for dim in (ndim - 2, ndim - 1))
        return b.map(
            lambda k, i, j, d, x: k.select(self.keeps(k, k.sub(j, i), d), x, 0),
            row, column, diagonal, b.convert(input, _selectable(input.dtype)),
            dtype=input.dtype,
        )  # fmt: skip

    def keeps(self, k: Any, place: Any, diagonal: Any) -> Any:
        """Whether an element `place` columns right of the main diagonal stays."""
        raise NotImplementedError

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(2, 3, 4), 1), s(s.real(4, 3), -1)]


def _selectable(given: dtype) -> dtype:
    return dtypes.uint8 if given is dtypes.bool_ else given


@operator("tril")
class LowerTriangle(Triangle):
    """Elements on and below a diagonal."""

    def infer(self, input: Layout, diagonal: Number = 0) -> Layout:
        return self.inferred(input)

    def keeps(self, k: Any, place: Any, diagonal: Any) -> Any:
        return k.le(place, diagonal)

    def vjp(self, t: Any, grad: Any, diagonal: int) -> Any:
        return grad.tril(diagonal)


@operator("triu")
class UpperTriangle(Triangle):
    """Elements on and above a diagonal."""

    def infer(self, input: Layout, diagonal: Number = 0) -> Layout:
        return self.inferred(input)

    def keeps(self, k: Any, place: Any, diagonal: Any) -> Any:
        return k.ge(place, diagonal)

    def vjp(self, t: Any, grad: Any, diagonal: int) -> Any:
        return grad.triu(diagonal)
