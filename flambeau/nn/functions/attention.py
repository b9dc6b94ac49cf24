"""Attention as torch.nn.functional spells it.

Keeps     scaled_dot_product_attention is one operator, its dropout mask drawn at the call.
Touches   tensor.functions, dropout.
Not here  the kernel (ops.rows.attention), MultiheadAttention (modules)."""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau.nn.functions.dropout import keep_mask
from flambeau.tensor import functions as t


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query @ key^T * scale + mask) @ value.

    >>> import flambeau as torch
    >>> q = torch.ones(1, 2, 3, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape
    torch.Size([1, 2, 3, 4])
    """
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if attn_mask is not None and is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        if times > 1 and key.shape[-3] == value.shape[-3]:
            return _of_groups(query, key, value, attn_mask, times, dropout_p, is_causal, scale)
        key = _repeated(key, times)
        value = _repeated(value, query.shape[-3] // value.shape[-3])
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    mask = None
    if dropout_p > 0.0:
        batch = tuple(query.shape[:-2])
        shape = (*batch, query.shape[-2], key.shape[-2])
        mask = keep_mask(shape, 1.0 - dropout_p, query.device)
    result = t.attention(
        query, key, value, attn_mask, mask, float(scale), 1.0 - dropout_p, is_causal
    )
    return result[0]


def _of_groups(
    query: Any, key: Any, value: Any, mask: Any, times: int, dropout_p: float, is_causal: bool,
    scale: float | None,
) -> Any:  # fmt: skip
    """Attention of heads of which `times` at a time share a key: these are a dim of their own."""
    heads = key.shape[-3]
    if mask is not None and mask.dim() >= 3:
        alone = mask.shape[-3] == 1
        mask = mask.unsqueeze(-3) if alone else mask.unflatten(-3, (heads, times))
    result = scaled_dot_product_attention(
        query.unflatten(-3, (heads, times)), key.unsqueeze(-3), value.unsqueeze(-3), mask,
        dropout_p, is_causal, scale,
    )  # fmt: skip
    return result.flatten(-4, -3)


def _repeated(heads: Any, times: int) -> Any:
    """Each head `times` times, for queries that share it."""
    if times == 1:
        return heads
    shape = list(heads.shape)
    expanded = heads.unsqueeze(-3).expand(*shape[:-2], times, *shape[-2:])
    shape[-3] *= times
    return expanded.reshape(shape)


def _projected(
    query: Any, key: Any, value: Any, embed_dim: int, weight: Any, bias: Any
) -> tuple[Any, Any, Any]:
    """Queries, keys and values from one stacked weight."""
    if query is key and key is value:
        packed = t.linear(query, weight, bias)
        return tuple(packed.split(embed_dim, -1))
    weights = weight.split(embed_dim, 0)
    biases = (None, None, None) if bias is None else bias.split(embed_dim, 0)
    return tuple(
        t.linear(each, w, b)
        for each, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def _additive(mask: Any, name: str, dtype: Any) -> Any:
    """A mask to be added: -inf where a bool one is True."""
    if mask is None:
        return None
    if mask.dtype.name == "bool":
        return t.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))
    if not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _check_dims(query: Any, key: Any, value: Any, key_padding_mask: Any) -> None:
    """Refuse a mixture of what has a batch and what has none."""
    n_dims = query.dim()
    if n_dims not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{n_dims}-D query tensor"
        )
    kind = "batched (3-D)" if n_dims == 3 else "unbatched (2-D)"
    if key.dim() != n_dims or value.dim() != n_dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {n_dims}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n_dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n_dims - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )


def _check_masks(attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> None:
    """Refuse a hint without its mask; say that two kinds of masks do not mix for long."""
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    given = [each.dtype for each in (attn_mask, key_padding_mask) if each is not None]
    if len(set(given)) > 1:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type "
            "for both instead.",
            stacklevel=4,
        )


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Attention of several heads on (length, batch, embedding) tensors; returns (output, weights).

    Raises   AssertionError: sizes that do not fit (torch's sentences)."""
    is_batched = query.dim() == 3
    _check_dims(query, key, value, key_padding_mask)
    if not is_batched:
        query, key, value = (each.unsqueeze(1) for each in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
        )
    if width // num_heads * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    _check_masks(attn_mask, key_padding_mask, is_causal)
    attn_mask = _checked_mask(
        _additive(attn_mask, "attn_mask", query.dtype), length, key.shape[0], batch * num_heads
    )
    hidden = is_causal and key_padding_mask is None and not need_weights  # by the hint alone
    key_padding_mask = _additive(key_padding_mask, "key_padding_mask", query.dtype)
    if use_separate_proj_weight:
        separate = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _projected_apart(query, key, value, separate, in_proj_bias)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        q, k, v = _projected(query, key, value, width, in_proj_weight, in_proj_bias)
    masks = [attn_mask, key_padding_mask]
    if bias_k is not None and bias_v is not None:
        k = t.cat([k, bias_k.repeat(1, batch, 1)])
        v = t.cat([v, bias_v.repeat(1, batch, 1)])
        masks = [_widened(each) for each in masks]
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else static_k
    v = _heads(v, num_heads) if static_v is None else static_v
    if add_zero_attn:
        zeros = k.new_zeros((batch * num_heads, 1, width // num_heads))
        k, v = t.cat([k, zeros], 1), t.cat([v, zeros], 1)
        masks = [_widened(each) for each in masks]
    mask = _joined_mask(masks[0], masks[1], batch, num_heads, k.shape[1])
    mask, drop = None if hidden else mask, dropout_p if training else 0.0
    mixed, shares = _attended(q, k, v, mask, drop, batch, need_weights, hidden)
    joined = mixed.transpose(0, 1).reshape(length * batch, width)
    output = t.linear(joined, out_proj_weight, out_proj_bias).reshape(
        length, batch, out_proj_weight.shape[0]
    )
    if shares is not None:
        shares = shares.reshape(batch, num_heads, length, k.shape[1])
        shares = shares.mean(1) if average_attn_weights else shares
    if is_batched:
        return output, shares
    return output.squeeze(1), None if shares is None else shares.squeeze(0)


def _projected_apart(
    query: Any, key: Any, value: Any, weights: Any, bias: Any
) -> tuple[Any, Any, Any]:
    """Queries, keys and values from a weight each."""
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(
        t.linear(each, w, b)
        for each, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def _heads(tensor: Any, num_heads: int) -> Any:
    """(length, batch, embedding) as (batch * heads, length, width of a head)."""
    length, batch, width = tensor.shape
    return tensor.reshape(length, batch * num_heads, width // num_heads).transpose(0, 1)


def _joined_mask(mask: Any, padding_mask: Any, batch: int, num_heads: int, source: int) -> Any:
    """Both masks as one for (batch * heads, length, source), or None."""
    if padding_mask is None:
        return mask
    if padding_mask.shape[0] != batch:
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {batch}, but got {padding_mask.shape[0]}"
        )
    if tuple(padding_mask.shape) != (batch, source):
        raise AssertionError(
            f"expecting key_padding_mask shape of {(batch, source)}, but got {padding_mask.shape}"
        )
    spread = padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    spread = spread.reshape(batch * num_heads, 1, source)
    return spread if mask is None else mask + spread


def _attended(
    q: Any, k: Any, v: Any, mask: Any, drop: float, batch: int, need_weights: bool, is_causal: bool
) -> tuple[Any, Any]:
    """(mixed values, shares where they are needed) of (batch * heads, length, width)."""
    if need_weights:
        scores = (q * math.sqrt(1.0 / q.shape[-1])).bmm(k.transpose(-2, -1))
        if mask is not None:
            scores = mask + scores
        shares = t.softmax(scores, -1)
        if drop > 0.0:
            from flambeau.nn.functions.dropout import dropout

            shares = dropout(shares, drop)
        return shares.bmm(v), shares
    shape = (batch, q.shape[0] // batch)
    if mask is not None:
        alone = mask.shape[0] == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if alone else mask.view(*shape, -1, k.shape[1])
    q, k, v = (each.reshape(*shape, *each.shape[1:]) for each in (q, k, v))
    mixed = scaled_dot_product_attention(q, k, v, mask, drop, is_causal)
    return mixed.flatten(0, 1), None


def _checked_mask(mask: Any, length: int, source: int, heads: int) -> Any:
    if mask is None:
        return None
    if mask.dim() == 2:
        if tuple(mask.shape) != (length, source):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, source)}."
            )
        return mask.unsqueeze(0)
    if mask.dim() == 3:
        if tuple(mask.shape) != (heads, length, source):
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {mask.shape}, but should be "
                f"{(heads, length, source)}."
            )
        return mask
    raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")


def _widened(mask: Any) -> Any:
    """A mask with one key more, which nobody is kept from."""
    return None if mask is None else t.constant_pad_nd(mask, (0, 1), 0.0)
