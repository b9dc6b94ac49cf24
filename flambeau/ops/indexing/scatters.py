"""Writing by index: scatter, scatter_add, index_add, index_copy, index_put.

Keeps     where indices repeat, sums are taken and the last of the writes wins in the order of the
          indices, whatever the number of threads.
Touches   ops.define, indexing.gathers.
Not here  the kernels (devices/cpu/scatter/): `b.kernel` names them."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.layout import Layout, layout
from flambeau.ops.define import (
    Bound,
    Inferred,
    Number,
    Operand,
    Operator,
    Tensor,
    Tensors,
    operator,
    type_name,
)
from flambeau.ops.elementwise.arithmetic import times
from flambeau.ops.elementwise.copying import refuse_complex_value
from flambeau.ops.indexing.gathers import (
    are_adjacent,
    bounds_along,
    check_index,
    flat_index,
    index_bounds,
    index_shape,
    indexed_dims,
    refuse_empty,
)


def same_layout(input: Layout) -> Layout:
    """Layout of a copy that is written to."""
    return layout(input.shape, shapes.like_strides(input), input.dtype, input.device)


class Scattering(Operator):
    """input with elements of src written (or added) at index along dim."""

    inplace = True
    writes_chosen = True
    kernel = "scatter.put"

    def checked(self, input: Layout, dim: int, index: Layout, src: Any) -> Inferred:
        """Layout and attributes; raises torch's errors."""
        if index.n_elements:
            check_index(index, f"{self.name}(): Expected dtype int32/int64 for index")
        at = shapes.wrap_dim(dim, input.ndim)
        if isinstance(src, Layout):
            if src.dtype is not input.dtype:
                raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
            self.check_shapes(input, at, index, src)
        elif index.n_elements and max(index.ndim, 1) != max(input.ndim, 1):
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as self tensor"
            )
        return Inferred((same_layout(input),), {"dim": at})

    def check_shapes(self, input: Layout, dim: int, index: Layout, src: Layout) -> None:
        """index must fit into src, and into input but for dim."""
        if not index.n_elements:
            return
        ranks = [max(each.ndim, 1) for each in (input, index, src)]
        if ranks[0] != ranks[1]:
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as self tensor"
            )
        if ranks[1] != ranks[2]:
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        for place, size in enumerate(index.shape):
            own = input.shape[place] if input.ndim else 1
            given = src.shape[place] if src.ndim else 1
            if (place != dim and size > own) or size > given:
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than self "
                    f"{list(input.shape)} apart from dimension {dim} and to be no larger size "
                    f"than src {list(src.shape)}"
                )

    def bounds(self, input: Layout, dim: int, **rest: Any) -> list[Bound]:
        return bounds_along(input, dim)

    def lower(self, b: Any, input: Any, dim: int, index: Any, src: Any) -> Any:
        result = b.updated(input)
        if 0 in index.shape:
            return result
        target = result if input.shape else b.unsqueeze(result, 0)
        index = b.convert(index if index.shape else b.unsqueeze(index, 0), dtypes.int64)
        if not hasattr(src, "shape"):
            src = b.full((), src, input.dtype)
        if not src.shape:
            src = b.expand(b.convert(src, input.dtype), index.shape)
        for place, size in enumerate(index.shape):
            src = b.narrow(src, place, 0, size)
            if place != dim:
                target = b.narrow(target, place, 0, size)
        b.kernel(self.kernel, (index, src), (target,), dim=dim)
        return result


def scattered_source(t: Any, grad: Any, dim: int, index: Any, layout: Layout) -> Any:
    """The cotangent of src: read back where index is, zeros in what was not used of it."""
    return padded_as(t, grad.gather(dim, index), layout)


def padded_as(t: Any, part: Any, layout: Layout) -> Any:
    """The first places of a tensor with this layout, zeros in the others."""
    missing = [own - used for own, used in zip(layout.shape, part.shape, strict=True)]
    if not any(missing):
        return part
    return t.constant_pad_nd(part, [each for size in reversed(missing) for each in (0, size)], 0)


