"""Reading by index: index_select, gather, take, x[indices], embedding, one_hot.

Keeps     `bounds` says which values an index may have, so that the engine can raise torch's error
          at the line; native gathers never leave the tensor whatever the index.
Touches   ops.define, base.shapes.
Not here  writing by index (scatters.py), boolean masks (they become indices: nonzero)."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous, contiguous_strides
from flambeau.ops.define import Bound, Inferred, Operator, Tensors, operator


def check_index(index: Layout, message: str) -> None:
    """Refuse an index that is no int32 or int64."""
    if index.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(helped(message, given=repr(index.dtype), fix="index.long()"))


def bound_of_self(name: str, size: int) -> Bound:
    """Indices of index_select and embedding, with torch's error."""

    def out_of_self(index: int) -> Exception:
        given, expected = f"index {index}", f"0 to {size - 1}"
        return IndexError(helped("index out of range in self", given=given, expected=expected))

    return (name, 0, size, out_of_self)


def out_of_bounds(kind: type[Exception], dim: int, size: int) -> Any:
    """torch's error of gather, scatter and x[indices]."""
    return lambda index: kind(
        f"index {index} is out of bounds for dimension {dim} with size {size}"
    )


def bounds_along(input: Layout, dim: int) -> list[Bound]:
    """What gather and scatter take as index along dim."""
    at = shapes.wrap_dim(dim, input.ndim)
    size = input.shape[at] if input.ndim else 1
    return [("index", 0, size, out_of_bounds(RuntimeError, at, size))]


def refuse_empty(layout: Layout, dims: tuple[int, ...], indices: Any) -> None:
    """torch's error for indices of dims that have no places."""
    for dim in dims:
        if not layout.shape[dim] and any(0 not in index.shape for index in indices):
            raise IndexError("index is out of bounds for dimension with size 0")


def zeros_like_layout(t: Any, layout: Layout, like: Any) -> Any:
    """Zeros of a layout's shape in the dtype of `like`."""
    return t.zeros(layout.shape, dtype=like.dtype, device=like.device)


@operator("index_select")
class IndexSelect(Operator):
    """Places of a dim chosen by a vector of indices."""

    out_refusal = "index_select(): self and result must have the same scalar type"

    def infer(self, input: Layout, dim: int, index: Layout) -> Inferred:
        if index.ndim > 1:
            raise IndexError("index_select(): Index is supposed to be a vector")
        check_index(index, "index_select(): Expected dtype int32 or int64 for index")
        at = shapes.wrap_dim(dim, input.ndim)
        n_indices = index.n_elements
        if input.ndim == 0:
            if n_indices != 1:
                raise RuntimeError(
                    "index_select(): Index to scalar can have only 1 value, got "
                    f"{n_indices} value(s)"
                )
            return Inferred((contiguous((), input.dtype, input.device),), {"dim": 0})
        shape = (*input.shape[:at], n_indices, *input.shape[at + 1 :])
        device = shapes.common_device((input, index))
        return Inferred((contiguous(shape, input.dtype, device),), {"dim": at})

    def bounds(self, input: Layout, dim: int, **rest: Any) -> list[Bound]:
        size = input.shape[shapes.wrap_dim(dim, input.ndim)] if input.ndim else 1
        return [bound_of_self("index", size)]

    def lower(self, b: Any, input: Any, dim: int, index: Any) -> Any:
        if not input.shape:
            return input
        if not index.shape:
            index = b.unsqueeze(index, 0)
        return b.take(input, dim, b.convert(index, dtypes.int64))

    def vjp(self, t: Any, grad: Any, input_layout: Any, dim: int, index: Any) -> Any:
        return zeros_like_layout(t, input_layout, grad).index_add(dim, index, grad), None

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(5, 4), 0, s.index(3, below=5)),
            s(s.real(2, 3, 4), -1, s.index(6, below=4)),
        ]


