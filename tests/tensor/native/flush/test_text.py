"""Native flushes do what Python's do, and leave it what is out of the ordinary."""

import ctypes
import gc
import math
import signal
import sys
import threading
import time

import pytest

import flambeau as torch
from flambeau.base.errors import OutOfMemoryError
from flambeau.debug import counts, explain, threads
from flambeau.devices.cpu import memory
from flambeau.engine import run, stream
from flambeau.tensor.native import library
from flambeau.tensor.native.tables import TABLE

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native code here")


@pytest.fixture
def quick(monkeypatch):
    """What native code said of each segment it was given."""
    said = []
    flush = run.QUICK.flush

    def listening(segment):
        said.append(flush(segment))
        return said[-1]

    monkeypatch.setattr(run.QUICK, "flush", listening)
    return said


def settled():
    stream.current().synchronize("a test")


def often(step, count=5):
    """Do a step until its segment's plan is known."""
    for _ in range(count):
        kept = step()
        settled()
    return kept


def test_a_segment_that_came_often_is_run(quick):
    x = torch.arange(6.0).reshape(2, 3)
    seen = []
    for number in range(6):
        y = (x[1] * number + 1).sum()
        settled()
        seen.append(y.item())
    assert seen == [12.0 * number + 3 for number in range(6)]
    assert quick[-1] is True
    assert quick[0] is False


def test_it_counts_what_python_counts(quick):
    x = torch.ones(100)

    def step():
        y = x * 3
        return y.sum(), (y + 1).exp()

    def counted():
        with counts() as seen:
            kept = step()
        del kept
        return {
            name: getattr(seen, name)
            for name in ("kernels_launched", "segments_flushed", "records", "allocations",
                         "peak_bytes", "threads_used")
        }  # fmt: skip

    often(step, 2)
    run.forget_plans()
    settled()
    python = counted()
    assert quick[-1] is False
    often(step)
    native = counted()
    assert quick[-1] is True
    assert native == python


def test_who_is_alive_decides_the_plan(quick):
    x = torch.ones(3)

    def both():
        y = x + 1
        return y, y * 2

    often(both)
    often(lambda: both()[1])
    first, second = often(both, 1)
    assert quick[-1] is True
    assert first.tolist() == [2.0] * 3
    assert second.tolist() == [4.0] * 3


def test_numbers_and_offsets_are_the_runs_own(quick):
    x = torch.arange(20.0)
    for number in range(6):
        y = x[number : number + 3] * (number if number % 2 else number + 0.5)
        settled()
        z = x[number].item()
        factor = number if number % 2 else number + 0.5
        assert y.tolist() == [factor * (number + n) for n in range(3)]
        assert z == number
    assert True in quick


def test_an_index_outside_is_an_error_where_it_is_read(quick):
    table = torch.arange(5.0)
    index = torch.tensor([0, 4])
    outside = torch.tensor([0, 5])
    often(lambda: table[index] + 1)
    with pytest.raises(IndexError):
        (table[outside] + 1).tolist()
    assert (table[index] + 1).tolist() == [1.0, 5.0]


@pytest.fixture
def short_slices():
    """Runs come back to Python after their first step."""
    table, place = library.library().table, TABLE["slice"] // 8
    before = table[place]
    yield lambda: table.__setitem__(place, 1)
    table[place] = before


def test_a_run_that_comes_back_early_goes_on_in_python(quick, short_slices):
    x = torch.randn(50, 50)
    total = torch.zeros(50, 50)

    def step():
        total.add_(1)
        return (x @ x @ x).sum(), total.sum()

    expected = often(step)[0].item()
    short_slices()
    for number in range(3):
        said = len(quick)
        found, times = step()
        settled()
        assert quick[said] is False
        assert (found.item(), times.item()) == (expected, 2500.0 * (6 + number))


