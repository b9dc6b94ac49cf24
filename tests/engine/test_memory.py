"""Memory: how much a step takes and how often it asks, and what happens when there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
import flambeau.debug
from flambeau import nn
from flambeau.base.errors import OutOfMemoryError
from flambeau.debug import counts
from flambeau.devices.cpu import memory
from flambeau.engine import stream

ROOT = Path(__file__).parents[2]
SENTENCE = r"DefaultCPUAllocator: can't allocate memory: you tried to allocate \d+ bytes"


def settled(step: Callable[[], Any]) -> tuple[int, int]:
    """Blocks asked for and bytes at the peak, above those before, of a step done often before."""
    for _ in range(4):
        kept = step()
        stream.current().synchronize("a test")
        del kept
    with counts() as seen:
        kept = step()
    del kept
    return seen.allocations, seen.peak_bytes


@contextmanager
def room_for(n_bytes: int) -> Iterator[None]:
    """Let no more than so many bytes be had beyond those in use."""
    stream.current().synchronize("a test")
    limit = memory.STATS.current_bytes + n_bytes
    original = memory.allocate

    def allocate(wanted: int) -> Any:
        if memory.STATS.current_bytes + wanted > limit:
            raise memory.OutOfMemory(wanted)
        return original(wanted)

    memory.allocate = allocate
    try:
        yield
    finally:
        memory.allocate = original


# How much, how often ---------------------------------------------------------------------


def test_a_chain_takes_its_result_alone() -> None:
    x = torch.randn(100_000)
    assert settled(lambda: ((x * 2 + 1).tanh() * 3).exp()) == (1, 400_000)


def test_in_place_work_takes_nothing() -> None:
    x = torch.randn(100_000)
    rows = x.view(100, 1000)

    def step() -> None:
        x.mul_(0.5).add_(1).tanh_()
        rows[3].mul_(2)
        rows.t()[5] = 1.0

    assert settled(step) == (0, 0)


def test_overlapping_writes_take_what_they_move() -> None:
    x = torch.randn(100_000)
    halves = x.view(2, 50_000)

    def step() -> None:
        halves[0].copy_(halves[1])

    assert settled(step) == (1, 200_000)


def test_row_kernels_take_their_result_and_rows_of_scratch() -> None:
    x = torch.randn(64, 1000)
    allocations, peak = settled(lambda: torch.softmax(x, 1))
    assert allocations <= 2  # the result; scratch of a row
    assert peak <= x.nbytes + 8192


def test_dead_results_share_their_memory() -> None:
    """A chain of products: of 20 results two are in memory at a time."""
    w = torch.randn(128, 128)
    x = torch.randn(512, 128)

    def step() -> Any:
        y = x
        for _ in range(20):
            y = y @ w
        return y

    allocations, peak = settled(step)
    assert allocations <= 4
    assert peak <= 4 * x.nbytes


def test_a_training_step() -> None:
    """The same number of blocks and bytes every step, and neither grows with the steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))

    def step() -> float:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    n_bytes = sum(p.nbytes for p in model.parameters())
    with flambeau.debug.threads(1):
        for _ in range(4):
            step()
        seen = []
        for _ in range(5):
            with counts() as each:
                step()
            seen.append((each.allocations, each.peak_bytes, each.segments_flushed))
    assert len(set(seen)) == 1, seen
    allocations, peak, flushed = seen[0]
    assert flushed == 1
    assert allocations <= 8  # gradients (kept as .grad), the loss, the arena, scratch
    assert peak <= 2 * n_bytes + 64 * 1024


def test_memory_in_use_comes_back() -> None:
    stream.current().synchronize("a test")
    before = memory.STATS.current_bytes
    for _ in range(50):
        x = torch.randn(1000, requires_grad=True)
        (torch.exp(x) * x).sum().backward()
        x.grad.add_(1)
        y = torch.cat([x, x])[::3]
        y.tolist()
    del x, y
    stream.current().synchronize("a test")
    assert memory.STATS.current_bytes == before


# None left -------------------------------------------------------------------------------


def test_what_cannot_be_had_loses_nothing() -> None:
    """Nothing was written; when there is room, all is done, once."""
    x = torch.ones(50_000)
    x.tolist()
    stream.current().synchronize("a test")
    with room_for(100_000):
        x.add_(1)
        y = x * 2
        with pytest.raises(RuntimeError, match=SENTENCE):
            y.tolist()
        with pytest.raises(RuntimeError, match=SENTENCE):
            (y + 1).sum().item()
    assert y[:2].tolist() == [4.0, 4.0]
    assert x.sum().item() == 100_000.0
    assert (y + 1).sum().item() == 250_000.0


