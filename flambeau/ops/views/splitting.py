"""Sequences of views: split, chunk, unbind and their kin.

Keeps     the gradient of all parts together is one join, not one scatter a part.
Touches   ops.define, base.view_rules.
Not here  joins (joining)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from flambeau.base import shapes, view_rules
from flambeau.base.layout import Layout
from flambeau.ops.define import View, operator

Seen = list[tuple[Layout, int]]


class Splitting(View):
    """Parts of one dim, in order."""

    def parts(self, input: Layout, dim: int, sizes: list[int]) -> Seen:
        """Views of `sizes` places after each other."""
        seen = []
        start = 0
        for size in sizes:
            seen.append(view_rules.sliced(input, dim, start, size))
            start += size
        return seen

    def joined(self, t: Any, grads: Any, dim: int, *viewed: Any) -> Any:
        """The cotangents of the parts after each other, zeros for those without; `viewed` is what
        `view` was given."""
        if any(grad is None for grad in grads):
            seen: Any = self.view(*viewed)
            grads = [
                t.zeros(layout.shape, dtype=layout.dtype, device=layout.device)
                if grad is None
                else grad
                for grad, (layout, _) in zip(grads, seen, strict=True)
            ]
        return t.cat(list(grads), dim)


def check_sections(sections: Any) -> None:
    """Refuse what is neither a size nor sizes."""
    if not isinstance(sections, int):
        shapes.whole_numbers("split_with_sizes", "split_sizes", 2, sections)


@operator("split")
class Split(Splitting):
    """Parts of a size, the last one smaller, or parts of given sizes."""

    def view(self, input: Layout, split_size_or_sections: Any, dim: int = 0) -> Seen:
        check_sections(split_size_or_sections)
        if input.ndim == 0:
            raise RuntimeError("split expects at least a 1-dimensional tensor")
        at = shapes.wrap_dim(dim, input.ndim)
        size = input.shape[at]
        if isinstance(split_size_or_sections, int):
            each = split_size_or_sections
            if each < 0:
                raise RuntimeError(
                    f"split expects split_size be non-negative, but got split_size={each}"
                )
            if each == 0 and size:
                raise RuntimeError(
                    "split_size can only be 0 if dimension size is 0, but got dimension size of "
                    f"{size}"
                )
            n_parts = max(-(-size // each), 1) if each else 1
            sizes = [min(each, size - part * each) for part in range(n_parts)]
            return self.parts(input, at, sizes)
        sizes = list(split_size_or_sections)
        if any(each < 0 for each in sizes):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={sizes}"
            )
        if sum(sizes) != size:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's "
                f"size at dimension {dim}), but got split_sizes={sizes}"
            )
        return self.parts(input, at, sizes)

    def vjp(
        self, t: Any, grads: Any, input_layout: Any, split_size_or_sections: Any, dim: int
    ) -> Any:
        return self.joined(t, grads, dim, input_layout, split_size_or_sections, dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 2), s(s.real(3, 6), (1, 2, 3), 1)]


@operator("chunk")
class Chunk(Splitting):
    """At most `chunks` parts of equal size, the last one smaller."""

    def view(self, input: Layout, chunks: int, dim: int = 0) -> Seen:
        if input.ndim == 0:
            raise RuntimeError("chunk expects at least a 1-dimensional tensor")
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        at = shapes.wrap_dim(dim, input.ndim)
        size = input.shape[at]
        if size == 0:
            return self.parts(input, at, [0] * chunks)
        each = -(-size // chunks)
        n_parts = -(-size // each)
        return self.parts(input, at, [min(each, size - part * each) for part in range(n_parts)])

    def vjp(self, t: Any, grads: Any, input_layout: Any, chunks: int, dim: int) -> Any:
        return self.joined(t, grads, dim, input_layout, chunks, dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 2), s(s.real(3, 6), 4, -1)]


@operator("tensor_split")
class TensorSplit(Splitting):
    """Parts cut at indices, or into a number of parts that differ in size by at most 1."""

    def view(self, input: Layout, indices_or_sections: Any, dim: int = 0) -> Seen:
        if input.ndim == 0:
            raise RuntimeError(
                "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 "
                "dims"
            )
        at = shapes.wrap_dim(dim, input.ndim)
        size = input.shape[at]
        if isinstance(indices_or_sections, int):
            sections = indices_or_sections
            if sections <= 0:
                raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
            small, larger = divmod(size, sections)
            return self.parts(input, at, [small + (part < larger) for part in range(sections)])
        cuts = [0, *indices_or_sections, size]
        seen = []
        for start, end in pairwise(cuts):
            begin, stop, _ = slice(start, end).indices(size)
            seen.append(view_rules.sliced(input, at, begin, max(stop - begin, 0)))
        return seen

    def vjp(self, t: Any, grads: Any, input_layout: Any, indices_or_sections: Any, dim: int) -> Any:
        cuts = indices_or_sections
        size = input_layout.shape[dim]
        if isinstance(cuts, int) or list(cuts) == sorted(c for c in cuts if 0 <= c <= size):
            return self.joined(t, grads, dim, input_layout, cuts, dim)
        # Cuts out of order show some places twice or never.
        total = t.zeros(input_layout.shape, dtype=input_layout.dtype, device=input_layout.device)
        bounds = [0, *cuts, size]
        for grad, start, end in zip(grads, bounds, bounds[1:], strict=False):
            if grad is not None:
                total = total + t.slice_backward(grad, input_layout.shape, dim, start, end, 1)
        return total

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 3), s(s.real(3, 6), (1, 4), 1)]


@operator("unbind")
class Unbind(View):
    """Every place of a dim as a tensor without it."""

    def view(self, input: Layout, dim: int = 0) -> Seen:
        if input.ndim == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        at = shapes.wrap_dim(dim, input.ndim)
        seen, _ = view_rules.selected(input, at, 0) if input.shape[at] else (input, 0)
        return [(seen, place * input.strides[at]) for place in range(input.shape[at])]

    def vjp(self, t: Any, grads: Any, input_layout: Any, dim: int) -> Any:
        zero = None
        whole = []
        for grad in grads:
            if grad is None:
                if zero is None:
                    layout = self.view(input_layout, dim)[0][0]
                    zero = t.zeros(layout.shape, dtype=layout.dtype, device=layout.device)
                grad = zero
            whole.append(grad)
        return t.stack(whole, dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), -1)]
