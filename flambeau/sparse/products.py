"""Products of sparse and dense matrices, and folds over dims of sparse tensors.

Keeps     a product adds a row's terms up in the order they are stored in; gradients reach the
          values and the dense factor.
Touches   coo.
Not here  the tensors (coo.py), functions of torch that are given one (serving.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.errors import helped
from flambeau.gradients import autocast
from flambeau.sparse.coo import SparseTensor
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import distinct, queries, ranges

__all__ = ["addmm", "log_softmax", "mm", "softmax", "spmm", "sum"]


def _as_coordinates(given: Any) -> Any:
    """A matrix by rows as coordinates; anything else as it is."""
    return given.to_sparse_coo() if getattr(given, "is_sparse_csr", False) is True else given


def mm(mat1: Any, mat2: Any) -> Any:
    """Product of two matrices, one of them or both sparse; sparse where both are.

    >>> import flambeau as torch
    >>> one = torch.eye(2).to_sparse()
    >>> torch.sparse.mm(one, torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    one, other = _as_coordinates(mat1), _as_coordinates(mat2)
    for name, each in (("self", one), ("mat2", other)):
        if each.ndim != 2:
            raise RuntimeError(f"mm: Expected dim 2 tensor for {name}, got {each.ndim}D")
    if one.shape[1] != other.shape[0]:
        if isinstance(one, SparseTensor) and not isinstance(other, SparseTensor):
            raise RuntimeError(
                f"addmm: Argument #3 (dense): Expected dim 0 size {one.shape[1]}, got "
                f"{other.shape[0]}"
            )
        raise RuntimeError(
            helped(
                f"mat1 and mat2 shapes cannot be multiplied ({one.shape[0]}x{one.shape[1]} and "
                f"{other.shape[0]}x{other.shape[1]})"
            )
        )
    if not isinstance(one, SparseTensor):
        if not isinstance(other, SparseTensor):
            return t.mm(one, other)
        return mm(other.t(), one.mT).mT
    if isinstance(other, SparseTensor):
        return _of_sparse(one, other)
    rows, columns = one._index[0], one._index[1]
    values, dense = autocast.lowered(one._value, other)
    terms = t.index_select(dense, 0, columns) * values.unsqueeze(1)
    empty = t.zeros((one.shape[0], other.shape[1]), dtype=terms.dtype)
    return t.index_add(empty, 0, rows, terms)


def _of_sparse(one: SparseTensor, other: SparseTensor) -> SparseTensor:
    """Every stored element of one with all of the other's row that it meets."""
    other = other.coalesce()
    counts = t.zeros((other.shape[0],), dtype=dtypes.int64).index_add(
        0, other._index[0], t.ones((other._nnz(),), dtype=dtypes.int64)
    )
    starts = counts.cumsum(0) - counts
    met = one._index[1]
    own = counts.index_select(0, met)
    pairs = ranges.arange(one._nnz()).repeat_interleave(own)
    before = (own.cumsum(0) - own).index_select(0, pairs)
    places = starts.index_select(0, met).index_select(0, pairs)
    places = places + ranges.arange(pairs.shape[0]) - before
    index = t.stack(
        [one._index[0].index_select(0, pairs), other._index[1].index_select(0, places)], 0
    )
    values = one._value.index_select(0, pairs) * other._value.index_select(0, places)
    return SparseTensor(index, values, (one.shape[0], other.shape[1]), False).coalesce()


spmm = mm


def matmul(one: Any, other: Any) -> Any:
    """Product with a matrix, or with a vector from the right."""
    if other.ndim == 1:
        return mm(one, other.unsqueeze(1)).squeeze(1)
    return mm(one, other)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2), of a sparse mat1."""
    product = mm(mat1, mat2)
    if not isinstance(product, SparseTensor):
        (input,) = autocast.lowered(input)
    return input * beta + product * alpha


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """Sum of all elements, or over dims: sparse while a dim of coordinates is left.

    >>> import flambeau as torch
    >>> torch.sparse.sum(torch.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    input = input if dtype is None else input.to(dtype)
    if dim is None:
        return t.sum(input._value)
    given = [dim] if isinstance(dim, int) else list(dim)
    if not given:
        raise RuntimeError("Expected dim to be non-empty")
    dims = shapes.wrap_dims(given, input.ndim)
    count = input.sparse_dim()
    kept = [each for each in range(count) if each not in dims]
    values = input._value
    own = [each - count + 1 for each in dims if each >= count]
    if own:
        values = values.sum(own)
    if not kept:
        return values.sum(0)
    shape = [size for each, size in enumerate(input.shape) if each not in dims]
    if len(kept) == count:
        return SparseTensor(input._index, values, shape, input._coalesced)
    index = t.stack([input._index[each] for each in kept], 0)
    return SparseTensor(index, values, shape, False).coalesce()


def _exponents(input: SparseTensor, dim: int) -> tuple[SparseTensor, Any, Any, Any]:
    """(coalesced, values less their group's largest, groups, number of groups) along a dim of
    coordinates; elements that are not stored count for nothing."""
    input = input.coalesce()
    keys = t.zeros((input._nnz(),), dtype=dtypes.int64)
    for each in range(input.sparse_dim()):
        if each != dim:
            keys = keys * input.shape[each] + input._index[each]
    kept, groups = distinct.unique(keys, return_inverse=True)
    values = input._value
    lowest = t.full((kept.shape[0], *values.shape[1:]), float("-inf"), dtype=values.dtype)
    largest = lowest.index_reduce(0, groups, values.detach(), "amax")
    return input, values - largest.index_select(0, groups), groups, kept.shape[0]


def _softmaxed(input: SparseTensor, dim: int, dtype: Any, is_log: bool) -> SparseTensor:
    input = input if dtype is None else input.to(dtype)
    dim = shapes.wrap_dim(dim, input.ndim)
    count = input.sparse_dim()
    if dim >= count:
        input = input.coalesce()
        dense = t.log_softmax if is_log else t.softmax
        return input._with_values(dense(input._value, dim - count + 1))
    input, values, groups, n_groups = _exponents(input, dim)
    shares = values.exp()
    zeros = t.zeros((n_groups, *values.shape[1:]), dtype=values.dtype)
    totals = zeros.index_add(0, groups, shares).index_select(0, groups)
    return input._with_values(values - totals.log() if is_log else shares / totals)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Shares of the stored elements along a dim: those that are not stored count as -inf.

    >>> import flambeau as torch
    >>> torch.sparse.softmax(torch.eye(2).to_sparse(), 1).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _softmaxed(input, dim, dtype, False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Logarithms of softmax, at the stored elements."""
    return _softmaxed(input, dim, dtype, True)


def cat(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors joined along a dim of coordinates."""
    dim = shapes.wrap_dim(dim, tensors[0].ndim)
    indices, values, before = [], [], 0
    for each in tensors:
        columns = [each._index[n] + (before if n == dim else 0) for n in range(each.sparse_dim())]
        indices.append(t.stack(columns, 0))
        values.append(each._value)
        before += each.shape[dim]
    shape = list(tensors[0].shape)
    shape[dim] = before
    return SparseTensor(t.cat(indices, 1), t.cat(values, 0), shape, False)


def stack(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors joined along a new dim of coordinates."""
    return cat([each.unsqueeze(dim) for each in tensors], dim)


def dense_sum(dense: Tensor, sparse: SparseTensor, alpha: Any) -> Tensor:
    """dense + alpha * sparse.

    Raises   RuntimeError: their sizes differ; neither is broadcast.
    """
    if dense.shape != sparse.shape:
        raise RuntimeError(
            helped(
                f"add: expected 'self' and 'other' to have same size, but self has size "
                f"{list(dense.shape)} while other has size {list(sparse.shape)} (FYI: dense-sparse "
                "addition does not currently support broadcasting)",
                fix="dense.expand(sparse.shape) + sparse",
            )
        )
    rows = dense.reshape(-1, *sparse._value.shape[1:])
    values = sparse._value * alpha
    element = queries.result_type(dense, values)
    found = rows.to(element).index_add(0, sparse._keys(), values.to(element))
    return found.reshape(tuple(sparse.shape))
