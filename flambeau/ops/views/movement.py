"""Views that show all elements: other shapes, other orders of dims, repeated elements.

Keeps     a view's gradient is a view of its cotangent.
Touches   ops.define, base.view_rules.
Not here  views of some of the elements (parts.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import shapes, view_rules
from flambeau.base.layout import Layout
from flambeau.ops.define import Sizes, View, operator

Seen = tuple[Layout, int]


@operator("view", function=False, methods=("view",))
class ViewShape(View):
    """The same elements under another shape; raises where strides do not allow it."""

    def view(self, input: Layout, shape: Sizes) -> Seen:
        return view_rules.viewed(input, shape), 0

    def vjp(self, t: Any, grad: Any, input_layout: Any) -> Any:
        return grad.reshape(input_layout.shape)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), (2, 6)), s(s.real(3, 4), (-1,)), s(s.real(), (1, 1))]


@operator("_unsafe_view", methods=())
class UnsafeView(ViewShape):
    """view of what nobody else will see: torch's name for the end of a reshape that copied."""


@operator("reshape")
class Reshape(ViewShape):
    """The same elements under another shape, copied where strides need it."""

    def view(self, input: Layout, shape: Sizes) -> Seen | None:
        wanted = shapes.infer_size(shape, input.n_elements)
        strides = view_rules.view_strides(input, wanted)
        return None if strides is None else (view_rules.restrided(input, wanted, strides), 0)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), (2, 6)), s(s.real(3, 4).t(), (2, 6))]


@operator("flatten")
class Flatten(ViewShape):
    """Dims from start_dim to end_dim as one."""

    def view(self, input: Layout, start_dim: int = 0, end_dim: int = -1) -> Seen | None:
        start = shapes.wrap_dim(start_dim, input.ndim)
        end = shapes.wrap_dim(end_dim, input.ndim)
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if input.ndim == 0:
            return view_rules.viewed(input, (1,)), 0
        middle = prod(input.shape[start : end + 1])
        shape = (*input.shape[:start], middle, *input.shape[end + 1 :])
        strides = view_rules.view_strides(input, shape)
        return None if strides is None else (view_rules.restrided(input, shape, strides), 0)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4)), s(s.real(2, 3, 4), 1), s(s.real(2, 3, 4), 0, -2), s(s.real())]


@operator("ravel")
class Ravel(Flatten):
    """All dims as one, without gaps: what is not row-major is copied."""

    def view(self, input: Layout) -> Seen | None:
        return super().view(input) if input.is_contiguous else None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4))]


@operator("unflatten")
class Unflatten(ViewShape):
    """One dim as several."""

    def view(self, input: Layout, dim: int, sizes: Sizes) -> Seen:
        at = shapes.wrap_dim(dim, input.ndim)
        if not sizes:
            raise RuntimeError("unflatten: sizes must be non-empty")
        size = input.shape[at]
        known = prod([each for each in sizes if each != -1])
        fits = size == known if -1 not in sizes else known != 0 and size % known == 0
        if not fits:
            raise RuntimeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim "
                f"{at} ({size}) in the input tensor"
            )
        inner = shapes.infer_size(sizes, size)
        shape = (*input.shape[:at], *inner, *input.shape[at + 1 :])
        return view_rules.viewed(input, shape), 0

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 1, (2, 2)), s(s.real(6, 2), 0, (-1, 3))]


@operator("transpose", methods=("transpose", "swapaxes", "swapdims"))
class Transpose(View):
    """Two dims swapped."""

    def view(self, input: Layout, dim0: int, dim1: int) -> Seen:
        return view_rules.transposed(input, dim0, dim1), 0

    def vjp(self, t: Any, grad: Any, dim0: int, dim1: int) -> Any:
        return grad.transpose(dim0, dim1)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4), 0, 2), s(s.real(3, 4), -1, -2)]


@operator("swapaxes", methods=())
class SwapAxes(Transpose):
    """Two dims swapped, under NumPy's name."""

    def view(self, input: Layout, axis0: int, axis1: int) -> Seen:
        return view_rules.transposed(input, axis0, axis1), 0

    def vjp(self, t: Any, grad: Any, axis0: int, axis1: int) -> Any:
        return grad.transpose(axis0, axis1)


