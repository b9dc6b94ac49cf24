"""Views of some of the elements: narrow, select, slice, diagonal, windows.

Keeps     the gradient of a part is one operator that puts the cotangent back among zeros.
Touches   ops.define, base.view_rules.
Not here  the operators that put it back (backward.py), sequences of parts (splitting.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes, view_rules
from flambeau.base.layout import Layout
from flambeau.ops.define import Sizes, View, operator

Seen = tuple[Layout, int]


def slice_bounds(size: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """(first place, number of places) of a slice, as Python cuts off what lies outside."""
    begin, stop, _ = slice(start, end, step).indices(size)
    return min(begin, size), max(0, -(-(stop - begin) // step))


@operator("slice", function=False)
class Slice(View):
    """Places start, start + step, ... before end of one dim: what x[start:end:step] records."""

    def view(
        self, input: Layout, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
    ) -> Seen:
        if input.ndim == 0:
            raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
        if step <= 0:
            raise RuntimeError("slice step must be positive")
        at = shapes.wrap_dim(dim, input.ndim)
        begin, length = slice_bounds(input.shape[at], start, end, step)
        return view_rules.sliced(input, at, begin, length, step)

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, dim: int, start: Any, end: Any, step: int
    ) -> Any:
        return t.slice_backward(grad, input_layout.shape, dim, start, end, step)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 0, 1, 4, 1), s(s.real(3, 7), -1, None, -1, 2)]


@operator("narrow")
class Narrow(View):
    """`length` places of a dim from `start`."""

    def view(self, input: Layout, dim: int, start: int, length: int) -> Seen:
        if input.ndim == 0:
            raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
        at = shapes.wrap_dim(dim, input.ndim)
        size = input.shape[at]
        if length < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if not -size <= start <= size:
            raise IndexError(
                f"start out of range (expected to be in range of [{-size}, {size}], but got "
                f"{start})"
            )
        begin = start + size if start < 0 else start
        if begin + length > size:
            raise RuntimeError(
                f"start ({begin}) + length ({length}) exceeds dimension size ({size})."
            )
        return view_rules.sliced(input, at, begin, length)

    def vjp(self, t: Any, grad: Any, input_layout: Any, dim: int, start: int, length: int) -> Any:
        begin = start + input_layout.shape[dim] if start < 0 else start
        return t.slice_backward(grad, input_layout.shape, dim, begin, begin + length, 1)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 0, 1, 3), s(s.real(5, 4), -1, -2, 2)]


@operator("select")
class Select(View):
    """One place of a dim, which goes away: what x[index] records."""

    def view(self, input: Layout, dim: int, index: int) -> Seen:
        return view_rules.selected(input, dim, index)

    def vjp(self, t: Any, grad: Any, input_layout: Any, dim: int, index: int) -> Any:
        place = index + input_layout.shape[dim] if index < 0 else index
        return t.select_backward(grad, input_layout.shape, dim, place)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0, 1), s(s.real(3, 4), -1, -1)]


@operator("diagonal")
class Diagonal(View):
    """The diagonal of two dims as a new last dim."""

    def view(self, input: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Seen:
        return view_rules.diagonalised(input, offset, dim1, dim2)

    def vjp(self, t: Any, grad: Any, input_layout: Any, offset: int, dim1: int, dim2: int) -> Any:
        return t.diagonal_backward(grad, input_layout.shape, offset, dim1, dim2)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 1), s(s.real(2, 3, 4), -1, -1, 0)]


@operator("unfold", function=False, methods=("unfold",))
class Unfold(View):
    """Windows of `size` places of a dim, `step` apart, as a new last dim."""

    def view(self, input: Layout, dimension: int, size: int, step: int) -> Seen:
        at = shapes.wrap_dim(dimension, input.ndim)
        length = input.shape[at] if input.ndim else 1
        stride = input.strides[at] if input.ndim else 1
        if size < 0:
            raise RuntimeError(f"size is {size} but must be >= 0")
        if size > length:
            raise RuntimeError(
                f"maximum size for tensor at dimension {at} is {length} but size is {size}"
            )
        if step <= 0:
            raise RuntimeError(f"step is {step} but must be > 0")
        n_windows = (length - size) // step + 1
        shape, strides = list(input.shape), list(input.strides)
        if input.ndim:
            shape[at], strides[at] = n_windows, stride * step
        return view_rules.restrided(input, (*shape, size), (*strides, stride)), 0

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, dimension: int, size: int, step: int
    ) -> Any:
        return t.unfold_backward(grad, input_layout.shape, dimension, size, step)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(7, 2), 0, 3, 2), s(s.real(2, 6), -1, 4, 1)]


@operator("as_strided")
class AsStrided(View):
    """Any sizes and strides over the storage; the offset is counted from the input's first."""

    def view(
        self, input: Layout, size: Sizes, stride: Sizes, storage_offset: int | None = None
    ) -> Seen:
        if len(size) != len(stride):
            raise RuntimeError("mismatch in length of strides and shape")
        if any(each < 0 for each in stride):
            raise RuntimeError(
                "as_strided: Negative strides are not supported at the moment, got strides: "
                f"{list(stride)}"
            )
        seen = view_rules.restrided(input, tuple(size), tuple(stride))
        return seen, storage_offset or 0

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, size: Any, stride: Any, storage_offset: Any
    ) -> Any:
        offset = storage_offset or 0
        if input_layout.is_contiguous and offset >= 0 and overlaps_once(size, stride):
            return t.as_strided_backward(grad, input_layout.shape, size, stride, offset)
        return _spread(t, grad, input_layout, tuple(size), tuple(stride), offset)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), (2, 2), (4, 2), 1)]