@operator("gather")
class Gather(Operator):
    """out[i][j] = input[index[i][j]][j], for dim 0 of a matrix; alike for other dims."""

    def infer(
        self, input: Layout, dim: int, index: Layout, *, sparse_grad: bool = False
    ) -> Inferred:
        if index.n_elements:
            check_index(index, "gather(): Expected dtype int32/int64 for index")
        at = shapes.wrap_dim(dim, input.ndim)
        if index.n_elements and max(input.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as input tensor"
            )
        for place in range(min(index.ndim, input.ndim)):
            if place != at and index.shape[place] > input.shape[place]:
                raise RuntimeError(
                    f"Size does not match at dimension {place} expected index "
                    f"{list(index.shape)} to be no larger than self {list(input.shape)} apart "
                    f"from dimension {at}"
                )
        out = contiguous(index.shape, input.dtype, shapes.common_device((input, index)))
        return Inferred((out,), {"dim": at})

    def bounds(self, input: Layout, dim: int, **rest: Any) -> list[Bound]:
        return bounds_along(input, dim)

    def lower(self, b: Any, input: Any, dim: int, index: Any) -> Any:
        if 0 in index.shape:
            return b.full(index.shape, 0, input.dtype)
        if not input.shape:
            input = b.unsqueeze(input, 0)
            shape = index.shape
            index = index if shape else b.unsqueeze(index, 0)
            found = b.take(input, 0, b.convert(index, dtypes.int64))
            return found if shape else b.reshape(found, ())
        if not index.shape:
            return b.reshape(b.take(input, 0, b.convert(b.unsqueeze(index, 0), dtypes.int64)), ())
        for place in range(len(index.shape)):
            if place != dim and input.shape[place] != index.shape[place]:
                input = b.narrow(input, place, 0, index.shape[place])
        return b.gather(input, dim, b.convert(index, dtypes.int64))

    def vjp(self, t: Any, grad: Any, input_layout: Any, dim: int, index: Any) -> Any:
        return zeros_like_layout(t, input_layout, grad).scatter_add(dim, index, grad), None

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(5, 4), 0, s.index(3, 4, below=5)),
            s(s.real(5, 4), -1, s.index(3, 6, below=4)),
        ]


@operator("take")
class Take(Operator):
    """Elements of the tensor seen as one row, chosen by indices of any shape."""

    out_refusal = (
        "take(): self and out expected to have the same dtype, but got self.dtype = {result} and "
        "out.dtype = {given}"
    )

    def infer(self, input: Layout, index: Layout) -> Layout:
        if index.dtype is not dtypes.int64:
            name = promotion.SCALAR_TYPE_NAMES[index.dtype.name]
            raise RuntimeError(f"take(): Expected a long tensor for index, but got {name}")
        return contiguous(index.shape, input.dtype, shapes.common_device((input, index)))

    def bounds(self, input: Layout, **rest: Any) -> list[Bound]:
        size = input.n_elements

        def error(index: int) -> Exception:
            return IndexError(f"out of range: tried to access index {index} on a tensor of {size} "
                              "elements.")  # fmt: skip

        return [("index", -size, size, error)]

    def lower(self, b: Any, input: Any, index: Any) -> Any:
        size = prod(input.shape)
        return b.take(b.reshape(input, (size,)), 0, wrapped(b, index, size))

    def vjp(self, t: Any, grad: Any, input_layout: Any, index: Any) -> Any:
        flat = t.zeros((input_layout.n_elements,), dtype=grad.dtype, device=grad.device)
        put = t.index_put(flat, (index,), grad, accumulate=True)
        return put.view(input_layout.shape), None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.index(2, 3, below=12))]


def wrapped(b: Any, index: Any, size: int) -> Any:
    """Indices counted from the front: `size` added to negative ones."""
    count = b.size_number(size, dtypes.int64)
    return b.map(
        lambda k, i, n: k.select(k.lt(i, 0), k.add(i, n), i),
        b.convert(index, dtypes.int64),
        count,
    )


def indexed_dims(ndim: int, n_indices: int, dims: Any) -> tuple[int, ...]:
    """The dims that indices replace; the first ones unless told."""
    return tuple(range(n_indices)) if dims is None else tuple(dims)


def are_adjacent(dims: tuple[int, ...]) -> bool:
    """Whether the dims follow each other, so that the result keeps its place for them."""
    return all(two == one + 1 for one, two in pairwise(dims))


def index_shape(indices: Any) -> tuple[int, ...]:
    """Broadcast shape of the indices; raises torch's error."""
    try:
        return shapes.broadcast_shapes(*[each.shape for each in indices])
    except RuntimeError:
        listed = ", ".join(str(list(each.shape)) for each in indices)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None


