"""Sparse tensors made: from coordinates and values, from dense tensors, by the old constructors.

Keeps     coordinates are looked at when they are given: one outside the size is refused.
Touches   coo.
Not here  matrices by rows (csr.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.sparse.coo import SparseTensor
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.public import forms

__all__ = ["old_constructor", "sparse_coo_tensor", "to_sparse"]


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A tensor of the elements at (sparse dims, n) coordinates; values may have dims of their own.

    Raises   RuntimeError: coordinates and values or size do not fit each other.

    >>> import flambeau as torch
    >>> torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).to_dense()
    tensor([[0., 2.],
            [3., 0.]])
    """
    if values is None:
        return _empty(size if indices is None else indices, dtype)
    index = indices if isinstance(indices, Tensor) else creation.tensor(indices)
    value = values if isinstance(values, Tensor) else creation.tensor(values)
    index = index.to(dtypes.int64)
    value = value.to(dtype) if dtype is not None else value
    value = value.to(device) if device is not None else value
    if index.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(index.shape)}")
    if value.ndim == 0 or index.shape[1] != value.shape[0]:
        nnz = value.shape[0] if value.ndim else 1
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{index.shape[1]}, nnz from values: {nnz}"
        )
    shape = _checked_size(index, value, size)
    if requires_grad:
        value = value.detach().requires_grad_()
    return SparseTensor(index, value, shape, bool(is_coalesced))


def _empty(size: Any, dtype: Any) -> SparseTensor:
    """A tensor of this size that stores nothing."""
    shape = tuple(size)
    element = creation.tensor(0.0).dtype if dtype is None else dtype
    index = t.zeros((len(shape), 0), dtype=dtypes.int64)
    return SparseTensor(index, t.zeros((0,), dtype=element), shape, True)


def _checked_size(index: Tensor, value: Tensor, size: Any) -> tuple[int, ...]:
    """The size, by default as large as the coordinates ask for."""
    own = tuple(value.shape[1:])
    count = index.shape[0]
    if size is not None and len(tuple(size)) != count + len(own):
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(tuple(size))}, sparse_dim = {count}, dense_dim = {len(own)}"
        )
    if not index.numel():
        return (0,) * count + own if size is None else tuple(size)
    lowest, highest = t.amin(index, 1).tolist(), t.amax(index, 1).tolist()
    needed = tuple(last + 1 for last in highest)
    shape = (*needed, *own) if size is None else tuple(size)
    for dim in range(count):
        if lowest[dim] < 0:
            raise RuntimeError(f"found negative index {lowest[dim]} for dim {dim}")
        if needed[dim] > shape[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but found "
                f"index {needed[dim] - 1}"
            )
    if shape[count:] != own:
        raise RuntimeError(
            f"values has incorrect size, expected {[index.shape[1], *shape[count:]]}, got "
            f"{list(value.shape)}"
        )
    return shape


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:  # fmt: skip
    """The elements that are not 0, as a sparse tensor.

    sparse_dim   how many of the first dims coordinates name; those of values are not 0 as a whole
    layout       torch.sparse_csr for a matrix by rows
    """
    if layout is not None and str(layout).endswith("sparse_csr"):
        return to_sparse_csr(self)
    count = self.ndim if sparse_dim is None else sparse_dim
    if not 0 < count <= self.ndim and self.ndim:
        raise RuntimeError(
            f"sparse_dim must be in the range of [1, {self.ndim}], but got {sparse_dim}"
        )
    plain = self.detach()
    stored = plain != 0
    for _ in range(self.ndim - count):
        stored = stored.any(-1)
    index = forms.nonzero(stored).mT.contiguous()
    flat = self.reshape(-1, *self.shape[count:])
    keys = t.zeros((index.shape[1],), dtype=dtypes.int64)
    for dim in range(count):
        keys = keys * self.shape[dim] + index[dim]
    return SparseTensor(index, flat.index_select(0, keys), self.shape, True)


def to_sparse_coo(self: Tensor) -> SparseTensor:
    """The elements that are not 0, by their coordinates."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """The elements of a matrix that are not 0, by rows."""
    from flambeau.sparse.csr import of_coordinates

    return of_coordinates(to_sparse(self))


def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements at the coordinates that another one stores."""
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    flat = self.reshape(-1, *self.shape[mask.sparse_dim() :])
    return mask._with_values(flat.index_select(0, mask._keys()))


def old_constructor(name: str, element: Any) -> Any:
    """torch.sparse.FloatTensor and its like: of coordinates, values and size, or of sizes alone."""

    def make(*arguments: Any) -> SparseTensor:
        if not arguments:
            return _empty((0,), element)
        if isinstance(arguments[0], Tensor):
            indices, values, *size = arguments
            return sparse_coo_tensor(indices, values.to(element), *size)
        sizes = arguments if isinstance(arguments[0], int) else arguments[0]
        return _empty(sizes, element)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A sparse tensor of {element} from its indices, values and size."
    return make
