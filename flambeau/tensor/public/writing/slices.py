"""Copies with a part replaced: slices, diagonals, masked places; flat writes.

Keeps     a copy is written through a view of it, so that gradients follow from views and writes.
Touches   functions.
Not here  writing by index along a dim (scattering.py), x[...] = y (indexing)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t
from flambeau.tensor.public.forms import index_put, index_put_
from flambeau.tensor.public.members import as_strided
from flambeau.tensor.public.queries import broadcast_tensors
from flambeau.tensor.tensor import Tensor


def _replaced(view: Any, src: Any) -> None:
    if tuple(view.shape) != tuple(src.shape):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(view.shape)}"
        )
    view.copy_(src)


def _copied(input: Tensor) -> Any:
    """A copy with the same strides: of all memory behind the tensor where it does not fill its
    part of it, as torch's."""
    if input._layout.is_dense or input._layout.may_overlap:
        return t.clone(input)
    count = input._storage.layout.span_bytes // input.dtype.itemsize
    whole = t.clone(as_strided(input, (count,), (1,), 0))
    return as_strided(whole, tuple(input.shape), input.stride(), input.storage_offset())


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """A copy with input[..., start:end:step, ...] replaced."""
    made = _copied(input)
    _replaced(t.slice(made, dim, start, end, step), src)
    return made


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with input[..., index, ...] replaced."""
    made = _copied(input)
    _replaced(t.select(made, dim, index), src)
    return made


def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy with a diagonal replaced."""
    made = _copied(input)
    _replaced(t.diagonal(made, offset, dim1, dim2), src)
    return made


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """A copy with the elements of a strided view replaced."""
    made = _copied(input)
    _replaced(made.as_strided(size, stride, storage_offset), src)
    return made


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Put a number on the main diagonal; in tall matrices again after each square, if wrapped."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    sizes = self.shape
    if self.ndim > 2 and any(size != sizes[0] for size in sizes):
        raise RuntimeError("all dimensions of input must be of equal length")
    strides = self.stride()
    view = self.detach() if not self.requires_grad else self
    step = sum(strides)
    view.as_strided((min(sizes),), (step,), self.storage_offset()).fill_(fill_value)
    if wrap and self.ndim == 2 and sizes[0] > sizes[1] + 1:
        block = sizes[1] + 1
        for start in range(block, sizes[0], block):
            part = t.narrow(view, 0, start, min(block, sizes[0] - start))
            t.diagonal(part).fill_(fill_value)
    return self


@shows("MaskedScatterBackward0")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy whose places under the mask hold the elements of source, one after the other.

    >>> masked_scatter(t.zeros(3), t.arange(3) > 0, t.arange(2) + 1.0)
    tensor([0., 1., 2.])
    """
    if input.dtype is not source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{_kind(input)} and {_kind(source)}"
        )
    if mask.dtype.name != "bool":
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype " + _kind(mask)
        )
    mask, whole = broadcast_tensors(mask, input)
    chosen = mask.reshape(-1)
    n_source = source.numel()
    if n_source < chosen.numel() and int(chosen.sum()) > n_source:
        raise RuntimeError(
            helped(
                "Number of elements of source < number of ones in mask",
                given=f"{n_source} elements",
            )
        )
    if not n_source:
        return t.clone(whole)
    number = t.clamp(t.cumsum(chosen, 0) - 1, min=0, max=n_source - 1)
    values = t.index_select(source.reshape(-1), 0, number).reshape(whole.shape)
    return t.where(chosen.reshape(whole.shape), values, whole)


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """masked_scatter in place."""
    return _put_back(self, masked_scatter(self, mask, source), lambda: mask.expand(self.shape))


def _put_back(self: Tensor, made: Tensor, chosen: Callable[[], Tensor]) -> Tensor:
    """`made` into `self`, which it equals but where `chosen` is True. Where elements share memory
    the others are not written: they would undo what those do."""
    if not self._layout.may_overlap:
        return self.copy_(made)
    mask = chosen()
    return index_put_(self, (mask,), made[mask])


def _kind(tensor: Tensor) -> str:
    from flambeau.ops.define import type_name

    return type_name(tensor._layout)


@shows("PutBackward0")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with elements, counted in row-major order, replaced or added to."""
    flat = t.clone(input).reshape(-1)
    made = index_put(flat, (index.reshape(-1),), source.reshape(-1), accumulate)
    return made.reshape(input.shape)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """put in place."""

    def chosen() -> Tensor:
        nowhere = t.zeros((self.numel(),), dtype=dtypes.bool_)
        return index_put(nowhere, (index.reshape(-1),), t.ones((), dtype=dtypes.bool_)).reshape(
            self.shape
        )

    return _put_back(self, put(self, index, source, accumulate), chosen)


# Parts under other names -----------------------------------------------------------------


def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of given sizes along a dim: views."""
    return t.split(input, list(split_sizes), dim)


@shows("UnsafeSplitBackward0")
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """split."""
    return t.split(input, split_size, dim)


@shows("UnsafeSplitBackward0")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """chunk."""
    return t.chunk(input, chunks, dim)