def index_bounds(input: Layout, dims: tuple[int, ...]) -> list[Bound]:
    """Every index in [-size, size) of its dim."""
    return [
        (
            f"indices.{position}",
            -input.shape[dim],
            input.shape[dim],
            # torch counts the indexed dims, not the tensor's.
            out_of_bounds(IndexError, position, input.shape[dim]),
        )
        for position, dim in enumerate(dims)
    ]


def flat_index(b: Any, input: Any, indices: Any, dims: tuple[int, ...]) -> Any:
    """One index over the indexed dims taken as one, row-major."""
    total: Any = None
    for dim, index in zip(dims, indices, strict=True):
        place = wrapped(b, index, input.shape[dim])
        if total is None:
            total = place
            continue
        count = b.size_number(input.shape[dim], dtypes.int64)
        total = b.map(lambda k, t, i, n: k.add(k.mul(t, n), i), total, place, count)
    shape = shapes.broadcast_shapes(*[tuple(each.shape) for each in indices])
    return total if tuple(total.shape) == shape else b.expand(total, shape)


@operator("index", function=False)
class Index(Operator):
    """x[indices]: dims replaced by the broadcast shape of integer tensors, in place where they
    are adjacent, else in front. `dims` None: the first ones."""

    def infer(self, input: Layout, indices: Tensors, dims: Any = None) -> Inferred:
        chosen = indexed_dims(input.ndim, len(indices), dims)
        if len(chosen) > input.ndim:
            raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
        for each in indices:
            if each.dtype not in (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8):
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        refuse_empty(input, chosen, indices)
        rest = [size for dim, size in enumerate(input.shape) if dim not in chosen]
        at = chosen[0] if are_adjacent(chosen) else 0
        shape = (*rest[:at], *index_shape(indices), *rest[at:])
        device = shapes.common_device((input, *[each for each in indices if each.shape]))
        return Inferred((contiguous(shape, input.dtype, device),), {"dims": chosen})

    def bounds(self, input: Layout, indices: Any, dims: Any = None) -> list[Bound]:
        return index_bounds(input, indexed_dims(input.ndim, len(indices), dims))

    def lower(self, b: Any, input: Any, indices: Any, dims: Any) -> Any:
        flat = flat_index(b, input, indices, dims)
        if not are_adjacent(dims):
            rest = [dim for dim in range(len(input.shape)) if dim not in dims]
            input = b.permute(input, (*dims, *rest))
            dims = tuple(range(len(dims)))
        at, n_dims = dims[0], len(dims)
        if n_dims > 1:
            merged = prod(input.shape[at : at + n_dims])
            shape = (*input.shape[:at], merged, *input.shape[at + n_dims :])
            input = b.reshape(input, shape)
        if flat.shape:
            return b.take(input, at, flat)
        taken = b.take(input, at, b.unsqueeze(flat, 0))
        return b.select(taken, at, 0)

    def vjp(self, t: Any, grad: Any, input_layout: Any, indices: Any, dims: Any) -> Any:
        zeros = zeros_like_layout(t, input_layout, grad)
        put = t.index_put(zeros, indices, grad, accumulate=True, dims=dims)
        return put, [None] * len(indices)

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(5, 4), [s.index(3, below=5)]),
            s(s.real(5, 4), [s.index(3, 1, below=5), s.index(2, below=4)]),
            s(s.real(2, 5, 4), [s.index(3, below=5)], (1,)),
            s(s.real(2, 5, 4), [s.index(3, below=2), s.index(3, below=4)], (0, 2)),
        ]


