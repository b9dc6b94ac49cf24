"""Programs: patches, barriers, thread counts, interrupts, forks, several Python threads."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features, memory, runner, team
from flambeau.devices.cpu.runner import text as runner_text
from tests.devices.cpu.native_support import (
    NOTHING,
    Step,
    Words,
    denormal,
    function,
    in_new_process,
    multiply_add,
    program,
    run_single,
    slow_count,
    use_scratch,
)

THREADS = [1, 2, 3, 7]


@pytest.fixture(autouse=True)
def keep_threads() -> Iterator[None]:
    before = CONFIG.threads
    yield
    CONFIG.threads = before


def cycles(seconds: float) -> int:
    return int(seconds * features.cycles_per_second())


def test_patches_put_addresses_and_numbers_in() -> None:
    data = Words(32)
    steps: list[Step] = [
        (multiply_add(), 4, 4, [0, 1, 0], [(0, 0, 8, -1, 0), (2, -1, 0, 1, 1)]),
        (multiply_add(), 2, 2, [0, 3, 5], [(0, 0, 0, 0, 16)]),
        (multiply_add(), 1, 1, [data.address, 2, 0], [(2, -1, 100, 1, -10)]),
    ]
    words = program(steps)
    result = runner.run(words, array("q", (data.address,)), array("q", (10, 7)))
    expected = [0] * 32
    expected[1:5] = [7] * 4
    expected[20:22] = [5, 5]
    expected[0] = 30
    assert list(data.words) == expected
    assert result == (3, 1)
    other = Words(32)
    runner.run(words, array("q", (other.address,)), array("q", (3, 9)))
    assert list(other.words[:8]) == [0, 9, 9, 9, 9, 0, 5, 5]


def test_static_arguments_are_left_alone_by_patches() -> None:
    data = Words(4)
    words = program([(multiply_add(), 4, 4, [0, 1, 3], [(0, 0, 0, -1, 0)])])
    before = words[:]
    runner.run(words, array("q", (data.address,)), NOTHING)
    assert words == before


def test_no_units_no_steps() -> None:
    data = Words(4)
    empty = program([(multiply_add(), 0, 10, [data.address, 1, 1], [])])
    assert runner.run(empty, NOTHING, NOTHING) == (0, 1)
    assert runner.run(program([]), NOTHING, NOTHING) == (0, 1)
    assert list(data.words) == [0] * 4


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize(("n_units", "chunk_units"), [(1, 1), (7, 2), (1000, 1), (1000, 999)])
def test_every_unit_once_and_steps_in_order(n_threads: int, n_units: int, chunk_units: int) -> None:
    CONFIG.threads = n_threads
    data = Words(n_units + 1)
    steps: list[Step] = [
        (multiply_add(), n_units, chunk_units, [data.address, 3, number], [])
        for number in range(1, 11)
    ]
    result = runner.run(program(steps), NOTHING, NOTHING)
    value = 0
    for number in range(1, 11):
        value = value * 3 + number
    assert list(data.words) == [value] * n_units + [0]
    assert result.kernels_launched == 10
    assert 1 <= result.threads_used <= n_threads


@pytest.mark.parametrize("n_threads", [*THREADS, 2])
def test_all_threads_take_part(n_threads: int) -> None:
    CONFIG.threads = n_threads
    data = Words(400)
    arguments = array("q", (data.address, cycles(0.0005)))
    used = 0
    for turn in range(1, 20):
        used = max(used, run_single(slow_count(), arguments, 400, 1).threads_used)
        assert list(data.words) == [turn] * 400
        if used == n_threads:
            break
    assert used == n_threads
    assert runner.STATS.threads_used >= n_threads


def test_resizing_leaves_no_thread_behind() -> None:
    data = Words(64)
    arguments = array("q", (data.address, 1, 1))
    counts = (5, 2, 7, 1, 3, 2)
    for n_threads in counts:
        CONFIG.threads = n_threads
        run_single(multiply_add(), arguments, 64, 1)
        if n_threads > 1:
            alive = ctypes.c_int32.from_address(team.ADDRESS[0] + team.text.ALIVE).value
            assert alive == n_threads - 1
    assert list(data.words) == [len(counts)] * 64


@pytest.mark.parametrize("n_threads", THREADS)
def test_each_thread_has_scratch_of_its_own(n_threads: int) -> None:
    CONFIG.threads = n_threads
    for n_words in (1, 100, 50_000):
        n_units = 300 if n_words < 1000 else 40
        data = Words(n_units)
        step: Step = (use_scratch(), n_units, 1, [data.address, n_words], [])
        runner.run(program([step], scratch_bytes=8 * n_words), NOTHING, NOTHING)
        assert list(data.words) == [unit * n_words for unit in range(n_units)]


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("chunk_units", [1, 10_000])
def test_python_handles_signals_during_a_long_run(n_threads: int, chunk_units: int) -> None:
    """A run of about 0.4 s: in one step of many chunks, then in many steps of one chunk."""
    CONFIG.threads = n_threads
    data = Words(400)
    n_steps = 1 if chunk_units == 1 else 20
    n_units = 400 if chunk_units == 1 else 20
    spent = cycles(0.001 * (n_threads if chunk_units == 1 else 1))
    step: Step = (slow_count(), n_units, chunk_units, [data.address, spent], [])
    handled: list[float] = []
    old = signal.signal(signal.SIGALRM, lambda *_: handled.append(time.perf_counter()))
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    try:
        result = runner.run(program([step] * n_steps), NOTHING, NOTHING)
    finally:
        signal.signal(signal.SIGALRM, old)
    end = time.perf_counter()
    assert handled
    assert handled[0] < end - 0.05, (handled[0] - start, end - start)
    assert list(data.words) == [n_steps] * n_units + [0] * (400 - n_units)
    assert result.kernels_launched == n_steps


class Interrupted(Exception):
    pass


@contextmanager
def interrupted(data: Words, action: Callable[..., object]) -> Iterator[None]:
    """The handler `action` is called once, when part of `data` has been written."""

    def strike() -> None:
        while not any(data.words) and not is_over.is_set():
            time.sleep(0.001)
        if not is_over.is_set():
            os.kill(os.getpid(), signal.SIGALRM)

    is_over = threading.Event()
    striker = threading.Thread(target=strike)
    old = signal.signal(signal.SIGALRM, action)
    striker.start()
    try:
        yield
    finally:
        is_over.set()
        striker.join()
        signal.signal(signal.SIGALRM, old)


@pytest.mark.parametrize("chunk_units", [1, 7])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_an_interrupted_run_is_taken_up_where_it_was(n_threads: int, chunk_units: int) -> None:
    CONFIG.threads = n_threads
    data = Words(300)
    step: Step = (slow_count(), 300, chunk_units, [data.address, cycles(0.001 * n_threads)], [])
    words = program([step, step])
    state = runner.RunState()

    def stop(*_: object) -> None:
        raise Interrupted

    with interrupted(data, stop), pytest.raises(Interrupted):
        runner.run(words, NOTHING, NOTHING, state=state)
    assert 0 < sum(data.words) < 600
    other = Words(300)
    run_single(multiply_add(), array("q", (other.address, 1, 1)), 300, 1)
    assert list(other.words) == [1] * 300
    result = runner.run(words, NOTHING, NOTHING, state=state)
    assert list(data.words) == [2] * 300
    assert result.kernels_launched == 2
    assert runner.run(words, NOTHING, NOTHING, state=state) == result
    assert list(data.words) == [2] * 300


def test_a_handler_may_finish_the_run_it_interrupted() -> None:
    CONFIG.threads = 2
    data = Words(300)
    step: Step = (slow_count(), 300, 1, [data.address, cycles(0.002)], [])
    words = program([step], scratch_bytes=64)
    state = runner.RunState()
    inner: list[runner.RunResult] = []

    def finish(*_: object) -> None:
        inner.append(runner.run(words, NOTHING, NOTHING, state=state))

    with interrupted(data, finish):
        runner.run(words, NOTHING, NOTHING, state=state)
    assert len(inner) == 1
    assert list(data.words) == [1] * 300


def test_a_handler_may_run_programs_of_its_own() -> None:
    CONFIG.threads = 3
    data, other = Words(200), Words(50)
    arguments = array("q", (other.address, 1, 1))
    turns: list[int] = []

    def work(*_: object) -> None:
        turns.append(1)
        run_single(multiply_add(), arguments, 50, 1)

    old = signal.signal(signal.SIGALRM, work)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.06)
    try:
        run_single(slow_count(), array("q", (data.address, cycles(0.003))), 200, 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert turns
    assert list(data.words) == [1] * 200
    assert list(other.words) == [len(turns)] * 50


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_python_threads_run_at_the_same_time(n_threads: int) -> None:
    CONFIG.threads = n_threads
    results = [Words(501) for _ in range(6)]
    failures: list[BaseException] = []

    def work(data: Words, factor: int) -> None:
        try:
            step: Step = (multiply_add(), 500, 7, [data.address, factor, 1], [])
            scratch: Step = (use_scratch(), 500, 7, [data.address, 10], [])
            for _ in range(30):
                runner.run(program([step] * 10 + [scratch], 80), NOTHING, NOTHING)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(data, k)) for k, data in enumerate(results, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=50)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures
    for data in results:
        assert list(data.words) == [10 * unit for unit in range(500)] + [0]


def test_the_gil_is_free_during_a_run() -> None:
    CONFIG.threads = 1
    data = Words(1)
    ticks: list[float] = []
    ready = threading.Event()

    def tick() -> None:
        ready.set()
        while len(ticks) < 5:
            time.sleep(0.005)
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    ready.wait()
    run_single(slow_count(), array("q", (data.address, cycles(0.3))), 1, 1)
    end = time.perf_counter()
    thread.join()
    assert ticks[0] < end - 0.05


def test_denormals_are_flushed_only_where_asked_on_every_thread() -> None:
    small = 0x00000100
    one = struct.unpack("<i", struct.pack("<f", 1.0))[0]
    for n_threads in (1, 3):
        CONFIG.threads = n_threads
        data = Words(2000)
        words = program([(denormal(), 2000, 1, [data.address, small, one], [])])
        for flush, expected in ((False, small), (True, 0), (False, small)):
            runner.run(words, NOTHING, NOTHING, flush)
            assert set(data.words) == {expected}
            assert 5e-324 * 1.0 > 0.0  # the caller's own mode is back


def test_the_callers_rounding_mode_neither_matters_nor_changes() -> None:
    library = ctypes.CDLL("libm.so.6")
    data = Words(1)
    third = struct.unpack("<i", struct.pack("<f", 1 / 3))[0]
    tenth = struct.unpack("<i", struct.pack("<f", 0.1))[0]
    arguments = array("q", (data.address, third, tenth))
    run_single(denormal(), arguments, 1, 1)
    nearest = data.words[0]
    assert library.fesetround(0x800) == 0  # upward
    try:
        run_single(denormal(), arguments, 1, 1)
        assert library.fegetround() == 0x800
    finally:
        library.fesetround(0)
    assert data.words[0] == nearest


def test_a_forked_child_starts_a_team_of_its_own() -> None:
    CONFIG.threads = 2
    data = Words(400)
    arguments = array("q", (data.address, cycles(0.0005)))
    run_single(slow_count(), arguments, 400, 1)
    for _ in range(3):
        child = os.fork()
        if not child:
            signal.alarm(30)
            turns = used = 0
            while used < 2 and turns < 20:
                used = max(used, run_single(slow_count(), arguments, 400, 1).threads_used)
                turns += 1
            os._exit(0 if used == 2 and set(data.words) == {1 + turns} else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert run_single(slow_count(), arguments, 400, 1)
    assert set(data.words) == {2}


def test_fork_while_other_threads_run() -> None:
    CONFIG.threads = 2
    stop = threading.Event()
    data = Words(300)

    def work() -> None:
        while not stop.is_set():
            run_single(multiply_add(), array("q", (data.address, 1, 1)), 300, 1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                signal.alarm(30)
                mine = Words(300)
                arguments = array("q", (mine.address, 1, 1))
                for _ in range(50):
                    run_single(multiply_add(), arguments, 300, 1)
                os._exit(0 if set(mine.words) == {50} else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


EXIT = """
import os, threading
from array import array
from tests.devices.cpu import native_support as support
from flambeau.base.config import CONFIG
from flambeau.devices.cpu import runner
CONFIG.threads = 3
data = support.Words(1000)
arguments = array("q", (data.address, 1, 1))
def work():
    while True:
        support.run_single(support.multiply_add(), arguments, 1000, 1)