@operator("scatter")
class Scatter(Scattering):
    """input[index[i][j]][j] = src[i][j], for dim 0 of a matrix; src may be a number."""

    def infer(self, input: Tensor, dim: int, index: Tensor, src: Operand) -> Inferred:
        found = self.checked(input, dim, index, src)
        if not isinstance(src, Layout):
            refuse_complex_value(input, src)
        return found

    def vjp(self, t: Any, grad: Any, dim: int, index: Any, src_layout: Any, needs: Any) -> Any:
        return (
            grad.scatter(dim, index, 0) if needs[0] else None,
            None,
            scattered_source(t, grad, dim, index, src_layout) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        index = s.permutation(3, 4, below=5)
        return [s(s.real(5, 4), 0, index, s.real(3, 4)), s(s.real(5, 4), 0, index, 2.5)]


@operator("scatter_add")
class ScatterAdd(Scattering):
    """input[index[i][j]][j] += src[i][j], for dim 0 of a matrix."""

    kernel = "scatter.add"

    def infer(self, input: Layout, dim: int, index: Layout, src: Layout) -> Inferred:
        return self.checked(input, dim, index, src)

    def vjp(self, t: Any, grad: Any, dim: int, index: Any, src_layout: Any, needs: Any) -> Any:
        source = scattered_source(t, grad, dim, index, src_layout) if needs[2] else None
        return grad, None, source

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(5, 4), 0, s.index(3, 4, below=5), s.real(3, 4)),
            s(s.real(3, 4), 1, s.index(2, 6, below=4), s.real(2, 6)),
        ]


class IndexWriting(Operator):
    """input with slices of source written (or added) at places `index` of a dim."""

    inplace = True
    writes_chosen = True
    adds = False

    def checked(self, input: Layout, dim: int, index: Layout, source: Layout) -> Inferred:
        """Layout and attributes; raises torch's errors."""
        if index.ndim > 1:
            raise IndexError(f"{self.name}(): Index is supposed to be a vector, but got dim: "
                             f"{index.ndim} with type: {type_name(index)} and size: "
                             f"{list(index.shape)}")  # fmt: skip
        check_index(index, f"{self.name}(): Expected dtype int32/int64 for index but got: "
                           f"{type_name(index)}")  # fmt: skip
        if source.dtype is not input.dtype:
            names = type_name(input), type_name(source)
            raise RuntimeError(
                f"index_add_(): self ({names[0]}) and source ({names[1]}) must have the same "
                "scalar type"
                if self.adds
                else "index_copy_(): self and source expected to have the same dtype, but got "
                f"(self) {names[0]} and (source) {names[1]}"
            )
        at = shapes.wrap_dim(dim, input.ndim)
        expected = (*input.shape[:at], index.n_elements, *input.shape[at + 1 :])
        if input.ndim and source.shape != expected:
            if source.ndim and source.shape[at : at + 1] != (index.n_elements,):
                length = source.shape[at] if at < source.ndim else 1
                message = (
                    f"{self.name}_(): Number of indices ({index.n_elements}) should be equal to "
                    "source.size(dim)"
                )
                if self.adds:
                    raise RuntimeError(f"{message}: ({length}), for dim: {at}")
                raise IndexError(f"{message} ({length})")
            raise RuntimeError(
                f"source tensor shape must match self tensor shape, excluding the specified "
                f"dimension. Got self.shape = {list(input.shape)} source.shape = "
                f"{list(source.shape)}"
            )
        return Inferred((same_layout(input),), {"dim": at})

    def bounds(self, input: Layout, dim: int, **rest: Any) -> list[Bound]:
        at = shapes.wrap_dim(dim, input.ndim)
        size = input.shape[at] if input.ndim else 1

        def outside(index: int) -> Exception:
            words = f"index {index} is out of bounds for dimension {at} with size {size}"
            if not self.adds:
                return IndexError(f"{self.name}_(): {words}")
            if input.ndim > 1:
                return RuntimeError(words)
            return IndexError("index out of range in self")

        return [("index", 0, size, outside)]

    def write_rows(self, b: Any, input: Any, dim: int, index: Any, source: Any) -> Any:
        """The kernel takes (n indices, rest) and (size, rest)."""
        result = b.updated(input)
        if not input.shape:
            result, source = b.unsqueeze(result, 0), b.reshape(source, (1,))
        order = (dim, *[place for place in range(len(result.shape)) if place != dim])
        index = b.reshape(b.convert(index, dtypes.int64), (prod(index.shape),))
        rows, target = (b.permute(each, order) for each in (source, result))
        kernel = "scatter.add_rows" if self.adds else "scatter.put_rows"
        b.kernel(kernel, (index, rows), (target,))
        return result if input.shape else b.reshape(result, ())