@operator("embedding", methods=())
class Embedding(Operator):
    """Rows of `weight` chosen by indices of any shape."""

    out = False

    def infer(
        self,
        weight: Layout,
        indices: Layout,
        padding_idx: int = -1,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Inferred:
        if weight.ndim != 2:
            raise RuntimeError("'weight' must be 2-D")
        check_index(
            indices,
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{promotion.SCALAR_TYPE_NAMES[indices.dtype.name]}Tensor "
            "instead (while checking arguments for embedding)",
        )
        shape = (*indices.shape, weight.shape[1])
        out = contiguous(shape, weight.dtype, shapes.common_device((weight, indices)))
        attributes = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq}
        return Inferred((out,), attributes)

    def bounds(self, weight: Layout, **rest: Any) -> list[Bound]:
        return [bound_of_self("indices", weight.shape[0])]

    def lower(
        self, b: Any, weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool
    ) -> Any:
        index = b.convert(indices, dtypes.int64)
        if index.shape:
            return b.take(weight, 0, index)
        return b.select(b.take(weight, 0, b.unsqueeze(index, 0)), 0, 0)

    def vjp(
        self, t: Any, grad: Any, weight_layout: Any, indices: Any, padding_idx: int,
        scale_grad_by_freq: bool,
    ) -> Any:  # fmt: skip
        n_rows = weight_layout.shape[0]
        if scale_grad_by_freq:
            flat = indices.reshape(-1)
            counts = t.zeros((n_rows,), dtype=grad.dtype).index_add(
                0, flat, t.ones(flat.shape, dtype=grad.dtype)
            )
            grad = grad / counts.index_select(0, flat).reshape(indices.shape).unsqueeze(-1)
        return t.embedding_backward(grad, indices, n_rows, padding_idx), None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), s.index(2, 3, below=5)), s(s.real(5, 4), s.index(6, below=5), 2)]


@operator("embedding_backward", function=False)
class EmbeddingBackward(Operator):
    """Cotangents of rows added up where indices repeat, in the order of the indices; the row
    `padding_idx` gets none."""

    def infer(
        self, grad_output: Layout, indices: Layout, num_weights: int, padding_idx: int
    ) -> Layout:
        shape = (num_weights, grad_output.shape[-1])
        return contiguous(shape, grad_output.dtype, grad_output.device)

    def lower(
        self, b: Any, grad_output: Any, indices: Any, num_weights: int, padding_idx: int
    ) -> Any:
        count = prod(indices.shape)
        index = b.reshape(b.convert(indices, dtypes.int64), (count,))
        rows = b.reshape(grad_output, (count, grad_output.shape[-1]))
        result = b.temporary((num_weights, grad_output.shape[-1]), grad_output.dtype)
        b.write(result, b.full(result.shape, 0, result.dtype))
        b.kernel("scatter.add_rows", (index, rows), (result,), skipped=padding_idx)
        return result

    def vjp(self, t: Any, grad: Any, indices: Any, padding_idx: int) -> Any:
        rows = t.embedding(grad, indices)
        if padding_idx >= 0:
            rows = t.masked_fill(rows, (indices == padding_idx).unsqueeze(-1), 0)
        return rows, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4), s.index(2, 3, below=5), 5, -1)]


@operator("one_hot", function=False)
class OneHot(Operator):
    """1 at each index along a new last dim of size num_classes, 0 elsewhere."""

    differentiable = False

    def infer(self, tensor: Layout, num_classes: int) -> Layout:
        if tensor.dtype is not dtypes.int64:
            raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
        return contiguous((*tensor.shape, num_classes), dtypes.int64, tensor.device)

    def bounds(self, num_classes: int, **rest: Any) -> list[Bound]:
        def error(index: int) -> Exception:
            if index < 0:
                return RuntimeError("Class values must be non-negative.")
            return RuntimeError("Class values must be smaller than num_classes.")

        return [("tensor", 0, num_classes, error)]

    def lower(self, b: Any, tensor: Any, num_classes: int) -> Any:
        shape = (*tensor.shape, num_classes)
        return b.map(
            lambda k, place, index: k.convert(k.eq(place, index), dtypes.int64),
            b.iota(shape, len(shape) - 1),
            b.unsqueeze(tensor, len(tensor.shape)),
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.index(2, 3, below=5), 5)]


@operator("nonzero_static")
class NonzeroStatic(Operator):
    """Indices of the first `size` elements that are not 0, a row each, filled up with fill_value.
    torch.nonzero is this with size = count_nonzero(input).item()."""

    differentiable = False

    def infer(self, input: Layout, *, size: int, fill_value: int = -1) -> Layout:
        return contiguous((size, input.ndim), dtypes.int64, input.device)

    def lower(self, b: Any, input: Any, size: int, fill_value: int) -> Any:
        result = b.temporary((size, len(input.shape)), dtypes.int64)
        chosen = b.convert(input, dtypes.bool_)
        if chosen.strides != contiguous_strides(chosen.shape):
            chosen = b.map(lambda k, element: element, chosen)
        b.kernel("compact.nonzero", (chosen,), (result,), fill_value=fill_value)
        return result

    def samples(self, s: Any) -> list[Any]:
        return [s(s.boolean(3, 4), size=5)]
