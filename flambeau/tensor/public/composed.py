"""Functions made of a few recorded operators, for which torch has names.

Keeps     no kernel of their own: the fuser sees the operators, gradients follow from theirs.
Touches   functions, creation.
Not here  functions with several forms (forms.py)."""

from __future__ import annotations

import itertools
import math
from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.gradients.autocast import in_float32
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import creation, functions
from flambeau.tensor.arguments import python_data, refuses
from flambeau.tensor.inplace import stored, takes_out
from flambeau.tensor.tensor import Tensor


def _listed(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


# Products ------------------------------------------------------------------------------


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """Sum of products over `dims` last dims of a and first of b, or over listed dims."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._layout.ndim, b._layout.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(-dims, 0)), list(range(dims))
    else:
        first, second = [[each] if isinstance(each, int) else list(each) for each in dims]
    ndim_a, ndim_b = a._layout.ndim, b._layout.ndim
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    shape_a, shape_b = a._layout.shape, b._layout.shape
    count = 1
    for one, other in zip(first, second, strict=True):
        if shape_a[one] == 1 and shape_b[other] != 1:  # a dim of one place meets a sum
            b = functions.sum(b, other, True)
            shape_b = b._layout.shape
        elif shape_b[other] == 1 and shape_a[one] != 1:
            a = functions.sum(a, one, True)
            shape_a = a._layout.shape
        if shape_a[one] != shape_b[other]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {shape_a[one]} in dim "
                f"{one} and second has size {shape_b[other]} in dim {other}"
            )
        count *= shape_a[one]
    first = [shapes.wrap_dim(each, ndim_a) for each in first]
    second = [shapes.wrap_dim(each, ndim_b) for each in second]
    kept_a = [each for each in range(ndim_a) if each not in first]
    kept_b = [each for each in range(ndim_b) if each not in second]
    shape = (*[shape_a[each] for each in kept_a], *[shape_b[each] for each in kept_b])
    n_rows, n_columns = (math.prod(sizes) for sizes in (shape[: len(kept_a)], shape[len(kept_a) :]))
    left = functions.permute(a, (*kept_a, *first)).reshape((n_rows, count))
    right = functions.permute(b, (*second, *kept_b)).reshape((count, n_columns))
    found = functions.mm(left, right).reshape(shape)
    return stored(
        found, out,
        "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor "
        "with dtype {given}",
    )  # fmt: skip


@refuses("inner")
@takes_out
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum of products over the last dims; a product where one has no dims."""
    if not input._layout.shape or not other._layout.shape:
        return functions.mul(input, other)
    return tensordot(input, other, dims=([-1], [-1]))


@refuses("kron")
@takes_out
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Every element of the first times the whole second, as blocks."""
    ndim = max(input._layout.ndim, other._layout.ndim)
    one = (1,) * (ndim - input._layout.ndim) + input._layout.shape
    two = (1,) * (ndim - other._layout.ndim) + other._layout.shape
    left = input.reshape([size for each in one for size in (each, 1)])
    right = other.reshape([size for each in two for size in (1, each)])
    shape = [a * b for a, b in zip(one, two, strict=True)]
    return functions.mul(left, right).reshape(shape)


@shows("TraceBackward0")
@in_float32
def trace(input: Tensor) -> Tensor:
    """Sum of a matrix's diagonal."""
    if input._layout.ndim != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {input._layout.ndim}"
        )
    return functions.sum(functions.diagonal(input))


# Shapes --------------------------------------------------------------------------------


def _at_least(tensor: Tensor, ndim: int) -> Tensor:
    own = tensor._layout.ndim
    if own >= ndim:
        return tensor
    if ndim == 1:
        return functions.unsqueeze(tensor, 0)
    if ndim == 2:
        return functions.unsqueeze(_at_least(tensor, 1), 0)
    return functions.unsqueeze(_at_least(tensor, 2), -1)


def _all_at_least(tensors: tuple[Any, ...], ndim: int) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return _at_least(tensors[0], ndim)
    return tuple([_at_least(each, ndim) for each in _listed(tensors)])


def atleast_1d(*tensors: Any) -> Any:
    """Tensors without dims as vectors of one element."""
    return _all_at_least(tensors, 1)


def atleast_2d(*tensors: Any) -> Any:
    """Vectors as rows."""
    return _all_at_least(tensors, 2)


