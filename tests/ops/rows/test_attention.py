"""Attention against its formula in float64, its gradients against differences, and its bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
import flambeau.debug
from flambeau.devices.cpu.features import has_avx512

attention = torch.nn.functional.scaled_dot_product_attention
RNG = np.random.default_rng(7)
# (batch, queries, keys, width of keys, width of values): parts of tiles, blocks and vectors.
SHAPES = [
    ((2,), 3, 5, 4, 6),
    ((2, 3), 50, 70, 33, 17),
    ((1,), 96, 97, 64, 64),
    ((), 7, 300, 3, 2),
    ((3, 1), 100, 31, 16, 40),
    ((1,), 500, 200, 8, 8),
]
MASKS = ("none", "causal", "bool", "float")


def drawn(shape: tuple[Any, ...], dtype: Any = torch.float64) -> list[Any]:
    batch, queries, keys, width, value_width = shape
    sizes = ((queries, width), (keys, width), (keys, value_width))
    arrays = [RNG.standard_normal((*batch, *size)) for size in sizes]
    return [torch.tensor(each, dtype=dtype, requires_grad=True) for each in arrays]


def masked(shape: tuple[Any, ...], mask: str, dtype: Any = torch.float64) -> dict[str, Any]:
    size = shape[1:3]
    if mask == "bool":
        return {"attn_mask": torch.tensor(RNG.random(size) < 0.6)}
    if mask == "float":
        return {"attn_mask": torch.tensor(RNG.standard_normal(size), dtype=dtype)}
    return {"is_causal": mask == "causal"}


def expected(q: Any, k: Any, v: Any, attn_mask: Any = None, is_causal: bool = False) -> Any:
    """The result from plain operators, differentiable."""
    scores = q.double() @ k.double().transpose(-1, -2) / q.shape[-1] ** 0.5
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask.double()
    is_empty = (scores == float("-inf")).all(-1, True)
    weights = torch.softmax(scores.masked_fill(is_empty, 0.0), -1).masked_fill(is_empty, 0.0)
    return weights @ v.double()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(shape: tuple[Any, ...], mask: str) -> None:
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        given, more = drawn(shape, dtype), masked(shape, mask, dtype)
        weights = torch.tensor(RNG.standard_normal((*shape[0], shape[1], shape[4])))
        found = attention(*given, **more)
        wanted = expected(*given, **more)
        assert (found - wanted).abs().max().item() < tolerance
        grads = torch.autograd.grad((found * weights).sum(), given)
        plain = torch.autograd.grad((wanted * weights).sum(), given)
        for one, other in zip(grads, plain, strict=True):
            assert (one - other).abs().max().item() < tolerance * max(1, other.abs().max().item())


@pytest.mark.parametrize("mask", MASKS)
def test_the_same_bits_whatever_the_machine(mask: str) -> None:
    for shape in (SHAPES[1], SHAPES[5]):
        given, more = drawn(shape, torch.float32), masked(shape, mask, torch.float32)

        def results(given: list[Any] = given, more: dict[str, Any] = more) -> list[bytes]:
            out = attention(*given, **more)
            grads = torch.autograd.grad((out * out).sum(), given)
            return [each.detach().numpy().tobytes() for each in (out, *grads)]

        first = results()
        for threads in (1, 3, 7):
            with flambeau.debug.threads(threads):
                assert results() == first
        for bits in (256, 512) if has_avx512() else (256,):
            with flambeau.debug.vector_bits(bits):
                assert results() == first
        with flambeau.debug.fuse(False):
            assert results() == first


def test_a_row_does_not_depend_on_the_others() -> None:
    q, k, v = drawn(((2,), 120, 130, 16, 16), torch.float32)
    whole = attention(q, k, v)
    alone = attention(q[1:, 77:78], k[1:], v[1:])
    assert alone.tolist() == whole[1:, 77:78].tolist()


def test_strides_and_broadcasts() -> None:
    q, k, v = drawn(((2, 3), 9, 11, 8, 8))
    wanted = expected(q, k, v)
    swapped = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in (q, k, v)]
    assert (attention(*swapped) - wanted).abs().max().item() < 1e-12
    turned = [each.mT.contiguous().mT for each in (q, k, v)]
    assert (attention(*turned) - wanted).abs().max().item() < 1e-12
    shared = attention(q, k[:1, :1], v[:, :1], torch.ones(11, dtype=torch.bool))
    wanted = expected(q, k[:1, :1].expand(2, 3, 11, 8), v[:, :1].expand(2, 3, 11, 8))
    assert (shared - wanted).abs().max().item() < 1e-12


@pytest.mark.parametrize("mask", [None, (2, 6, 9, 11), (1, 9, 11), (9, 11)], ids=str)
def test_heads_that_share_keys(mask: Any) -> None:
    q = torch.tensor(RNG.standard_normal((2, 6, 9, 8)), requires_grad=True)
    k, v = (torch.tensor(RNG.standard_normal((2, 3, 11, n)), requires_grad=True) for n in (8, 5))
    mask = None if mask is None else torch.tensor(RNG.standard_normal(mask))
    wide = [each.repeat_interleave(2, 1) for each in (k, v)]
    found, wanted = attention(q, k, v, mask, enable_gqa=True), expected(q, *wide, mask)
    assert (found - wanted).abs().max().item() < 1e-12
    for one, other in zip(
        torch.autograd.grad(found.sum(), (q, k, v)),
        torch.autograd.grad(wanted.sum(), (q, k, v)),
        strict=True,
    ):
        assert (one - other).abs().max().item() < 1e-11


def test_dropout_and_its_gradient() -> None:
    q, k, v = drawn(((2,), 60, 70, 8, 8))
    torch.manual_seed(3)
    found = attention(q, k, v, dropout_p=0.25)
    torch.manual_seed(3)
    kept = torch.nn.functional.dropout(torch.ones(2, 60, 70), 0.25).double() != 0
    weights = torch.softmax(q @ k.mT / 8**0.5, -1)
    wanted = (weights * kept / 0.75) @ v
    assert (found - wanted).abs().max().item() < 1e-12
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), (q, k, v)),
        torch.autograd.grad(wanted.square().sum(), (q, k, v)),
        strict=True,
    ):
        assert (one - other).abs().max().item() < 1e-11


def test_half_precision_is_computed_in_float32() -> None:
    given = [each.detach().to(torch.bfloat16) for each in drawn(SHAPES[1])]
    found = attention(*given)
    assert found.dtype is torch.bfloat16
    assert found.tolist() == attention(*[each.float() for each in given]).bfloat16().tolist()


def test_corners() -> None:
    q, k, v = drawn(((2,), 4, 6, 3, 5))
    assert attention(q[:, :0], k, v).shape == (2, 0, 5)
    assert attention(q, k[:, :0], v[:, :0]).tolist() == [[[0.0] * 5] * 4] * 2
    assert attention(q[:0], k[:0], v[:0]).shape == (0, 4, 5)
    none = torch.full((2, 4, 3), 9.0).double().requires_grad_()
    attention(none, k[:, :0], v[:, :0]).sum().backward()
    assert not none.grad.any().item()
    nothing = attention(q, k, v, torch.zeros(4, 6, dtype=torch.bool))
    grads = torch.autograd.grad(nothing.sum(), (q, k, v))
    assert all(not each.any().item() for each in (nothing, *grads))
    with torch.no_grad():
        k[0, 2, 1] = float("nan")
    assert attention(q, k, v).isnan().tolist() == [[[True] * 5] * 4, [[False] * 5] * 4]
    causal = attention(q, k, v, is_causal=True).isnan()
    assert causal[0].any(-1).tolist() == [False, False, True, True]


def test_second_derivatives() -> None:
    given = drawn(((1,), 4, 5, 3, 2))
    assert torch.autograd.gradgradcheck(lambda *a: attention(*a, is_causal=True), given)


def test_errors() -> None:
    q = torch.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Long"):
        attention(q.long(), q.long(), q.long())
    with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be bool or float"):
        attention(q, q, q, torch.ones(3, 3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="same dtype"):
        attention(q, q.double(), q)


@pytest.mark.parametrize(("n_queries", "n_keys"), [(12, 45), (55, 144), (48, 50)])
def test_what_hidden_keys_get_of_nan_is_the_same_with_vectors_of_any_width(n_queries, n_keys):
    def gradients(bits):
        with torch.debug.vector_bits(bits):
            query = torch.ones(1, 1, n_queries, 8)
            query[..., -1, 3] = float("nan")
            tensors = [query, torch.ones(1, 1, n_keys, 8), torch.ones(1, 1, n_keys, 8)]
            for each in tensors:
                each.requires_grad_()
            attention(*tensors, is_causal=True).sum().backward()
            return [each.grad.isnan().tolist() for each in tensors]

    assert gradients(256) == gradients(512 if has_avx512() else None)