@operator("index_add")
class IndexAdd(IndexWriting):
    """input[index[i]] += alpha * source[i] along dim."""

    adds = True
    specials = {"alpha": (1,)}

    def infer(
        self, input: Layout, dim: int, index: Layout, source: Layout, *, alpha: Number = 1
    ) -> Inferred:
        return self.checked(input, dim, index, source)

    def lower(self, b: Any, input: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
        if hasattr(alpha, "shape") or alpha != 1:
            compute = dtypes.uint8 if source.dtype is dtypes.bool_ else source.dtype.compute
            source = b.map(
                lambda k, x, a: k.mul(x, a), source, alpha, compute=compute, dtype=source.dtype
            )
        return self.write_rows(b, input, dim, index, source)

    def vjp(self, t: Any, grad: Any, dim: int, index: Any, alpha: Any, needs: Any) -> Any:
        source = times(grad.index_select(dim, index), alpha) if needs[2] else None
        return grad, None, source

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(5, 4), 0, s.index(6, below=5), s.real(6, 4)),
            s(s.real(2, 5), -1, s.index(3, below=5), s.real(2, 3), alpha=0.5),
        ]


@operator("index_copy")
class IndexCopy(IndexWriting):
    """input[index[i]] = source[i] along dim."""

    def infer(self, input: Layout, dim: int, index: Layout, source: Layout) -> Inferred:
        return self.checked(input, dim, index, source)

    def lower(self, b: Any, input: Any, dim: int, index: Any, source: Any) -> Any:
        return self.write_rows(b, input, dim, index, source)

    def vjp(self, t: Any, grad: Any, dim: int, index: Any, needs: Any) -> Any:
        return (
            grad.index_fill(dim, index, 0) if needs[0] else None,
            None,
            grad.index_select(dim, index) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 0, s.permutation(3, below=5), s.real(3, 4))]


@operator("index_fill")
class IndexFill(Operator):
    """input[index[i]] = value along dim."""

    inplace = True
    writes_chosen = True

    def infer(self, input: Tensor, dim: int, index: Tensor, value: Operand) -> Inferred:
        if index.ndim > 1:
            raise IndexError("Index has to be a vector/scalar")
        if index.dtype is not dtypes.int64:
            raise IndexError("index_fill_(): Expected dtype int64 for index.")
        if isinstance(value, Layout) and value.shape:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        at = shapes.wrap_dim(dim, input.ndim)
        return Inferred((same_layout(input),), {"dim": at})

    def bounds(self, input: Layout, dim: int, **rest: Any) -> list[Bound]:
        at = shapes.wrap_dim(dim, input.ndim)
        size = input.shape[at] if input.ndim else 1

        def outside(index: int) -> Exception:
            return IndexError(f"index {index} is out of bounds for dimension {at} with size {size}")

        return [("index", -size, size, outside)]

    def lower(self, b: Any, input: Any, dim: int, index: Any, value: Any) -> Any:
        # Which places are filled, as one byte each: then an ordinary select.
        size = input.shape[dim] if input.shape else 1
        chosen = b.temporary((size, 1), dtypes.uint8)
        b.write(chosen, b.full((size, 1), 0, dtypes.uint8))
        from flambeau.ops.indexing.gathers import wrapped

        place = b.reshape(wrapped(b, index, size), (prod(index.shape),))
        ones = b.memory(b.full((place.shape[0], 1), 1, dtypes.uint8))
        b.kernel("scatter.put_rows", (place, ones), (chosen,))
        along = tuple(size if each == dim else 1 for each in range(len(input.shape)))
        return b.map(
            lambda k, kept, flag, number: k.select(
                k.ne(flag, 0), k.convert(number, k.dtype_of(kept)), kept
            ),
            input,
            b.reshape(chosen, along),
            value,
            dtype=input.dtype,
        )

    def vjp(self, t: Any, grad: Any, dim: int, index: Any, needs: Any) -> Any:
        return (
            grad.index_fill(dim, index, 0) if needs[0] else None,
            None,
            self.of_value(t, grad, dim, index) if needs[2] else None,
        )

    def of_value(self, t: Any, grad: Any, dim: int, index: Any) -> Any:
        """The gradients of all places that were filled, each once however often it is named."""
        kept = t.ones_like(grad).index_fill(dim, index, 0) != 0
        return t.masked_fill(grad, kept, 0).sum()

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5, 4), 0, s.permutation(3, below=5), 0.5)]


