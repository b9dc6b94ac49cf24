"""Threads that share tensors: each record is run once, in an order every thread agrees with."""

from __future__ import annotations

import faulthandler
import gc
import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
import flambeau.debug
from flambeau.engine import run, stream
from flambeau.engine.planning import states

ROOT = Path(__file__).parents[2]
SECONDS = 60.0


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    """Threads take turns at nearly every instruction that lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    faulthandler.dump_traceback_later(SECONDS + 5, exit=False)
    yield
    faulthandler.cancel_dump_traceback_later()
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], None]) -> None:
    """Run jobs in threads that start at once; the first exception is raised here."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(jobs))

    def work(job: Callable[[], None]) -> None:
        try:
            barrier.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a deadlock"
    if errors:
        raise errors[0]


def test_all_write_one_tensor() -> None:
    """Writes from all sides: none is lost, none is done twice."""
    x = torch.zeros(5)

    def add() -> None:
        for _ in range(300):
            x.add_(1)

    together(*[add] * 4)
    assert x.tolist() == [1200.0] * 5


def test_each_writes_its_row_and_reads_the_others() -> None:
    rows, turns = 4, 120
    x = torch.zeros(rows, 3)
    seen: list[list[Any]] = [[] for _ in range(rows)]

    def job(row: int) -> Callable[[], None]:
        def work() -> None:
            for turn in range(turns):
                x[row].add_(1)
                if turn % 4 == row % 4:
                    seen[row].append(x.sum(1))
                if turn % 7 == row:
                    own = x[row].tolist()
                    assert own == [turn + 1.0] * 3
                y = x[(row + 1) % rows] * 1.0
                x[row] = x[row] + (y - y)

        return work

    together(*[job(row) for row in range(rows)])
    assert x.tolist() == [[float(turns)] * 3] * rows
    for row, sums in enumerate(seen):
        values = [each.tolist() for each in sums]
        for before, after in itertools.pairwise(values):
            assert all(a <= b for a, b in zip(before, after, strict=True))
        assert [value[row] for value in values] == [
            3.0 * (turn + 1) for turn in range(turns) if turn % 4 == row % 4
        ]


def test_what_is_pending_elsewhere_is_run_when_it_is_read() -> None:
    """Readers run the segments of an owner that goes on recording."""
    newest: list[Any] = [torch.zeros(3)]
    done = threading.Event()

    def owner() -> None:
        x = torch.zeros(3)
        for turn in range(1500):
            x = x + 1
            y = x * 2
            y.add_(x)
            newest[0] = y
            if turn % 200 == 0:
                run.forget_plans()
        done.set()
        newest.append(x)

    def reader() -> None:
        before = 0.0
        while not done.is_set():
            value = newest[0].tolist()
            assert value == [value[0]] * 3
            assert value[0] >= before
            assert value[0] % 3 == 0
            before = value[0]

    together(owner, reader, reader)
    assert newest[1].tolist() == [1500.0] * 3


def test_a_writer_reads_what_another_has_pending() -> None:
    """A value passes from hand to hand; each hand adds to what the one before left pending."""
    slot: list[Any] = [torch.zeros(4)]
    lock = threading.Lock()
    turns, hands = 150, 4

    def work() -> None:
        for _ in range(turns):
            with lock:
                x = slot[0]
                view = x[1:3]
                view.add_(1)
                slot[0] = x + 1

    together(*[work] * hands)
    total = float(turns * hands)
    assert slot[0].tolist() == [total, 2 * total, 2 * total, total]


def test_work_left_pending_by_threads_that_ended() -> None:
    kept: list[tuple[Any, float]] = []
    shared = torch.ones(3)

    def work(number: int) -> Callable[[], None]:
        def left() -> None:
            y = shared * 0 + number
            kept.append((y + 1, number + 1.0))
            shared[number % 3].add_(1)
            shared[number % 3].sub_(1)

        return left

    together(*[work(number) for number in range(8)])
    assert shared.tolist() == [1.0] * 3
    for tensor, value in kept:
        assert tensor.tolist() == [value] * 3


def test_caches_learn_from_all_threads_at_once() -> None:
    """Signatures, ways of the native recorder, states and plans, all new and all at once."""

    def work(seed: int) -> Callable[[], None]:
        def job() -> None:
            choice = random.Random(seed)
            for turn in range(60):
                n, m = choice.randrange(1, 40), choice.randrange(1, 7)
                x = torch.arange(float(n * m)).reshape(n, m)
                y = torch.cat([x, x * 2], 1).sum(1) + x.t().reshape(-1)[:1]
                z = torch.stack([x[:, 0], x[:, -1]]).amax(0) - x[:, -1]
                w = (x.flip(0).flip(0) - x).abs().sum() + z.sum()
                expected = [3.0 * sum(range(r * m, r * m + m)) for r in range(n)]
                assert y.tolist() == expected
                assert w.item() == 0.0
                if turn % 20 == seed:
                    run.forget_plans()
                    states.forget()

        return job

    together(*[work(seed % 2) for seed in range(4)])


