"""Scaled dot product attention: one operator, whose scores are never in memory, and its gradient.

Keeps     a row with nothing to attend to gives zeros, as torch's does. What is kept for the
          gradient are two numbers a row, from which the weights come again.
Touches   ops.define, rows.softmax.
Not here  the kernels (devices/cpu/attention), drawing the dropout mask and grouped heads
          (nn/functions/attention.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes, shapes
from flambeau.base.layout import contiguous
from flambeau.ops.define import (
    Inferred,
    Operator,
    OptionalTensor,
    Tensor,
    c_type_name,
    operator,
    type_name,
    where_needed,
)
from flambeau.ops.rows.softmax import softmax_gradient_of

LOWEST: Final = float("-inf")
# Of a gradient: parts in all, and queries of a part, at least.
MOST_PARTS: Final = 16
PART_QUERIES: Final = 192


def check_operands(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool) -> None:
    """Raises torch's errors."""
    for each in (key, value):
        if each.dtype is not query.dtype:
            names = [c_type_name(one) for one in (query, key, value)]
            raise RuntimeError(
                "Expected query, key, and value to have the same dtype, but got query.dtype: "
                f"{names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead."
            )
    if not query.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type Float but found {type_name(query)}")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"query {list(query.shape)}, key {list(key.shape)} and value "
            f"{list(value.shape)} do not fit together"
        )
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if attn_mask.dtype not in (dtypes.bool_, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {c_type_name(attn_mask)} and  query.dtype: {c_type_name(query)} "
            "instead."
        )


def spread(b: Any, value: Any, batch: tuple[int, ...], rows: int, columns: int) -> Any:
    """The value as (*batch, rows, columns), columns neighbours in memory."""
    value = b.memory(value)
    if tuple(value.shape[-1:]) != (columns,) or value.strides[-1] != 1:
        value = b.expand(value, (*tuple(value.shape[:-1]), columns))
        value = b.map(lambda k, x: x, value)
    return b.expand(value, (*batch, rows, columns))


def operands_read(
    b: Any, query: Any, key: Any, value: Any, attn_mask: Any, dropout_mask: Any
) -> tuple[tuple[int, ...], list[Any]]:
    """(shape of the batch, what the kernels read: in the compute dtype, over the whole batch)."""
    element = query.dtype.compute
    operands = [b.convert(each, element) for each in (query, key, value)]
    batch = shapes.broadcast_shapes(*[tuple(each.shape[:-2]) for each in operands])
    reads = [spread(b, each, batch, *each.shape[-2:]) for each in operands]
    sizes = (query.shape[-2], key.shape[-2])
    if attn_mask is not None:
        is_bool = attn_mask.dtype is dtypes.bool_
        mask = attn_mask if is_bool else b.convert(attn_mask, element)
        reads.append(spread(b, mask, batch, *sizes))
    if dropout_mask is not None:
        reads.append(spread(b, dropout_mask, batch, *sizes))
    return batch, reads