def _broadcasts(own: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another without changing it."""
    return len(own) <= len(wanted) and all(
        size in (1, target) for size, target in zip(reversed(own), reversed(wanted), strict=False)
    )


@operator("index_put", function=True)
class IndexPut(Operator):
    """x[indices] = values, or += with accumulate; `dims` as in Index. values broadcast."""

    inplace = True
    writes_chosen = True

    def infer(
        self,
        input: Layout,
        indices: Tensors,
        values: Layout,
        accumulate: bool = False,
        *,
        dims: Any = None,
    ) -> Inferred:
        chosen = indexed_dims(input.ndim, len(indices), dims)
        shape = self.values_shape(input, indices, chosen)
        refuse_empty(input, chosen, indices)
        if not _broadcasts(values.shape, shape):
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast "
                f"to indexing result of shape {list(shape)}"
            )
        if values.dtype is not input.dtype:
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{type_name(input)} for the destination and {type_name(values)} for the source."
            )
        return Inferred((same_layout(input),), {"dims": chosen, "accumulate": accumulate})

    def values_shape(self, input: Any, indices: Any, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of x[indices]."""
        rest = [size for dim, size in enumerate(input.shape) if dim not in dims]
        at = dims[0] if are_adjacent(dims) else 0
        return (*rest[:at], *index_shape(indices), *rest[at:])

    def bounds(self, input: Layout, indices: Any, dims: Any = None, **rest: Any) -> list[Bound]:
        return index_bounds(input, indexed_dims(input.ndim, len(indices), dims))

    def lower(
        self, b: Any, input: Any, indices: Any, values: Any, dims: Any, accumulate: bool
    ) -> Any:
        flat = flat_index(b, input, indices, dims)
        shape = self.values_shape(input, indices, dims)
        values = b.expand(values, shape)
        n_places = len(flat.shape)
        at = dims[0] if are_adjacent(dims) else 0
        # values to (indices, rest), input to (indexed dims, rest).
        order = (*range(at, at + n_places), *range(at), *range(at + n_places, len(shape)))
        rest = [dim for dim in range(len(input.shape)) if dim not in dims]
        rows = b.permute(values, order)
        result = b.updated(input)
        target = b.permute(result, (*dims, *rest))
        b.kernel(
            "scatter.add_places" if accumulate else "scatter.put_places",
            (flat, rows),
            (target,),
            n_index_dims=n_places,
            n_target_dims=len(dims),
        )
        return result

    def vjp(
        self, t: Any, grad: Any, indices: Any, values_layout: Any, dims: Any, accumulate: bool,
        needs: Any,
    ) -> Any:  # fmt: skip
        kept = grad
        if needs[0] and not accumulate:
            zero = t.zeros((), dtype=grad.dtype, device=grad.device)
            kept = t.index_put(grad, indices, zero, dims=dims)
        put = t.index(grad, indices, dims) if needs[2] else None
        return kept if needs[0] else None, [None] * len(indices), put

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(5, 4), [s.permutation(3, below=5)], s.real(3, 4)),
            s(s.real(5, 4), [s.index(6, below=5)], s.real(4), True),
            s(s.real(5, 4), [s.index(3, 1, below=5), s.index(2, below=4)], s.real(3, 2), True),
        ]