def test_backward_in_several_threads() -> None:
    data = torch.arange(12.0).reshape(4, 3)
    weights = torch.ones(3, requires_grad=True)
    leaves = [torch.ones(3, requires_grad=True) for _ in range(4)]

    def work(leaf: Any) -> Callable[[], None]:
        def job() -> None:
            for _ in range(25):
                loss = ((data * leaf) ** 2).sum()
                loss.backward()
                (grad,) = torch.autograd.grad((data @ (weights * 1)).sum(), weights)
                assert grad.tolist() == [18.0, 22.0, 26.0]

        return job

    together(*[work(leaf) for leaf in leaves])
    for leaf in leaves:
        assert leaf.grad.tolist() == [25 * 252.0, 25 * 332.0, 25 * 428.0]


def test_modes_belong_to_their_threads() -> None:
    x = torch.ones(2, requires_grad=True)

    def without() -> None:
        for _ in range(100):
            with torch.no_grad():
                assert not (x * 2).requires_grad

    def with_() -> None:
        for _ in range(100):
            assert (x * 2).requires_grad

    together(without, with_, without, with_)


def test_large_work_from_several_threads() -> None:
    """Several runs share the worker team."""
    x = torch.ones(300_000)

    def work() -> None:
        for _ in range(8):
            y = torch.exp(x * 0) + x
            assert y.sum().item() == 600_000.0
            assert (y.reshape(1000, 300) @ torch.ones(300)).sum().item() == 600_000.0

    together(*[work] * 3)


@pytest.mark.parametrize("fused", [True, False])
def test_random_work_on_shared_views(fused: bool) -> None:
    """A stress of a few seconds: each thread owns a stripe of one storage and writes it through
    views that others read."""
    width = 6
    x = torch.zeros(4, width)

    def job(row: int) -> Callable[[], None]:
        def work() -> None:
            choice = random.Random(row)
            mine = [0.0] * width
            own = x[row]
            for _ in range(150):
                kind = choice.randrange(7)
                low = choice.randrange(width)
                if kind == 0:
                    own[low:].add_(1)
                    mine[low:] = [value + 1 for value in mine[low:]]
                elif kind == 1:
                    x[row, low] = float(low)
                    mine[low] = float(low)
                elif kind == 2:
                    own.copy_(own.flip(0))
                    mine.reverse()
                elif kind == 3:
                    (x * 2).sum()
                elif kind == 4:
                    assert own.tolist() == mine
                elif kind == 5:
                    x.t()[low].sum().item()
                else:
                    total = own.sum() + x[(row + 1) % 4].sum() * 0
                    assert total.item() == sum(mine)
            assert own.tolist() == mine

        return work

    if fused:
        together(*[job(row) for row in range(4)])
    else:
        with flambeau.debug.fuse(False):
            together(*[job(row) for row in range(4)])


def test_finalizers_of_thread_locals() -> None:
    """They record after the thread let go of its stream."""
    x = torch.ones(3)
    kept: list[Any] = []

    class Last:
        def __init__(self) -> None:
            self.tensor = x * 2

        def __del__(self) -> None:
            for _ in range(5):
                kept.append(self.tensor + x)

    local = threading.local()

    def work() -> None:
        _ = x + 1
        local.last = Last()
        _ = x * 3

    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(kept) == 50
    assert all(tensor.tolist() == [3.0] * 3 for tensor in kept)


def test_streams_of_ended_threads_are_gone() -> None:
    def work() -> None:
        (torch.ones(2) + 1).tolist()

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    before = len(stream._STREAMS)
    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert len(stream._STREAMS) <= before


def _script(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    return done.stdout


def test_daemon_threads_at_interpreter_exit() -> None:
    """They are stopped in the middle of recording, planning, running; the process ends."""
    text = """
import threading, time, flambeau as torch
shared = torch.zeros(200_000)
def forever():
    while True:
        y = torch.exp(shared) + shared
        shared.add_(1).sub_(1)
        y.sum().item()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
class Late:
    def __del__(self):
        try:
            shared.sum().item()
        except RuntimeError as error:
            assert "at interpreter exit" in str(error), error
late = Late()
time.sleep(0.4)
print("end")
"""
    assert _script(text) == "end\n"


def test_interpreter_exit_with_work_pending() -> None:
    text = """
import atexit, flambeau as torch
x = torch.ones(3) * 2
y = [x + n for n in range(5)]
atexit.register(lambda: print(x.tolist()))
class Late:
    def __init__(self): self.tensor = x * 5
    def __del__(self): print(self.tensor.tolist())
late = Late()
"""
    assert _script(text) == "[2.0, 2.0, 2.0]\n[10.0, 10.0, 10.0]\n"
