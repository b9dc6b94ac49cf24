"""Scaled dot product attention: products around a softmax over rows.

Keeps     a row with nothing to attend to gives zeros, as torch's does.
Touches   ops.define, rows.softmax.
Not here  drawing the dropout mask and grouped heads (nn/functional.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import contiguous
from flambeau.ops.define import (
    Inferred,
    Number,
    Operator,
    OptionalTensor,
    Tensor,
    c_type_name,
    operator,
)
from flambeau.ops.rows.softmax import softmax_gradient_of

LOWEST: Final = float("-inf")


def masked_scores(b: Any, query: Any, key: Any, mask: Any, is_causal: bool, scale: Any) -> Any:
    """query @ key^T * scale, plus the mask (or -inf where it is False)."""
    compute = query.dtype
    scores = b.product(query, b.transpose(key, len(key.shape) - 2, len(key.shape) - 1))
    scores = b.map(lambda k, s, f: k.mul(s, f), scores, scale)
    if is_causal:
        ndim = len(scores.shape)
        row, column = (b.iota(tuple(scores.shape), dim) for dim in (ndim - 2, ndim - 1))
        scores = b.map(lambda k, s, i, j: k.select(k.le(j, i), s, LOWEST), scores, row, column)
    if mask is None:
        return scores
    if mask.dtype is dtypes.bool_:
        return b.map(lambda k, s, m: k.select(m, s, LOWEST), scores, mask)
    return b.map(lambda k, s, m: k.add(s, m), scores, b.convert(mask, compute))


def safe_softmax(b: Any, scores: Any) -> Any:
    """softmax over the last dim; zeros for a row that is -inf throughout."""
    dim = (len(scores.shape) - 1,)
    largest = b.reduce("max", scores, dim, True)
    terms = b.map(
        lambda k, s, m: k.exp(k.sub(s, k.select(k.eq(m, LOWEST), 0.0, m))), scores, largest
    )
    total = b.reduce("sum", terms, dim, True)
    return b.map(lambda k, e, s: k.div(e, k.select(k.eq(s, 0.0), 1.0, s)), terms, total)


def dropped(b: Any, weights: Any, dropout_mask: Any, keep: Any) -> Any:
    """Weights with dropout, if there is any."""
    if dropout_mask is None:
        return weights

    def formula(k: Any, w: Any, kept: Any, share: Any) -> Any:
        return k.select(kept, k.div(w, k.convert(share, k.dtype_of(w))), 0.0)

    return b.map(formula, weights, dropout_mask, keep)


@operator("attention", function=False, returns=("output", "weights"))
class Attention(Operator):
    """softmax(query @ key^T * scale + mask) @ value, and the softmax itself for the gradient.

    Narrow dtypes are computed in float32 throughout, as in torch; the softmax stays so."""

    def infer(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: OptionalTensor,
        dropout_mask: OptionalTensor, scale: Number, keep: Number, is_causal: bool,
    ) -> Inferred:  # fmt: skip
        for each in (key, value):
            if each.dtype is not query.dtype:
                names = [c_type_name(one) for one in (query, key, value)]
                raise RuntimeError(
                    "Expected query, key, and value to have the same dtype, but got query.dtype: "
                    f"{names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead."
                )
        batch = shapes.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
            raise RuntimeError(
                f"query {list(query.shape)}, key {list(key.shape)} and value "
                f"{list(value.shape)} do not fit together"
            )
        if attn_mask is not None and is_causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                "is_causal=True"
            )
        rows = (*batch, query.shape[-2])
        given = [e for e in (query, key, value, attn_mask, dropout_mask) if e is not None]
        device = shapes.common_device(given)
        output = contiguous((*rows, value.shape[-1]), query.dtype, device)
        weights = contiguous((*rows, key.shape[-2]), query.dtype.compute, device)
        if attn_mask is not None:
            shapes.broadcast_shapes(attn_mask.shape, weights.shape)
        return Inferred((output, weights), {"is_causal": is_causal})

    def lower(
        self, b: Any, query: Any, key: Any, value: Any, attn_mask: Any, dropout_mask: Any,
        scale: Any, keep: Any, is_causal: bool,
    ) -> Any:  # fmt: skip
        element = query.dtype
        query, key, value = (b.convert(each, element.compute) for each in (query, key, value))
        scores = masked_scores(b, query, key, attn_mask, is_causal, scale)
        weights = safe_softmax(b, scores)
        used = dropped(b, weights, dropout_mask, keep)
        return b.convert(b.product(used, value), element), weights

    def vjp(
        self, t: Any, grad_output: Any, grad_weights: Any, query: Any, key: Any, value: Any,
        dropout_mask: Any, weights: Any, scale: Any, keep: Any, needs: Any,
    ) -> Any:  # fmt: skip
        if grad_output is None:
            grad_output = value.new_zeros((*weights.shape[:-1], value.shape[-1]))
        if grad_weights is None and not t.is_grad_enabled():
            parts = t.attention_backward(
                grad_output, query, key, value, dropout_mask, weights, scale, keep
            )
            return (
                *(part if needed else None for part, needed in zip(parts, needs[:4], strict=True)),
                None,
            )
        grad_output, query, key, value = (
            each.to(weights.dtype) for each in (grad_output, query, key, value)
        )
        used = weights if dropout_mask is None else t.dropout_mask(weights, dropout_mask, keep)
        into_weights = grad_output.matmul(value.transpose(-1, -2))
        if dropout_mask is not None:
            into_weights = t.dropout_mask(into_weights, dropout_mask, keep)
        if grad_weights is not None:
            into_weights = into_weights + grad_weights
        into_scores = t.softmax_backward(into_weights, weights, (weights.dim() - 1,))
        return (
            into_scores.matmul(key) * scale if needs[0] else None,
            into_scores.transpose(-1, -2).matmul(query) * scale if needs[1] else None,
            used.transpose(-1, -2).matmul(grad_output) if needs[2] else None,
            into_scores if needs[3] else None,
            None,
        )

    def samples(self, s: Any) -> list[Any]:
        q, k, v = s.real(2, 3, 4), s.real(2, 5, 4), s.real(2, 5, 6)
        return [
            s(q, k, v, None, None, 0.5, 1.0, False),
            s(q, k, v, s.real(3, 5), None, 0.5, 1.0, False),
            s(q, k, v, None, s.boolean(2, 3, 5), 0.5, 0.8, True),
        ]


@operator(
    "attention_backward", function=False,
    returns=("grad_query", "grad_key", "grad_value", "grad_mask"),
)  # fmt: skip
class AttentionBackward(Operator):
    """Gradients of attention from its weights; those nobody reads are not computed."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, query: Tensor, key: Tensor, value: Tensor,
        dropout_mask: OptionalTensor, weights: Tensor, scale: Number, keep: Number,
    ) -> Any:  # fmt: skip
        batch = weights.shape[:-2]
        element: dtype = query.dtype
        parts = [
            contiguous((*batch, *each.shape[-2:]), element, query.device)
            for each in (query, key, value)
        ]
        return (*parts, contiguous(weights.shape, element, query.device))

    def lower(
        self, b: Any, grad_output: Any, query: Any, key: Any, value: Any, dropout_mask: Any,
        weights: Any, scale: Any, keep: Any,
    ) -> Any:  # fmt: skip
        ndim = len(weights.shape)
        last, before = ndim - 1, ndim - 2
        element = query.dtype
        grad_output, query, key, value = (
            b.convert(each, element.compute) for each in (grad_output, query, key, value)
        )

        def flipped(tensor: Any) -> Any:
            return b.transpose(tensor, len(tensor.shape) - 2, len(tensor.shape) - 1)

        used = dropped(b, weights, dropout_mask, keep)
        into_value = b.product(b.transpose(used, before, last), grad_output)
        into_weights = dropped(b, b.product(grad_output, flipped(value)), dropout_mask, keep)
        into_mask = softmax_gradient_of(b, into_weights, weights, (last,))
        into_scores = b.map(lambda k, g, f: k.mul(g, f), into_mask, scale)
        into_query = b.product(into_scores, key)
        into_key = b.product(b.transpose(into_scores, before, last), query)
        parts = (into_query, into_key, into_value, into_mask)
        return tuple(b.convert(part, element) for part in parts)

    def samples(self, s: Any) -> list[Any]:
        q, k, v = s.real(2, 3, 4), s.real(2, 5, 4), s.real(2, 5, 6)
        return [s(s.real(2, 3, 6), q, k, v, None, s.real(2, 3, 5), 0.5, 1.0)]
