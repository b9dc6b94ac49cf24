"""Counting: what is planned, compiled, allocated and kept when programs repeat themselves."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.debug import counts


def _step(x: Any, w: Any) -> Any:
    y = torch.tanh(x @ w) * 2.0
    loss = ((y - 1.0) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    return loss.item()


def test_nothing_is_planned_or_compiled_once_a_loop_has_settled() -> None:
    x, w = torch.randn(8, 4), torch.randn(4, 3, requires_grad=True)
    for _ in range(3):
        _step(x, w)
    with counts() as seen:
        for _ in range(5):
            _step(x, w)
    assert (seen.segments_planned, seen.kernels_compiled) == (0, 0)
    assert seen.segments_flushed >= 5


def test_a_new_batch_size_compiles_nothing() -> None:
    w = torch.randn(4, 3, requires_grad=True)
    for size in (64, 96, 128):
        _step(torch.randn(size, 4), w)
    with counts() as seen:
        _step(torch.randn(160, 4), w)
    assert seen.kernels_compiled == 0


def test_indexing_in_a_loop_makes_few_plans() -> None:
    x = torch.randn(1000, 4)
    total = 0.0
    with counts() as seen:
        for i in range(1000):
            total += (x[i] * 2).sum().item()
    assert seen.segments_planned <= 2
    assert abs(total - 2 * x.sum().item()) < 1e-2


def test_a_changing_number_makes_few_plans() -> None:
    x = torch.randn(16)
    with counts() as seen:
        for i in range(100):
            (x * (0.1 + i)).tolist()
    assert seen.segments_planned <= 2


def test_a_million_operators_without_a_sync_keep_memory_bounded() -> None:
    x = torch.zeros(4)
    with counts() as seen:
        for _ in range(100_000):
            x = x + 1.0
    assert x.tolist() == [100_000.0] * 4
    assert seen.segments_flushed >= 100_000 // 2048
    assert seen.peak_bytes < 1 << 16


def test_intermediates_of_a_chain_are_never_in_memory() -> None:
    x = torch.randn(100_000)
    x.tolist()
    with counts() as seen:
        y = ((x * 2 + 1).tanh() * 3).exp()
    assert seen.kernels_launched == 1
    assert seen.peak_bytes < 2 * y.nbytes
    assert seen.allocations <= 2


def test_row_kernels_are_one_kernel() -> None:
    x = torch.randn(64, 100)
    w, b = torch.randn(100), torch.randn(100)
    for function in (
        lambda: torch.softmax(x, -1),
        lambda: torch.log_softmax(x, -1),
        lambda: torch.nn.functional.layer_norm(x, (100,), w, b),
    ):
        function().tolist()
        with counts() as seen:
            function()
            torch.zeros(0)
        assert seen.kernels_launched == 0  # nobody holds the result: nothing is computed
        with counts() as seen:
            kept = function()
        assert kept.shape == (64, 100)
        assert seen.kernels_launched == 1


def test_what_nobody_reads_is_not_computed() -> None:
    x = torch.randn(1000)
    x.tolist()
    with counts() as seen:
        torch.exp(x)
    assert seen.kernels_launched == 0


def test_big_inputs_that_only_the_segment_holds_are_let_go() -> None:
    total = torch.zeros(())
    with counts() as seen:
        for _ in range(20):
            big = torch.ones(20_000_000)
            total += big.sum()
            del big
    assert total.item() == 20 * 20_000_000
    assert seen.peak_bytes < 400_000_000


def test_a_gradient_that_begins_with_one_parts_no_statements() -> None:
    """The one is made first, though recorded in the middle."""
    x = torch.randn(100, 1000, requires_grad=True)

    def step() -> None:
        x.grad = None
        (x.sin() ** 2).sum().backward()
        assert x.grad.shape == x.shape

    with torch.debug.fuse_new(True):
        step()
        x.grad.numpy()
        with counts() as seen:
            step()
            x.grad.numpy()
    assert seen.kernels_launched == 2
    assert seen.peak_bytes < 1.2 * x.nbytes


def test_a_loss_and_its_gradient_go_over_the_logits_once() -> None:
    """What belongs to rows joins the kernel that reads the same, not the newest."""
    logits = torch.randn(64, 1000, requires_grad=True)
    target = torch.arange(64)

    def step() -> float:
        logits.grad = None
        loss = torch.nn.functional.cross_entropy(logits, target)
        loss.backward()
        return loss.item()

    with torch.debug.fuse_new(True):
        step()
        logits.grad = None
        with counts() as seen:
            step()
    assert seen.kernels_launched <= 4
    assert seen.peak_bytes < 1.2 * logits.nbytes


def test_pieces_of_one_size_are_made_and_joined_in_one_kernel() -> None:
    x = torch.randn(64, 96)
    x.tolist()
    for join, shape in ((torch.cat, (192, 96)), (torch.stack, (3, 64, 96))):
        with counts() as seen:
            y = join([x * 2, x.sin(), x + 1])
            assert y.shape == shape
            y.tolist()
        assert seen.kernels_launched == 1


def test_what_is_written_between_pieces_keeps_its_order() -> None:
    def program(x: Any) -> Any:
        y = torch.cat([x * 2, x + 3, x - 1])
        y[3:7] += 1
        pairs = torch.view_as_complex(y.view(-1, 2))
        pairs.mul_(2j)
        z = torch.stack([y[:4], y[4:8] * y[:4], y[8:]])
        y[:4].copy_(z[1])
        return torch.cat([y, z.flatten(), torch.cat([y[1:5] * 2, y[:4] - z[0]])])

    x = torch.arange(4.0)
    with torch.debug.fuse(False):
        expected = program(x).tolist()
    assert program(x).tolist() == expected == program(x).tolist()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}), ("Adam", {}), ("Adam", {"amsgrad": True}),
        ("Adam", {"weight_decay": 0.1}), ("AdamW", {}), ("RMSprop", {"momentum": 0.9}),
        ("RMSprop", {"centered": True}), ("Adagrad", {}),
    ],
)  # fmt: skip
def test_a_large_parameter_is_updated_by_one_kernel(name: str, arguments: dict[str, Any]) -> None:
    parameter = torch.nn.Parameter(torch.randn(300, 400))
    optimizer = getattr(torch.optim, name)([parameter], 0.01, **arguments)
    for _ in range(3):
        parameter.grad = torch.randn(300, 400)
        parameter.grad.data_ptr()
        with counts() as seen:
            optimizer.step()
            parameter.data_ptr()
    assert seen.kernels_launched == 1
