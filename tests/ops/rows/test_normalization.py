"""Batch norm by channels: how it is summed, and its bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
import flambeau.debug
from tests.ops.switches_support import same_under_every_switch

RNG = np.random.default_rng(11)


def results(images: Any, weight: Any, bias: Any) -> list[Any]:
    """Output, cotangents of all three, running averages."""
    running = [torch.zeros(images.shape[1]), torch.ones(images.shape[1])]
    out = torch.nn.functional.batch_norm(images, *running, weight, bias, True)
    grads = torch.autograd.grad((out * out * out).sum(), (images, weight, bias))
    return [each.detach().numpy() for each in (out, *grads, *running)]


def given(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    drawn = (shape, shape[1:2], shape[1:2])
    return tuple(  # type: ignore[return-value]
        torch.tensor(RNG.standard_normal(each).astype(np.float32), requires_grad=True)
        for each in drawn
    )


@pytest.mark.parametrize("shape", [(5, 3), (40, 70), (4, 3, 5, 7), (3, 2, 1100), (2, 3, 2, 2, 2)])
def test_the_same_bits_whatever_the_machine(shape: tuple[int, ...]) -> None:
    operands = given(shape)
    same_under_every_switch(lambda: [each.tobytes() for each in results(*operands)])


def test_memory_order_does_not_show() -> None:
    images, weight, bias = given((4, 6, 5, 3))
    turned = images.detach().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    found = results(turned.requires_grad_(), weight, bias)
    for one, other in zip(found, results(images, weight, bias), strict=True):
        assert one.tolist() == other.tolist()


def test_a_mean_that_dwarfs_the_spread() -> None:
    values = RNG.standard_normal((8, 2, 50)).astype(np.float32)
    far = torch.tensor(values + np.float32(65536)).double()
    out = torch.nn.functional.batch_norm(far.float(), None, None, None, None, True, eps=1e-30)
    away = far - far.mean((0, 2), True)
    expected = away / away.square().mean((0, 2), True).sqrt()
    assert (out - expected).abs().max().item() < 1e-5


def test_a_training_step_takes_few_kernels() -> None:
    images, weight, bias = given((4, 6, 5, 3))
    results(images, weight, bias)
    with flambeau.debug.counts() as seen:
        results(images, weight, bias)
    assert seen.kernels_launched <= 20


@pytest.mark.parametrize("shape", [(300, 40), (4, 70, 33), (1000, 1030)])
def test_layer_norm_has_the_same_bits_whatever_the_machine(shape: tuple[int, ...]) -> None:
    rows, weight, bias = (
        torch.tensor(RNG.standard_normal(each).astype(np.float32), requires_grad=True)
        for each in (shape, shape[-1:], shape[-1:])
    )

    def results() -> list[bytes]:
        out = torch.nn.functional.layer_norm(rows, shape[-1:], weight, bias)
        grads = torch.autograd.grad((out * out * out).sum(), (rows, weight, bias))
        return [each.detach().numpy().tobytes() for each in (out, *grads)]

    same_under_every_switch(results)


def test_the_gradient_of_layer_norm_is_one_kernel_for_rows_and_one_for_columns() -> None:
    rows = torch.tensor(RNG.standard_normal((100, 48)), requires_grad=True)
    weight, bias = (torch.ones(48).double().requires_grad_() for _ in range(2))

    def step() -> None:
        out = torch.nn.functional.layer_norm(rows, (48,), weight, bias)
        grads = torch.autograd.grad(out, (rows, weight, bias), rows.detach())
        torch.stack([each.sum() for each in grads]).tolist()

    step()
    with flambeau.debug.counts() as seen:
        step()
    assert seen.kernels_launched <= 5


def test_the_gradient_of_batch_norm_stores_nothing_else_of_its_size() -> None:
    rows = torch.tensor(RNG.standard_normal((2000, 48)), requires_grad=True)
    weight, bias = (torch.ones(48).double().requires_grad_() for _ in range(2))

    def step() -> None:
        out = torch.nn.functional.batch_norm(rows, None, None, weight, bias, True)
        grads = torch.autograd.grad(out, (rows, weight, bias), rows.detach())
        del out
        grads[0].numpy()

    step()
    with flambeau.debug.counts() as seen:
        step()
    assert seen.peak_bytes < 1.3 * rows.nbytes


def test_layer_norm_has_the_same_bits_with_and_without_a_gradient() -> None:
    rows, weight = (
        torch.tensor(RNG.standard_normal(shape).astype(np.float32)) for shape in ((40, 33), (33,))
    )
    alone = torch.nn.functional.layer_norm(rows, (33,), weight)
    module = torch.nn.LayerNorm(33)
    module.weight.data = weight
    kept = module(rows)
    assert kept.requires_grad
    with torch.no_grad():
        results = [each.detach().numpy().tobytes() for each in (alone, kept, module(rows))]
    assert results[0] == results[1] == results[2]
