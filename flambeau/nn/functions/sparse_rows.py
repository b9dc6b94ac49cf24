"""Rows read from a table whose gradient is sparse.

Keeps     the gradient stores one row for each that was read, in their order, those of the padding
          row left out; duplicates add up where it is used.
Touches   autograd.function, sparse.
Not here  tables with dense gradients (ops.indexing.gathers), choosing between both (lookup.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.function import Function
from flambeau.sparse.coo import SparseTensor
from flambeau.sparse.serving import add
from flambeau.tensor import functions as t
from flambeau.tensor.public import forms


class _Cotangent(SparseTensor):
    """A sparse gradient on its way, which adds to dense ones from either side."""

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, SparseTensor):
            return other + self
        made = add(self, other)
        return _Cotangent(made._index, made._value, made.shape, made._coalesced)


class SparseRowsRead(Function):
    """embedding(weight, indices) with a sparse gradient for the weight."""

    @staticmethod
    def forward(ctx: Any, weight: Any, indices: Any, padding_idx: int, by_freq: bool) -> Any:
        """The rows."""
        ctx.save_for_backward(indices)
        ctx.shape = tuple(weight.shape)
        ctx.padding_idx = padding_idx
        if by_freq:
            raise RuntimeError(
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            )
        return t.embedding(weight, indices, padding_idx, False, False)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """One row for each that was read."""
        (indices,) = ctx.saved_tensors
        index = indices.reshape(-1).long()
        rows = grad.reshape(-1, ctx.shape[1])
        if ctx.padding_idx >= 0:
            kept = forms.nonzero(index != ctx.padding_idx)[:, 0]
            index, rows = index.index_select(0, kept), rows.index_select(0, kept)
        return _Cotangent(index.unsqueeze(0), rows, ctx.shape, False), None, None, None
