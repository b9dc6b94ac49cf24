"""Gradients of the views of parts: a cotangent put back among zeros.

Keeps     every place is written once where that is possible; the gradient of each is the view.
Touches   ops.define, base.view_rules.
Not here  the views themselves (parts.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import shapes, view_rules
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Number, Operator, operator
from flambeau.ops.views.parts import overlapping_dims, slice_bounds


def zeros_around(b: Any, out: Any, dim: int, start: int, length: int) -> None:
    """Zeros in the places of a dim before `start` and from `start + length` on."""
    size = out.shape[dim]
    for begin, count in ((0, start), (start + length, size - start - length)):
        if count:
            part = b.narrow(out, dim, begin, count)
            b.write(part, b.full(part.shape, 0, out.dtype))


class PartBackward(Operator):
    """Base: the output has the shape of the tensor that was viewed."""

    def fresh(self, grad_output: Layout, shape: Any) -> Layout:
        """Layout of the result."""
        return contiguous(tuple(shape), grad_output.dtype, grad_output.device)


@operator("slice_backward", function=False)
class SliceBackward(PartBackward):
    """The cotangent of a slice among zeros."""

    def infer(
        self, grad_output: Layout, input_sizes: Any, dim: int, start: Any, end: Any, step: int
    ) -> Layout:
        return self.fresh(grad_output, input_sizes)

    def lower(
        self, b: Any, grad_output: Any, input_sizes: Any, dim: int, start: Any, end: Any, step: int
    ) -> None:
        out = b.output()
        at = dim % len(input_sizes)
        begin, length = slice_bounds(input_sizes[at], start, end, step)
        if step == 1:
            zeros_around(b, out, at, begin, length)
        else:
            b.write(out, b.full(out.shape, 0, out.dtype))
        if length:
            b.write(b.narrow(out, at, begin, length, step), grad_output)

    def vjp(self, t: Any, grad: Any, dim: int, start: Any, end: Any, step: int) -> Any:
        return t.slice(grad, dim, start, end, step)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), (5, 4), 0, 1, 4, 1), s(s.real(3, 3), (3, 7), -1, 0, -1, 2)]


@operator("select_backward", function=False)
class SelectBackward(PartBackward):
    """The cotangent of a selected place among zeros. The place is a run-time number, so that a
    loop over places has one kernel."""

    def infer(self, grad_output: Layout, input_sizes: Any, dim: int, index: Number) -> Layout:
        return self.fresh(grad_output, input_sizes)

    def lower(self, b: Any, grad_output: Any, input_sizes: Any, dim: int, index: Any) -> Any:
        at = dim % len(input_sizes)
        return b.map(
            lambda k, place, chosen, value: k.select(k.eq(place, chosen), value, 0),
            b.iota(tuple(input_sizes), at),
            index,
            b.unsqueeze(grad_output, at),
            dtype=grad_output.dtype,
        )

    def vjp(self, t: Any, grad: Any, dim: int, index: int) -> Any:
        return grad.select(dim, index)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(4), (3, 4), 0, 1), s(s.real(3), (3, 4), -1, 3)]


class StridedBackward(PartBackward):
    """Zeros everywhere, then the cotangent through a view without overlap."""

    def place(self, b: Any, grad_output: Any, seen: Layout, offset: int) -> None:
        """Write the cotangent where `seen` shows the output."""
        out = b.output()
        b.write(out, b.full(out.shape, 0, out.dtype))
        if seen.n_elements:
            b.write(out.with_view(seen.shape, seen.strides, offset), grad_output)


@operator("diagonal_backward", function=False)
class DiagonalBackward(StridedBackward):
    """The cotangent of a diagonal among zeros."""

    def infer(
        self, grad_output: Layout, input_sizes: Any, offset: int, dim1: int, dim2: int
    ) -> Layout:
        return self.fresh(grad_output, input_sizes)

    def lower(
        self, b: Any, grad_output: Any, input_sizes: Any, offset: int, dim1: int, dim2: int
    ) -> None:
        whole = contiguous(tuple(input_sizes), grad_output.dtype)
        self.place(b, grad_output, *view_rules.diagonalised(whole, offset, dim1, dim2))

    def vjp(self, t: Any, grad: Any, offset: int, dim1: int, dim2: int) -> Any:
        return grad.diagonal(offset, dim1, dim2)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3), (3, 4), 0, 0, 1), s(s.real(3, 2), (2, 3, 4), -1, -1, 0)]


@operator("as_strided_backward", function=False)
class AsStridedBackward(StridedBackward):
    """The cotangent of as_strided among zeros; elements seen several times get the sum."""

    def infer(
        self, grad_output: Layout, input_sizes: Any, size: Any, stride: Any, storage_offset: int
    ) -> Layout:
        return self.fresh(grad_output, input_sizes)

    def lower(
        self, b: Any, grad_output: Any, input_sizes: Any, size: Any, stride: Any,
        storage_offset: int,
    ) -> None:  # fmt: skip
        # Dims of stride 0 are repeats of one element; other overlaps are added place by place.
        repeated = tuple(dim for dim, step in enumerate(stride) if step == 0)
        if repeated:
            grad_output = b.reduce("sum", grad_output, repeated)
            size, stride = (
                tuple(one for dim, one in enumerate(each) if dim not in repeated)
                for each in (size, stride)
            )
        out = b.output()
        b.write(out, b.full(out.shape, 0, out.dtype))
        for dims, offset in _without_overlap(size, stride):
            part = out.with_view(
                tuple(size[dim] for dim in dims),
                tuple(stride[dim] for dim in dims),
                storage_offset + offset,
            )
            values = grad_output
            for dim in reversed([dim for dim in range(len(size)) if dim not in dims]):
                index = (offset // stride[dim]) % size[dim] if stride[dim] else 0
                values = b.select(values, dim, index)
            b.write(part, b.map(lambda k, x, y: k.add(x, y), part, values))

    def vjp(self, t: Any, grad: Any, size: Any, stride: Any, storage_offset: int) -> Any:
        return grad.contiguous().as_strided(size, stride, storage_offset)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 2), (3, 4), (2, 2), (4, 2), 1)]


def _without_overlap(size: Any, stride: Any) -> list[tuple[tuple[int, ...], int]]:
    """(dims, offset) of parts that together show every element and each shows none twice."""
    fixed = overlapping_dims(size, stride)
    dims = tuple(dim for dim in range(len(size)) if dim not in fixed)
    if not fixed:
        return [(dims, 0)]
    (overlapping,) = fixed
    return [(dims, place * stride[overlapping]) for place in range(size[overlapping])]


@operator("unfold_backward", function=False)
class UnfoldBackward(PartBackward):
    """Cotangents of windows added up where the windows overlap, in the order of their places."""

    def infer(
        self, grad_output: Layout, input_sizes: Any, dim: int, size: int, step: int
    ) -> Layout:
        return self.fresh(grad_output, input_sizes)

    def lower(
        self, b: Any, grad_output: Any, input_sizes: Any, dim: int, size: int, step: int
    ) -> None:
        out = b.output()
        b.write(out, b.full(out.shape, 0, out.dtype))
        if prod(grad_output.shape) == 0:
            return
        if not input_sizes:
            b.write(out, b.reshape(grad_output, ()))
            return
        at = shapes.wrap_dim(dim, len(input_sizes))
        n_windows = grad_output.shape[at]
        for place in range(size):
            part = b.narrow(out, at, place, n_windows, step)
            window = b.select(grad_output, grad_output.ndim - 1, place)
            b.write(part, b.map(lambda k, x, y: k.add(x, y), part, window))

    def vjp(self, t: Any, grad: Any, dim: int, size: int, step: int) -> Any:
        return grad.unfold(dim, size, step)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 2, 3), (7, 2), 0, 3, 2), s(s.real(2, 3, 4), (2, 6), -1, 4, 1)]
