"""Attention whose scores and masks functions say."""

import pytest

import flambeau as torch
from flambeau.nn import functional
from flambeau.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b, h, q, k):
    return q >= k


def test_scores_are_what_the_function_makes_of_them():
    query, bias = torch.randn(2, 4, 5, 8, requires_grad=True), torch.randn(4, 5, 5)
    got = flex_attention(query, query, query, lambda s, b, h, q, k: s * 2 + bias[h, q, k])
    scores = query @ query.mT / 8**0.5 * 2 + bias
    want = torch.softmax(scores, -1) @ query
    assert torch.allclose(got, want, atol=1e-5)
    got.sum().backward()
    assert query.grad is not None


def test_masks_and_groups_of_heads():
    query, key = torch.randn(1, 4, 6, 8), torch.randn(1, 2, 6, 8)
    mask = create_block_mask(causal, None, None, 6, 6)
    want = functional.scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True)
    got, lse = flex_attention(query, key, key, block_mask=mask, enable_gqa=True, return_lse=True)
    assert torch.allclose(got, want, atol=1e-5)
    assert lse.shape == (1, 4, 6)
    _, aux = flex_attention(query, query, query, return_aux=AuxRequest(max_scores=True))
    assert (aux.lse, aux.max_scores.shape) == (None, (1, 4, 6))
    with pytest.raises(ValueError, match="to have the same number of heads"):
        flex_attention(query, key, key)


def test_rows_in_which_all_is_masked_give_zeros():
    x = torch.randn(1, 1, 3, 2)
    nothing = create_block_mask(and_masks(causal, lambda b, h, q, k: q < k), None, None, 3, 3)
    assert flex_attention(x, x, x, block_mask=nothing).abs().sum().item() == 0.0
    either = create_block_mask(or_masks(causal, lambda b, h, q, k: q < k), None, None, 3, 3)
    assert torch.equal(flex_attention(x, x, x, block_mask=either), flex_attention(x, x, x))


def test_blocks_are_listed_as_torch_lists_them():
    mask = create_block_mask(causal, None, None, 300, 300)
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [0, 1, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert (mask.shape, round(mask.sparsity(), 2)) == ((1, 1, 300, 300), -9.23)
    again = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices)
    assert (again.shape, again.mask_mod) == ((1, 1, 384, 384), noop_mask)
