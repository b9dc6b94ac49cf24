"""Forks: after use, with work pending, from threads, within forks; both sides go on computing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
import flambeau.debug
from flambeau.engine import plan_cache, run, stream

# Python 3.12 and later warn of forks while threads run.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SECONDS = 60.0


def in_child(job: Callable[[], None]) -> int:
    """Run a job in a forked child; its process id. `finished` tells how it ended."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.alarm(int(SECONDS))
        job()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def finished(child: int) -> None:
    """Wait for a child and see that it ended well."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with {status}"
            return
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def test_after_use_and_with_work_pending() -> None:
    x = torch.arange(6.0)
    (x + 1).tolist()
    y = x * 2
    y[1:].add_(1)
    z = y.sum()

    def job() -> None:
        assert y.tolist() == [0.0, 3.0, 5.0, 7.0, 9.0, 11.0]
        x.add_(100)
        assert (z + x[0]).item() == 135.0
        a = torch.ones(500, 300)
        assert torch.exp(a @ (a.t() * 0)).sum().item() == 250_000.0

    child = in_child(job)
    x.mul_(10)
    assert x.tolist() == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    finished(child)
    assert y.tolist() == [0.0, 3.0, 5.0, 7.0, 9.0, 11.0]
    assert (z + 1).item() == 36.0


def test_both_sides_use_threads() -> None:
    with flambeau.debug.threads(3):
        x = torch.ones(6_000_000)

        def helped() -> None:
            """On a busy machine the work may be done before a worker wakes up: do it again."""
            until = time.monotonic() + SECONDS
            with flambeau.debug.counts() as counted:
                while counted.threads_used < 2 and time.monotonic() < until:
                    assert (torch.exp(x * 0) + x).sum().item() == 12_000_000.0
            assert counted.threads_used > 1

        helped()
        children = [in_child(helped) for _ in range(3)]
        for _ in range(5):
            assert (torch.exp(x * 0) + x).sum().item() == 12_000_000.0
        for child in children:
            finished(child)
        helped()


def test_fork_within_fork() -> None:
    x = torch.ones(4) * 3

    def inner() -> None:
        assert (x * 2).tolist() == [6.0] * 4

    def outer() -> None:
        x.add_(1).sub_(1)
        finished(in_child(inner))
        assert x.tolist() == [3.0] * 4

    finished(in_child(outer))
    assert x.tolist() == [3.0] * 4


def test_from_a_thread_while_others_record_and_run() -> None:
    """The child has what every thread had recorded, finished; the lock is free in it."""
    theirs = [torch.zeros(100_000) for _ in range(2)]
    mine = torch.ones(3)
    stop = threading.Event()
    errors: list[BaseException] = []

    def busy(x: torch.Tensor) -> None:
        try:
            while not stop.is_set():
                y = torch.sin(x) + x
                x.add_(1).sub_(1)
                assert y.sum().item() == 0.0
        except BaseException as error:
            errors.append(error)

    def job() -> None:
        assert (mine + 1).tolist() == [2.0] * 3
        torch.exp(torch.ones(50_000)).sum().item()
        run.forget_plans()
        assert float((mine * 3).sum()) == 9.0
        assert all(x[0].item() in (0.0, 1.0) for x in theirs)

    def forks() -> None:
        try:
            for _ in range(6):
                mine.add_(1).sub_(1)
                finished(in_child(job))
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=busy, args=(x,), daemon=True) for x in theirs]
    forker = threading.Thread(target=forks)
    for thread in [*workers, forker]:
        thread.start()
    forker.join(SECONDS)
    stop.set()
    for thread in workers:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert not errors, errors
    assert [x.sum().item() for x in theirs] == [0.0, 0.0]
    assert mine.tolist() == [1.0] * 3


def test_pending_work_of_other_threads_is_done_once() -> None:
    x = torch.zeros(3)
    ready, go = threading.Event(), threading.Event()

    def owner() -> None:
        x.add_(1)
        ready.set()
        go.wait(SECONDS)
        x.add_(1)

    thread = threading.Thread(target=owner)
    thread.start()
    ready.wait(SECONDS)

    def job() -> None:
        assert x.tolist() == [1.0] * 3

    finished(in_child(job))
    go.set()
    thread.join(SECONDS)
    assert x.tolist() == [2.0] * 3


def test_backward_on_both_sides() -> None:
    w = torch.ones(3, requires_grad=True)
    loss = (w * torch.arange(3.0)).sum()

    def job() -> None:
        loss.backward()
        assert w.grad.tolist() == [0.0, 1.0, 2.0]

    child = in_child(job)
    loss.backward()
    assert w.grad.tolist() == [0.0, 1.0, 2.0]
    finished(child)


def test_in_the_middle_of_a_loop() -> None:
    """Each child goes on where the loop stood."""
    x = torch.zeros(2)
    children = []
    for number in range(5):
        x.add_(1)
        y = x * 1.5

        def job(y: Any = y, number: int = number) -> None:
            for _ in range(10):
                y = y + 1
            assert y.tolist() == [1.5 * (number + 1) + 10] * 2

        children.append(in_child(job))
    for child in children:
        finished(child)
    assert x.tolist() == [5.0] * 2


def _square(number: float) -> float:
    return float((torch.ones(20_000) * number * number).mean())


def test_a_pool_of_forked_processes() -> None:
    (torch.ones(3) * 2).sum().item()
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        assert pool.map(_square, [1.0, 2.0, 3.0, 4.0]) == [1.0, 4.0, 9.0, 16.0]
    assert (torch.ones(3) * 2).sum().item() == 6.0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fork_that_cannot_flush_goes_on() -> None:
    """What fails when it is run stays pending, on both sides."""
    x = torch.ones(3) + 1

    def failing(*_: Any) -> None:
        raise RuntimeError("not now")

    original, plan_cache.plan_for = plan_cache.plan_for, failing  # type: ignore[assignment]
    try:

        def job() -> None:
            plan_cache.plan_for = original
            assert x.tolist() == [2.0] * 3

        child = in_child(job)
    finally:
        plan_cache.plan_for = original
    finished(child)
    assert x.tolist() == [2.0] * 3
    assert not stream.current().segment.closed


def test_a_fork_whose_flush_is_the_process_first() -> None:
    """The flush brings the rooms that run plans in the middle of the fork: nothing is undone
    after it that was not done before, which Python would report on stderr and go on."""
    program = """
import os
import flambeau as torch
x = torch.arange(6.0) * 2
child = os.fork()
assert (x + 1).sum().item() == 36.0
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