def atleast_3d(*tensors: Any) -> Any:
    """Matrices with a last dim of size 1."""
    return _all_at_least(tensors, 3)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to another tensor's shape."""
    return functions.expand(self, other._layout.shape)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Viewed under another tensor's shape."""
    return functions.view(self, other._layout.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshaped to another tensor's shape."""
    return self.reshape(other._layout.shape)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Summed over the dims that a smaller shape would broadcast over."""
    wanted = creation.sizes_of(size, "sum_to_size")
    own = self._layout.shape
    extra = len(own) - len(wanted)
    dims = list(range(extra))
    for place, target in enumerate(wanted):
        if extra < 0 or (target != own[extra + place] and target != 1):
            raise RuntimeError(
                f"size {{{list(wanted)}}} is not expandable to size {{{list(own)}}}."
            )
        if target == 1 and own[extra + place] != 1:
            dims.append(extra + place)
    if not wanted:
        return functions.sum(self)
    if not dims:
        return self
    return functions.sum(self, tuple(dims), True).reshape(wanted)


def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse."""
    if input._layout.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return functions.flip(input, (1,))


def flipud(input: Tensor) -> Tensor:
    """Rows in reverse."""
    if input._layout.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return functions.flip(input, (0,))


@shows("Rot90Backward0")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by k quarters in the plane of two dims."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input._layout.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input._layout.ndim}")
    first, second = dims
    if shapes.wrap_dim(first, input._layout.ndim) == shapes.wrap_dim(second, input._layout.ndim):
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {first} and dim1 = {second}"
        )
    k %= 4
    if k == 1:
        made: Tensor = functions.transpose(functions.flip(input, (second,)), first, second)
        return made
    if k == 2:
        return functions.flip(input, (first, second))
    if k == 3:
        other: Tensor = functions.transpose(functions.flip(input, (first,)), first, second)
        return other
    return functions.clone(input)


def _split_along(tensor: Tensor, parts: Any, dim: int, name: str, least: int) -> Any:
    if tensor._layout.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension"
            f"{'s' if least > 1 else ''}, but got a tensor with {tensor._layout.ndim} dimensions!"
        )
    size = tensor._layout.shape[dim]
    if isinstance(parts, int) and (parts <= 0 or size % parts):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{size} is not divisible by the split_size {parts}!"
        )
    return functions.tensor_split(tensor, parts, dim)


def hsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Parts side by side."""
    dim = 0 if input._layout.ndim == 1 else 1
    return _split_along(input, indices_or_sections, dim, "hsplit", 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Parts below each other."""
    return _split_along(input, indices_or_sections, 0, "vsplit", 2)


def dsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Parts along the third dim."""
    return _split_along(input, indices_or_sections, 2, "dsplit", 3)


def _some(tensors: Any, name: str) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@takes_out
def column_stack(tensors: Any) -> Tensor:
    """Vectors as columns, matrices side by side."""
    _some(tensors, "column_stack")
    parts = [each.reshape(-1, 1) if each._layout.ndim <= 1 else each for each in tensors]
    return functions.cat(parts, 1)


@takes_out
def dstack(tensors: Any) -> Tensor:
    """Tensors behind each other along the third dim."""
    _some(tensors, "dstack")
    return functions.cat([_at_least(each, 3) for each in tensors], 2)


# Diagonals -----------------------------------------------------------------------------


@shows("DiagEmbedBackward0")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dim as the diagonal of two new ones, zeros elsewhere."""
    ndim = input._layout.ndim + 1
    first, second = shapes.wrap_dim(dim1, ndim), shapes.wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input._layout.shape[-1] + abs(offset)
    shape = list(input._layout.shape[:-1])
    for dim in sorted((first, second)):
        shape.insert(dim, size)
    made: Tensor = functions.diagonal_backward(input, tuple(shape), offset, first, second)
    return made


@shows(
    lambda input, *_, **__: "DiagEmbedBackward0" if input.ndim == 1 else "DiagonalBackward0_copy"
)
@takes_out
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as a diagonal matrix, a matrix's diagonal as a vector."""
    ndim = input._layout.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim == 2:
        return functions.clone(functions.diagonal(input, diagonal))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements as a diagonal matrix."""
    return diag_embed(input.reshape(-1), offset)


@shows("BlockDiagBackward0")
def block_diag(*tensors: Any) -> Tensor:
    """Matrices along the diagonal of a larger one."""
    parts = [_at_least(each, 2) for each in _listed(tensors)]
    if not parts:
        return creation.empty(1, 0)
    for number, each in enumerate(parts):
        if each._layout.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{number} has {each._layout.ndim} dimensions"
            )
    width = sum(each._layout.shape[1] for each in parts)
    rows = []
    at = 0
    for each in parts:
        own = each._layout.shape[1]
        rows.append(functions.constant_pad_nd(each, (at, width - at - own)))
        at += own
    return functions.cat(rows, 0)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, **named: Any
) -> Tensor:
    """Places on and below a diagonal, as two rows."""
    places = [(i, j) for i in range(row) for j in range(max(0, min(col, i + offset + 1)))]
    return _two_rows(places, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, **named: Any
) -> Tensor:
    """Places on and above a diagonal, as two rows."""
    places = [(i, j) for i in range(row) for j in range(max(0, i + offset), col)]
    return _two_rows(places, dtype, device)


def _two_rows(places: list[tuple[int, int]], element: Any, where: Any) -> Tensor:
    element = element or dtypes.int64
    flat = [i for i, _ in places] + [j for _, j in places]
    made = creation.from_bytes(python_data.packed(flat, element), (2, len(places)), element)
    return made.to(creation.chosen_device(where))


# Order and combinations ------------------------------------------------------------------


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Places of the elements in order along a dim."""
    return functions.sort(input, dim, descending)[1]