def overlaps_once(size: Any, stride: Any) -> bool:
    """Whether at most one dim of more than one place, steps of 0 apart, runs into the others."""
    return len(overlapping_dims(size, stride)) <= 1


def overlapping_dims(size: Any, stride: Any) -> list[int]:
    """Dims that run into the reach of those with smaller steps; steps of 0 are none."""
    reach, found = 1, []
    for dim in sorted(range(len(size)), key=lambda each: stride[each]):
        if size[dim] == 1 or stride[dim] >= reach:
            reach += stride[dim] * (size[dim] - 1)
        elif stride[dim]:
            found.append(dim)
    return found


def _places(t: Any, size: Any, stride: Any, first: int) -> Any:
    """Where each element of a view lies, counted in elements, as a flat tensor."""
    places = t.zeros(size, dtype=dtypes.int64) + first
    for dim, step in enumerate(stride):
        along = [1] * len(size)
        along[dim] = size[dim]
        places = places + (t.arange(size[dim]) * step).reshape(along)
    return places.reshape(-1)


def _spread(t: Any, grad: Any, seen: Layout, size: Any, stride: Any, offset: int) -> Any:
    """The cotangent of any as_strided view of any tensor: added up in memory as long as both
    reach, element by element, and seen again as the tensor was. Elements that the tensor itself
    shows several times share what came together for them, as in torch."""
    start = min(offset, 0)
    reach = offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    length = max(seen.span, reach) - start
    memory = grad.new_zeros((length,))
    places = _places(t, size, stride, offset - start)
    memory = memory.index_add(0, places, grad.reshape(-1))
    if any(n > 1 and step == 0 for n, step in zip(seen.shape, seen.strides, strict=True)) or (
        overlapping_dims(seen.shape, seen.strides)
    ):
        own = _places(t, seen.shape, seen.strides, -start)
        element = grad.dtype.to_real()
        ones = t.ones(own.shape, dtype=element)
        counts = t.zeros((length,), dtype=element).index_add(0, own, ones)
        memory = memory / counts.clamp(min=1)
    return memory.as_strided(seen.shape, seen.strides, -start)