@operator("swapdims", methods=())
class SwapDims(Transpose):
    """Two dims swapped."""


@operator("t")
class MatrixTranspose(View):
    """A matrix transposed; vectors and single numbers stay."""

    def view(self, input: Layout) -> Seen:
        if input.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D"
            )
        return (view_rules.transposed(input, 0, 1) if input.ndim == 2 else input), 0

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad.t()

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3)), s(s.real())]


@operator("permute")
class Permute(View):
    """Dims in another order."""

    def view(self, input: Layout, dims: Sizes) -> Seen:
        return view_rules.permuted(input, dims), 0

    def vjp(self, t: Any, grad: Any, dims: Any) -> Any:
        inverse = [0] * len(dims)
        for place, dim in enumerate(dims):
            inverse[dim % len(dims)] = place
        return grad.permute(tuple(inverse))

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4), (2, 0, 1)), s(s.real(2, 3), (-1, 0))]


@operator("movedim", methods=("movedim", "moveaxis"), aliases=("moveaxis",))
class MoveDim(View):
    """Dims moved to other places, the rest in order."""

    def order(self, ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
        """The permutation."""
        sources = (source,) if isinstance(source, int) else tuple(source)
        destinations = (destination,) if isinstance(destination, int) else tuple(destination)
        if len(sources) != len(destinations):
            raise RuntimeError(
                "movedim: Invalid source or destination dims: source "
                f"({list(sources)} dims) should contain the same number of dims as destination "
                f"({list(destinations)} dims)"
            )
        sources, destinations = (shapes.wrap_dims(each, ndim) for each in (sources, destinations))
        places = dict(zip(destinations, sources, strict=True))
        rest = iter([dim for dim in range(ndim) if dim not in sources])
        return tuple(places[dim] if dim in places else next(rest) for dim in range(ndim))

    def view(self, input: Layout, source: Any, destination: Any) -> Seen:
        return view_rules.permuted(input, self.order(input.ndim, source, destination)), 0

    def vjp(self, t: Any, grad: Any, source: Any, destination: Any) -> Any:
        return grad.movedim(destination, source)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4), 0, 2), s(s.real(2, 3, 4), (0, 1), (-1, 0))]


@operator("squeeze")
class Squeeze(View):
    """Without dims of size 1."""

    def view(self, input: Layout, dim: Any = None) -> Seen:
        dims = (dim,) if isinstance(dim, int) else dim
        return view_rules.squeezed(input, dims), 0

    def vjp(self, t: Any, grad: Any, input_layout: Any) -> Any:
        return grad.view(input_layout.shape)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(1, 3, 1)), s(s.real(1, 3, 1), 0), s(s.real(1, 3, 1), (0, 2))]


@operator("unsqueeze")
class Unsqueeze(View):
    """A dim of size 1 more."""

    def view(self, input: Layout, dim: int) -> Seen:
        return view_rules.unsqueezed(input, dim), 0

    def vjp(self, t: Any, grad: Any, dim: int) -> Any:
        return grad.squeeze(dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0), s(s.real(3, 4), -1), s(s.real(), 0)]


@operator("expand", function=False, methods=("expand",))
class Expand(View):
    """Sizes of 1 repeated without a copy, new dims in front."""

    def view(self, input: Layout, size: Sizes) -> Seen:
        return view_rules.expanded(input, size), 0

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad  # summed to the input's shape by the caller

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 1), (2, 3, 4)), s(s.real(3, 1), (-1, 4)), s(s.real(), (2,))]


@operator("broadcast_to")
class BroadcastTo(Expand):
    """expand, as a function."""

    def view(self, input: Layout, size: Sizes) -> Seen:
        return view_rules.expanded(input, size), 0


@operator("detach")
class Detach(View):
    """The same tensor outside the graph."""

    differentiable = False

    def view(self, input: Layout) -> Seen:
        return input, 0


@operator("alias", function=False)
class Alias(View):
    """The same tensor as a view."""

    def view(self, input: Layout) -> Seen:
        return input, 0

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad
