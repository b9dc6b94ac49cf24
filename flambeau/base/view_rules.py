"""Rules of the views: which strides and offset show the same memory in another shape.

Keeps     a rule returns a Layout and an offset in elements counted from the input's own; it
          copies nothing and knows no tensor.
Touches   base.layout, base.shapes.
Not here  the operators that apply them (ops/views)."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous_strides, layout
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.base.shapes import Shape, infer_size, wrap_dim, wrap_dims


def restrided(input: Layout, shape: Shape, strides: Shape) -> Layout:
    """Another shape and strides over the same elements."""
    return layout(shape, strides, input.dtype, input.device, input.is_conj)


def recounted(offset: int, given: Layout, seen: Layout) -> int:
    """An offset in elements of one layout as one in elements of another, pairs of them or parts."""
    found, rest = divmod(offset * given.itemsize, seen.itemsize)
    if rest:
        raise RuntimeError(
            helped(
                "Tensor must have a storage_offset divisible by 2",
                given=f"a view of real numbers from number {offset} of their memory on",
                fix="view_as_complex(x.clone())",
            )
        )
    return found


def view_strides(input: Layout, shape: Shape) -> Shape | None:
    """Strides under which `shape` shows the same elements in the same order, or None."""
    if input.n_elements == 0:
        return input.strides if input.shape == shape else contiguous_strides(shape)
    if input.ndim == 0:
        return (1,) * len(shape)
    strides = [0] * len(shape)
    view_dim = len(shape) - 1
    chunk_stride = input.strides[-1]
    chunk = view_chunk = 1
    for dim in range(input.ndim - 1, -1, -1):
        chunk *= input.shape[dim]
        joins = dim > 0 and (
            input.shape[dim - 1] == 1 or input.strides[dim - 1] == chunk * chunk_stride
        )
        if joins:
            continue
        # End of a run of dims that are evenly spaced together: split it by the new shape.
        while view_dim >= 0 and (view_chunk < chunk or shape[view_dim] == 1):
            strides[view_dim] = view_chunk * chunk_stride
            view_chunk *= shape[view_dim]
            view_dim -= 1
        if view_chunk != chunk:
            return None
        if dim > 0:
            chunk_stride = input.strides[dim - 1]
            chunk = view_chunk = 1
    return tuple(strides) if view_dim == -1 else None


def viewed(input: Layout, shape: Sequence[int]) -> Layout:
    """torch.Tensor.view(*shape)."""
    wanted = infer_size(shape, input.n_elements)
    strides = view_strides(input, wanted)
    if strides is None:
        raise RuntimeError(
            helped(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
                given=f"shape {input.shape}, strides {input.strides}, to {wanted}",
                fix="tensor.reshape(...) copies where it must",
            )
        )
    return restrided(input, wanted, strides)


def expanded(input: Layout, shape: Sequence[int]) -> Layout:
    """torch.Tensor.expand: sizes of 1 repeated without a copy, new dims in front."""
    missing = len(shape) - input.ndim
    if missing < 0:
        kind = SCALAR_TYPE_NAMES[input.dtype.name]
        is_old = kind in ("Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
        tensor_name = f"torch.{kind}Tensor" if is_old else f"CPU{kind}Type"
        raise RuntimeError(
            f"expand({tensor_name}{{{list(input.shape)}}}, size={list(shape)}): the number of "
            f"sizes provided ({len(shape)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({input.ndim})"
        )
    sizes: list[int] = []
    strides: list[int] = []
    for dim in range(len(shape) - 1, -1, -1):
        wanted = shape[dim]
        own = input.shape[dim - missing] if dim >= missing else 1
        if dim >= missing:
            stride = input.strides[dim - missing]
        else:
            stride = sizes[-1] * strides[-1] if sizes else 0
        if wanted == -1:
            if dim < missing:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, "
                    f"non-existing dimension {dim}"
                )
            wanted = own
        elif wanted != own:
            if own != 1:
                raise RuntimeError(
                    helped(
                        f"The expanded size of the tensor ({wanted}) must match the existing size "
                        f"({own}) at non-singleton dimension {dim}.  Target sizes: "
                        f"{list(shape)}.  Tensor sizes: {list(input.shape)}",
                        expected="sizes that are equal or 1, counted from the right",
                    )
                )
            stride = 0
        sizes.append(wanted)
        strides.append(stride)
    return restrided(input, tuple(reversed(sizes)), tuple(reversed(strides)))


def permuted(input: Layout, dims: Sequence[int]) -> Layout:
    """Dims in another order."""
    if len(dims) != input.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is "
            f"not equal to len(dims) = {len(dims)}"
        )
    if len({wrap_dim(each, input.ndim) for each in dims}) != len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    order = wrap_dims(dims, input.ndim)
    shape = tuple(input.shape[dim] for dim in order)
    return restrided(input, shape, tuple(input.strides[dim] for dim in order))


def transposed(input: Layout, dim0: int, dim1: int) -> Layout:
    """Two dims swapped; a tensor without dims stays."""
    one, other = wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim)
    order = list(range(input.ndim))
    if order:
        order[one], order[other] = order[other], order[one]
    return permuted(input, order)


def squeezed(input: Layout, dims: Sequence[int] | None) -> Layout:
    """Without the dims of size 1, all of them or those in `dims`."""
    chosen = None if dims is None else wrap_dims(dims, input.ndim)
    kept = [
        dim
        for dim, size in enumerate(input.shape)
        if size != 1 or (chosen is not None and dim not in chosen)
    ]
    shape = tuple(input.shape[dim] for dim in kept)
    return restrided(input, shape, tuple(input.strides[dim] for dim in kept))


def unsqueezed(input: Layout, dim: int) -> Layout:
    """A dim of size 1 more, at `dim` of the result."""
    at = wrap_dim(dim, input.ndim + 1)
    stride = input.shape[at] * input.strides[at] if at < input.ndim else 1
    shape = (*input.shape[:at], 1, *input.shape[at:])
    return restrided(input, shape, (*input.strides[:at], stride, *input.strides[at:]))


def sliced(input: Layout, dim: int, start: int, length: int, step: int = 1) -> tuple[Layout, int]:
    """`length` places of a dim from `start`, every step-th. The caller has checked the range."""
    shape = (*input.shape[:dim], length, *input.shape[dim + 1 :])
    strides = (*input.strides[:dim], input.strides[dim] * step, *input.strides[dim + 1 :])
    return restrided(input, shape, strides), start * input.strides[dim]


def selected(input: Layout, dim: int, index: int) -> tuple[Layout, int]:
    """One place of a dim, which goes away. Raises IndexError outside it."""
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, input.ndim)
    size = input.shape[at]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
            f"dimension {at}"
        )
    place = index + size if index < 0 else index
    shape = (*input.shape[:at], *input.shape[at + 1 :])
    strides = (*input.strides[:at], *input.strides[at + 1 :])
    return restrided(input, shape, strides), place * input.strides[at]


def diagonalised(input: Layout, offset: int, dim1: int, dim2: int) -> tuple[Layout, int]:
    """The diagonal of two dims as a new last dim."""
    one, other = wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim)
    if one == other:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if offset >= 0:
        length = max(min(input.shape[one], input.shape[other] - offset), 0)
        start = offset * input.strides[other]
    else:
        length = max(min(input.shape[one] + offset, input.shape[other]), 0)
        start = -offset * input.strides[one]
    kept = [dim for dim in range(input.ndim) if dim not in (one, other)]
    shape = (*(input.shape[dim] for dim in kept), length)
    stride = input.strides[one] + input.strides[other]
    strides = (*(input.strides[dim] for dim in kept), stride)
    return restrided(input, shape, strides), start if length else 0