def test_what_came_before_the_failure_can_be_used() -> None:
    x = torch.ones(10_000)
    x.tolist()
    with room_for(130_000):
        early = [x + n for n in range(2)]
        late = torch.cat([x] * 10)
        with pytest.raises(RuntimeError, match=SENTENCE):
            late.tolist()
        assert [each[0].item() for each in early] == [1.0, 2.0]
        early[0].add_(early[1])
        assert early[0][3].item() == 3.0
    assert late.sum().item() == 100_000.0


def test_what_was_freed_is_enough() -> None:
    ballast = torch.zeros(60_000)
    ballast.tolist()
    x = torch.ones(50_000)
    x.tolist()
    with room_for(150_000):
        y = x * 2
        with pytest.raises(RuntimeError, match=SENTENCE):
            y.sum().item()
        del ballast
        assert y.sum().item() == 100_000.0


def test_record_by_record_before_an_error() -> None:
    """Memory of inputs and results nobody needs any more is given back between records."""
    w = torch.eye(64)
    x = torch.ones(1000, 64)
    (x @ w).tolist()
    big = torch.ones(1000, 64) * 3
    big.tolist()
    with counts() as seen, room_for(3 * big.nbytes + 100_000):
        y = big @ w
        z = y @ w
        del y
        other = big[:500] @ w
        last = torch.cat([z, other, other]) @ w
        del z, other
        del big
        total = last.sum()
        del last
        assert total.item() == 2000 * 64 * 3.0
    assert seen.segments_flushed > 2


def test_every_write_is_done_once_record_by_record() -> None:
    w = torch.eye(32)
    x = torch.ones(500, 32)
    (x @ w).tolist()
    for room in range(0, 700_000, 50_000):
        x.fill_(1)
        kept: list[Any] = []
        failures = 0
        with room_for(room):
            for _ in range(3):
                x.add_(1)
                y = x @ w
                x.add_(y)
                kept.append(y[::5].clone())
                del y
            while True:
                try:
                    x.sum().item()
                    break
                except OutOfMemoryError:
                    failures += 1
                    if failures > 3:
                        break
        assert x.sum().item() == 22 * 16_000.0
        assert [tensor.sum().item() / 3200 for tensor in kept] == [2.0, 5.0, 11.0]


def test_no_scratch_either() -> None:
    """Failing where the run itself asks for scratch memory."""
    x = torch.randn(4, 30_000)
    expected = torch.softmax(x, 1).sum(1).tolist()
    y = torch.softmax(x, 1)
    with room_for(x.nbytes + 1000), suppress(OutOfMemoryError):
        y.sum(1).tolist()
    total = y.sum(1).tolist()
    assert total == expected


def test_a_gradient_that_does_not_fit() -> None:
    x = torch.ones(40_000, requires_grad=True)
    loss = (x * 2).sum()
    with room_for(60_000):
        loss.backward()
        with pytest.raises(RuntimeError, match=SENTENCE):
            x.grad.tolist()
    assert x.grad.sum().item() == 80_000.0


@pytest.mark.parametrize("size", [2**60, 2**45])
def test_what_no_machine_holds_is_refused_at_its_line(size: int) -> None:
    x = torch.ones(3)
    for ask in (
        lambda: torch.empty(size),
        lambda: torch.zeros(size, dtype=torch.uint8),
        lambda: x[:1].expand(size) + 1,
        lambda: x[:1].expand(size).clone(),
        lambda: x[:1].expand(size).contiguous(),
    ):
        with pytest.raises(RuntimeError, match=SENTENCE):
            ask()
    assert (x + 1).tolist() == [2.0] * 3


def test_a_limit_on_the_process() -> None:
    """RLIMIT_AS: the error, and the next operation, in a process of its own."""
    text = """
import resource, flambeau as torch
x = torch.ones(10_000_000)
(x * 2 + 1).sum().item()
with open("/proc/self/statm") as lines:
    used = int(lines.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 150_000_000,) * 2)
kept = []
try:
    for number in range(20):
        kept.append(x * number)
        kept[-1][:3].tolist()
except RuntimeError as error:
    assert "DefaultCPUAllocator: can't allocate memory" in str(error), error
else:
    raise SystemExit("no error")
last = kept.pop()
n = len(kept)
assert kept[0].sum().item() == 0.0 and kept[-1][5].item() == n - 1.0
try:
    last[0].item()
except RuntimeError as error:
    assert "DefaultCPUAllocator: can't allocate memory" in str(error), error
kept.clear()
assert n >= 2 and last[5].item() == float(n), (n, last[5])
assert x.sum().item() == 10_000_000.0
for _ in range(30):
    y = x * 2
    assert y[7].item() == 2.0
try:
    torch.empty(100_000_000)
except RuntimeError as error:
    assert "you tried to allocate 400000000 bytes" in str(error), error
else:
    raise SystemExit("no error")
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "fine\n", done.stderr[-2000:]