@takes_out
def msort(input: Tensor) -> Tensor:
    """Elements in order along the first dim."""
    return functions.sort(input, 0)[0]


@takes_out
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements chosen along a dim, shapes broadcast."""
    if dim is None:
        made: Tensor = functions.gather(input.reshape(-1), 0, indices.reshape(-1))
        return made
    at = shapes.wrap_dim(dim, input._layout.ndim)
    one, two = list(input._layout.shape), list(indices._layout.shape)
    if len(one) != len(two):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {len(one)} dimensions for input, and {len(two)} dimensions for indices"
        )
    along_input, along_indices = one[at], two[at]
    one[at] = two[at] = 1
    shape = list(shapes.broadcast_shapes(tuple(one), tuple(two)))
    shape[at] = along_input
    whole = functions.expand(input, tuple(shape))
    shape[at] = along_indices
    # Counted from the end, and again from there, where they are negative.
    from_end = functions.remainder(indices, max(along_input, 1))
    counted = functions.where(indices < 0, from_end, indices)
    other: Tensor = functions.gather(whole, at, functions.expand(counted, tuple(shape)))
    return other


def cartesian_prod(*tensors: Any) -> Tensor:
    """Every combination of one element from each vector, a row each."""
    from flambeau.tensor.public import forms

    vectors = _listed(tensors)
    if len(vectors) == 1:
        return vectors[0]
    grids = forms.meshgrid(*vectors, indexing="ij")
    return functions.stack([each.reshape(-1) for each in grids], 1)


@shows("StackBackward0")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Combinations of r elements of a vector, a row each."""
    if input._layout.ndim != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(input._layout.shape)))
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    size = input._layout.n_elements
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(size), r))
    if r == 0:
        return creation.empty(0, dtype=input._layout.dtype)
    flat = creation.tensor([place for row in places for place in row], dtype=dtypes.int64)
    made: Tensor = functions.index_select(input, 0, flat).reshape(len(places), r)
    return made


@takes_out
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Differences of neighbours along a dim, n times."""
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return functions.clone(input)
    if input._layout.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    parts = [each for each in (prepend, input, append) if each is not None]
    result = functions.cat(parts, dim) if len(parts) > 1 else input
    at = shapes.wrap_dim(dim, result._layout.ndim)
    for _ in range(n):
        size = result._layout.shape[at]
        count = max(size - 1, 0)
        later = functions.narrow(result, at, size - count, count)
        earlier = functions.narrow(result, at, 0, count)
        if result._layout.dtype is dtypes.bool_:
            result = functions.logical_xor(later, earlier)
        else:
            result = functions.sub(later, earlier)
    return result


def trapezoid(y: Tensor, x: Any = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Area under a curve by the trapezoidal rule."""
    if y._layout.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = shapes.wrap_dim(dim, y._layout.ndim)
    size = y._layout.shape[at]
    pairs = functions.narrow(y, at, 1, size - 1) + functions.narrow(y, at, 0, size - 1)
    if x is None:
        return functions.sum(pairs, at) * (dx / 2)
    steps = diff(x, dim=-1 if x._layout.ndim == 1 else dim)
    if x._layout.ndim == 1:
        steps = steps.reshape([-1] + [1] * (y._layout.ndim - 1 - at))
    return functions.sum(pairs * steps, at) / 2


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among others."""
    one = elements if isinstance(elements, Tensor) else creation.tensor(elements)
    others = test_elements if isinstance(test_elements, Tensor) else creation.tensor(test_elements)
    same = functions.eq(functions.unsqueeze(one, -1), others.reshape(-1))
    found = functions.any(same, -1)
    return functions.logical_not(found) if invert else found


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05, cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 over the last dims, then weight and bias."""
    # What is for the gradient alone would only be taken apart.
    result: Tensor
    if is_grad_enabled() and any(map(_has_history, (input, weight, bias))):
        result = functions.layer_norm_rows(input, normalized_shape, weight, bias, eps)[0]
    else:
        result = functions.layer_norm_alone(input, normalized_shape, weight, bias, eps)
    return result


def _has_history(given: Any) -> bool:
    return isinstance(given, Tensor) and (given._autograd is not None or given._base is not None)


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Expanded to a shape."""
    return functions.expand(input, tuple(size))