support.run_single(support.multiply_add(), arguments, 1000, 1)
"""


def test_the_interpreter_ends_with_workers_asleep_spinning_or_working() -> None:
    in_new_process(EXIT)
    in_new_process(EXIT + "import time; time.sleep(0.05)\n")
    in_new_process(EXIT + "threading.Thread(target=work, daemon=True).start()\n")


def test_too_much_scratch_is_an_error_and_the_team_stays_usable() -> None:
    CONFIG.threads = 2
    data = Words(100)
    step: Step = (use_scratch(), 100, 1, [data.address, 4], [])
    with pytest.raises(memory.OutOfMemory):
        runner.run(program([step], scratch_bytes=2**60), NOTHING, NOTHING)
    runner.run(program([step], scratch_bytes=32), NOTHING, NOTHING)
    assert list(data.words) == [4 * unit for unit in range(100)]


def test_more_threads_than_a_team_can_hold() -> None:
    CONFIG.threads = 100_000
    data = Words(300)
    arguments = array("q", (data.address, 1, 1))
    assert run_single(multiply_add(), arguments, 300, 1).threads_used <= 256
    CONFIG.threads = 2
    run_single(multiply_add(), arguments, 300, 1)
    assert list(data.words) == [2] * 300


def test_workers_block_signals() -> None:
    CONFIG.threads = 4
    data = Words(100)
    run_single(multiply_add(), array("q", (data.address, 1, 1)), 100, 1)
    tasks = {int(name) for name in os.listdir("/proc/self/task")}
    python = {thread.native_id for thread in threading.enumerate()}
    blocked = []
    for task in tasks - python:
        # A thread of a larger team of before may be ending just now.
        with (
            suppress(FileNotFoundError, ProcessLookupError),
            open(f"/proc/self/task/{task}/status") as lines,
        ):
            blocked += [int(line.split()[1], 16) for line in lines if line.startswith("SigBlk")]
    interrupt = 1 << signal.SIGINT - 1
    assert sum(bool(mask & interrupt) for mask in blocked) >= 3


def test_a_worker_leaves_the_callers_cpu() -> None:
    """All threads are put on one CPU; the worker goes where it helps."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two CPUs")
    CONFIG.threads = 2
    data = Words(100)
    arguments = array("q", (data.address, cycles(0.0005)))
    run_single(slow_count(), arguments, 100, 1)
    python = {thread.native_id for thread in threading.enumerate()}
    workers = {int(name) for name in os.listdir("/proc/self/task")} - python
    crowded = {min(allowed)}
    try:
        for task in {0, *workers}:
            with suppress(ProcessLookupError):  # of a larger team of before
                os.sched_setaffinity(task, crowded)
        found = set()
        for _ in range(50):
            run_single(slow_count(), arguments, 100, 1)
            for task in workers:
                with suppress(ProcessLookupError):
                    found.add(frozenset(os.sched_getaffinity(task)))
            if allowed - crowded in found:
                break
    finally:
        os.sched_setaffinity(0, allowed)
    assert allowed - crowded in found


def test_the_native_runner_is_found_once() -> None:
    name, text = team.unique_name("runner", runner_text.runner_text)
    assert name in text
    assert function(multiply_add()) is not None