@pytest.fixture
def no_collector():
    """An exception in a callback of the collector would be lost, as Python does."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_a_signal_between_slices_loses_nothing(short_slices):
    x = torch.randn(60, 60)
    total = torch.zeros(3)

    def step():
        total.add_(1)
        return x @ x @ x, total * 2

    often(step)
    short_slices()
    for number in range(20):
        product, doubled = step()

        def strike(_, frame):
            # An exception in a finalizer would be lost, as Python does: strike again behind it.
            while frame is not None:
                if frame.f_code.co_name == "__del__":
                    signal.setitimer(signal.ITIMER_REAL, 1e-4)
                    return
                frame = frame.f_back
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, strike)
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (number + 1))
            settled()
            time.sleep(0.01)  # the signal comes in here at the latest
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGALRM, before)
        assert doubled.tolist() == [2.0 * (6 + number)] * 3
        assert product.shape == (60, 60)


def test_a_run_begun_before_is_explained_without_beginning_anew(short_slices, monkeypatch):
    """Kernels timed one by one would write twice what was written in place."""
    x = torch.randn(50, 50)
    total = torch.zeros(50, 50)

    def step():
        y = x @ x
        total.add_(1)
        return (y @ x).sum(), total.sum()

    often(step)
    short_slices()
    resumed = run.runner.shared_state
    for number in range(3):
        left = []

        def strike(state, left=left):
            if not left:
                left.append(state)
                raise KeyboardInterrupt
            return resumed(state)

        monkeypatch.setattr(run.runner, "shared_state", strike)
        product, times = step()
        with pytest.raises(KeyboardInterrupt):
            product.item()
        with explain() as seen:
            assert times.item() == 2500.0 * (6 + number)
        assert left
        assert all(math.isnan(each) for each in seen.segments[0].kernel_milliseconds)
        assert "nan ms" in str(seen)


def test_threads_change_in_the_middle_of_a_run(quick, short_slices, monkeypatch):
    """What native code began is not learnt anew under another number of threads."""
    x = torch.randn(50, 50)

    def step():
        return (x @ x @ x).sum()

    expected = often(step).item()
    short_slices()
    resumed = run.runner.shared_state

    def other_threads(state):
        torch.set_num_threads(3 - torch.get_num_threads())
        return resumed(state)

    monkeypatch.setattr(run.runner, "shared_state", other_threads)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        often(step)
        for _ in range(4):
            assert step().item() == expected
    finally:
        torch.set_num_threads(before)


def test_memory_that_cannot_be_had(monkeypatch, quick):
    x = torch.ones(600_000)
    often(lambda: x + 1)
    kept = x + 1

    def none(n_bytes):
        raise memory.OutOfMemory(n_bytes)

    monkeypatch.setattr(memory, "allocate", none)
    with pytest.raises(OutOfMemoryError):
        settled()
    monkeypatch.undo()
    assert kept.sum().item() == 1_200_000.0


def test_observers_see_what_native_code_would_have_run():
    x = torch.ones(4)
    often(lambda: x * 5)
    with explain() as seen:
        (x * 5).tolist()
    assert len(seen.segments) == 1


def test_threads_change_while_a_plan_is_known(quick):
    x = torch.randn(300_000)
    expected = often(lambda: (x * 2).exp()).tolist()
    for count in (1, 2, 3):
        with threads(count):
            assert often(lambda: (x * 2).exp()).tolist() == expected


def test_blocks_go_back(quick):
    x = torch.ones(10)
    often(lambda: x - 1)
    gc.collect()
    before = memory.STATS.current_bytes
    made = [x - n for n in range(50)]
    settled()
    for _ in range(50):
        made.append(x - 1)
        settled()
    assert memory.STATS.current_bytes - before == 100 * 40
    block = made[-1]._storage.block
    assert type(block).__name__ == "Block"
    assert (block.n_bytes, block.address % 64) == (40, 0)
    assert ctypes.c_float.from_address(block.address).value == 0.0
    del made, block
    assert memory.STATS.current_bytes == before


def test_nothing_is_kept(quick):
    x = torch.ones(3)

    def counted():
        often(lambda: (x * 2)[1:] + 1, 1000)
        return [sys.getrefcount(each) for each in (x._storage, x._layout, None, False, 0)]

    before = counted()
    after = counted()
    assert quick[-1] is True
    assert all(abs(now - then) < 50 for now, then in zip(after, before, strict=True))


def test_threads_flush_at_once():
    failures = []

    def work(number):
        x = torch.full((100,), float(number))
        for turn in range(300):
            if (x * 2 + turn).sum().item() != 100.0 * (2 * number + turn):
                failures.append((number, turn))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in workers:
        each.start()
    for _ in range(20):
        run.forget_plans()
    for each in workers:
        each.join()
    assert failures == []


def test_what_a_handler_raises_while_memory_is_had_is_not_lost(quick, monkeypatch):
    """A large block is made in Python, where a signal handler may raise: once, so once here."""
    x = torch.ones(1 << 19)

    def step():
        return (x * 2 + 1) * 3

    often(step)
    assert quick[-1] is True
    allocate = memory.allocate
    struck = []

    def striking(n_bytes):
        if not struck:
            struck.append(n_bytes)
            raise KeyboardInterrupt
        return allocate(n_bytes)

    y = step()
    with monkeypatch.context() as patch:
        patch.setattr(memory, "allocate", striking)
        with pytest.raises(KeyboardInterrupt):
            settled()
    assert struck
    assert y[:2].tolist() == [9.0, 9.0]