def n_parts(n_entries: int, queries: int) -> int:
    """Parts of the queries whose cotangents of keys and values are added up at the end: more than
    one where entries are few, so that threads have something to share."""
    return max(1, min(MOST_PARTS // max(n_entries, 1), queries // PART_QUERIES))


@operator("attention", function=False, returns=("output", "largest", "share"))
class Attention(Operator):
    """softmax(query @ key^T * scale + mask) @ value; of each row also the largest score and what
    the exponentials above it are multiplied by (1 / their sum)."""

    def infer(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: OptionalTensor,
        dropout_mask: OptionalTensor, scale: float, keep: float, is_causal: bool,
    ) -> Inferred:  # fmt: skip
        check_operands(query, key, value, attn_mask, is_causal)
        batch = shapes.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        rows = (*batch, query.shape[-2])
        given = [e for e in (query, key, value, attn_mask, dropout_mask) if e is not None]
        device = shapes.common_device(given)
        if attn_mask is not None:
            shapes.broadcast_shapes(attn_mask.shape, (*rows, key.shape[-2]))
        output = contiguous((*rows, value.shape[-1]), query.dtype, device)
        number = contiguous(rows, query.dtype.compute, device)
        attributes = {"scale": float(scale), "keep": float(keep), "is_causal": is_causal}
        return Inferred((output, number, number), attributes)

    def lower(
        self, b: Any, query: Any, key: Any, value: Any, attn_mask: Any, dropout_mask: Any,
        scale: float, keep: float, is_causal: bool,
    ) -> Any:  # fmt: skip
        batch, reads = operands_read(b, query, key, value, attn_mask, dropout_mask)
        element = query.dtype.compute
        rows = (*batch, query.shape[-2])
        made = b.temporary((*rows, value.shape[-1]), element)
        numbers = [b.temporary(rows, element) for _ in range(2)]
        b.kernel(
            "attention.forward", reads, (made, *numbers), scale=scale, keep=keep,
            is_causal=is_causal, has_mask=attn_mask is not None,
            has_drop=dropout_mask is not None,
        )  # fmt: skip
        return made, *numbers

    def vjp(
        self, t: Any, grad_output: Any, query: Any, key: Any, value: Any, attn_mask: Any,
        dropout_mask: Any, largest: Any, share: Any, scale: float, keep: float, is_causal: bool,
        needs: Any,
    ) -> Any:  # fmt: skip
        if grad_output is None:
            return (None,) * 5
        if not t.is_grad_enabled():
            parts = t.attention_backward(
                grad_output, query, key, value, attn_mask, dropout_mask, largest, share, scale,
                keep, is_causal,
            )  # fmt: skip
            return *where_needed(parts, needs[:4]), None
        weights = plain_weights(t, query, key, attn_mask, scale, is_causal)
        used = weights if dropout_mask is None else t.dropout_mask(weights, dropout_mask, keep)
        into_weights = grad_output.matmul(value.transpose(-1, -2))
        if dropout_mask is not None:
            into_weights = t.dropout_mask(into_weights, dropout_mask, keep)
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
            s(q, s.real(5, 4), s.real(1, 5, 6), None, s.boolean(2, 3, 5), 0.5, 0.8, True),
        ]


def plain_weights(
    t: Any, query: Any, key: Any, attn_mask: Any, scale: float, is_causal: bool
) -> Any:
    """The weights made of plain operators, for gradients of gradients."""
    scores = (query * scale).matmul(key.transpose(-1, -2))
    if is_causal:
        allowed = t.ones(scores.shape[-2:], dtype=dtypes.bool_, device=scores.device).tril()
        scores = t.masked_fill(scores, allowed.logical_not(), LOWEST)
    elif attn_mask is not None and attn_mask.dtype is dtypes.bool_:
        scores = t.masked_fill(scores, attn_mask.logical_not(), LOWEST)
    elif attn_mask is not None:
        scores = scores + attn_mask
    is_empty = (scores == LOWEST).all(-1, True)
    weights = t.softmax(t.masked_fill(scores, is_empty, 0.0), -1)
    return t.masked_fill(weights, is_empty, 0.0)


@operator(
    "attention_backward", function=False,
    returns=("grad_query", "grad_key", "grad_value", "grad_mask"),
)  # fmt: skip
class AttentionBackward(Operator):
    """Gradients of attention; those nobody reads are not computed."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, query: Tensor, key: Tensor, value: Tensor,
        attn_mask: OptionalTensor, dropout_mask: OptionalTensor, largest: Tensor, share: Tensor,
        scale: float, keep: float, is_causal: bool,
    ) -> Any:  # fmt: skip
        batch = grad_output.shape[:-2]
        parts = [
            contiguous((*batch, *each.shape[-2:]), query.dtype, query.device)
            for each in (query, key, value)
        ]
        scores = (*grad_output.shape[:-1], key.shape[-2])
        return (*parts, contiguous(scores, query.dtype, query.device))

    def lower(
        self, b: Any, grad_output: Any, query: Any, key: Any, value: Any, attn_mask: Any,
        dropout_mask: Any, largest: Any, share: Any, scale: float, keep: float, is_causal: bool,
    ) -> Any:  # fmt: skip
        batch, reads = operands_read(b, query, key, value, attn_mask, dropout_mask)
        element = query.dtype.compute
        grad = b.convert(grad_output, element)
        reads += [spread(b, grad, batch, *grad.shape[-2:]), b.memory(largest), b.memory(share)]
        n_entries = 1
        for size in batch:
            n_entries *= size
        parts = n_parts(n_entries, query.shape[-2])
        made = [b.temporary((*batch, *query.shape[-2:]), element)]
        for each in (key, value):
            made.append(b.temporary((parts, *batch, *each.shape[-2:]), element))
        b.kernel(
            "attention.backward", reads, made, scale=scale, keep=keep, is_causal=is_causal,
            has_mask=attn_mask is not None, has_drop=dropout_mask is not None,
        )  # fmt: skip
        into_key, into_value = (
            b.select(each, 0, 0) if parts == 1 else b.reduce("sum", each, (0,)) for each in made[1:]
        )
        query, key, value = (b.convert(each, element) for each in (query, key, value))
        weights = weights_again(b, query, key, attn_mask, largest, share, scale, is_causal)
        into_weights = dropped(b, b.product(grad, flipped(b, value)), dropout_mask, keep)
        into_mask = softmax_gradient_of(b, into_weights, weights, (len(weights.shape) - 1,))
        into_query = made[0]
        if key.shape[-2] == 0:  # the kernel has no unit then
            into_query = b.full(tuple(into_query.shape), 0.0, element)
        return into_query, into_key, into_value, into_mask

    def samples(self, s: Any) -> list[Any]:
        q, k, v = s.real(2, 3, 4), s.real(2, 5, 4), s.real(2, 5, 6)
        result, numbers = s.real(2, 3, 6), (s.real(2, 3), s.real(2, 3))
        return [s(result, q, k, v, None, None, *numbers, 0.5, 1.0, False)]


def flipped(b: Any, value: Any) -> Any:
    """The last two dims swapped."""
    return b.transpose(value, len(value.shape) - 2, len(value.shape) - 1)


def weights_again(
    b: Any, query: Any, key: Any, attn_mask: Any, largest: Any, share: Any, scale: float,
    is_causal: bool,
) -> Any:  # fmt: skip
    """The weights from what the forward pass kept of each row."""
    scaled = b.map(lambda k, x: k.mul(x, scale), query)
    scores = b.product(scaled, flipped(b, key))
    last = len(scores.shape) - 1
    if is_causal:
        row, column = (b.iota(tuple(scores.shape), dim) for dim in (last - 1, last))
        scores = b.map(lambda k, s, i, j: k.select(k.le(j, i), s, LOWEST), scores, row, column)
    if attn_mask is not None and attn_mask.dtype is dtypes.bool_:
        scores = b.map(lambda k, s, m: k.select(m, s, LOWEST), scores, attn_mask)
    elif attn_mask is not None:
        mask = b.convert(attn_mask, scores.dtype)
        scores = b.map(lambda k, s, m: k.add(s, m), scores, mask)
    numbers = [b.unsqueeze(each, last) for each in (largest, share)]
    return b.map(lambda k, s, m, f: k.mul(k.exp(k.sub(s, m)), f), scores, *numbers)


def dropped(b: Any, weights: Any, dropout_mask: Any, keep: float) -> Any:
    """Weights with dropout, if there is any."""
    if dropout_mask is None:
        return weights
    return b.map(lambda k, w, kept: k.select(kept, k.div(w, keep), 0.0), weights, dropout_mask)
