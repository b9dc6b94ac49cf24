"""Runs programs: one native call walks the steps, the worker team helps with the large ones.

Keeps     the GIL is released while a program runs; about every 50 ms the call comes back, the
          interpreter handles its signals, and the run goes on where it was; several Python
          threads may run programs at once.
Touches   team, jit, memory (scratch).
Not here  building programs (engine/run.py), native text (text.py, chunks_text.py, team/text.py)."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flambeau.base.counters import Counter, Counters
from flambeau.devices.cpu import features, jit, memory, team
from flambeau.devices.cpu.runner.text import runner_text
from flambeau.devices.cpu.runner.words import (
    CALLER_SCRATCH,
    FINISHED,
    KERNELS_LAUNCHED,
    NEEDS_TEAM,
    PROGRAM,
    SLICE_CYCLES,
    STATE_WORDS,
    TEAM_ADDRESS,
    THREADS_USED,
)
from flambeau.devices.cpu.team.text import MAXIMUM_THREADS

if TYPE_CHECKING:
    Words = array[int]

_SLICE_SECONDS: Final = 0.05


class RunResult(NamedTuple):
    """What a run did."""

    kernels_launched: int
    threads_used: int


class Statistics(Counters):
    """What all runs of this process did.

    threads_used   most threads that took part in one run
    """

    __slots__ = ()

    runs = Counter()
    kernels_launched = Counter()
    threads_used = Counter()


STATS: Final = Statistics()


class RunState:
    """How far a run has come. A caller that keeps one can go on after an exception from a signal
    handler, or learn that the run was already over."""

    __slots__ = ("pointer", "words")

    def __init__(self) -> None:
        self.words: Words = array("q", bytes(8 * STATE_WORDS))
        self.words[SLICE_CYCLES] = slice_cycles()
        self.pointer = ctypes.c_void_p(self.words.buffer_info()[0])


def slice_cycles() -> int:
    """After how many cycles a run comes back for the interpreter to handle its signals."""
    return int(_SLICE_SECONDS * features.cycles_per_second())


def shared_state(words: bytearray) -> RunState:
    """The state whose words these are: all made of the same ones are one state."""
    made = RunState()
    shared: Any = (ctypes.c_int64 * STATE_WORDS).from_buffer(words)
    made.words, made.pointer = shared, ctypes.c_void_p(ctypes.addressof(shared))
    return made


# States not in use. A run takes one out: a signal handler that runs a program in the middle of
# another gets a state of its own.
_states: list[RunState] = []


def take_state() -> RunState:
    """A fresh state, reused where one is idle; give it back with `give_state` after the run."""
    try:
        state = _states.pop()
    except IndexError:
        return RunState()
    state.words[FINISHED] = 0
    return state


def give_state(state: RunState) -> None:
    """Let a finished run's state be reused."""
    _states.append(state)


def threads_wanted() -> int:
    """How many threads runs use, the caller included."""
    return min(features.n_threads(), MAXIMUM_THREADS)


_FIRST_INPUT: Final = 8 * PROGRAM
_fill: Final = struct.Struct("=7q").pack_into  # PROGRAM .. FLUSH_DENORMALS
_new_result: Final = tuple.__new__  # a third of the time of RunResult's own constructor


@cache
def native_address() -> int:
    """Where the native function lies: i64 run(state), as text.py says."""
    name, source = team.unique_name("runner", runner_text)
    return jit.compile_functions({name: source})[name]


@cache
def _native() -> Callable[[ctypes.c_void_p], int]:
    # CFUNCTYPE, not PYFUNCTYPE: the GIL is released during the call. One pointer, made once:
    # converting four integers would take longer than everything else here.
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(native_address())


def run(
    program: Words,
    addresses: Words,
    numbers: Words,
    flush_denormals: bool = False,
    state: RunState | None = None,
) -> RunResult:
    """Run a program to its end; its words are described in words.py.

    With a `state`, the run goes on where the state says: at the start if it is new, nowhere if
    it is finished. It may be interrupted between slices by an exception from a signal handler,
    and called again with the same arguments, or be finished by the handler itself."""
    kept = state is not None
    if state is None:
        state = take_state()
    words = state.words
    n_threads = threads_wanted()
    scratch_bytes = program[2]
    scratch_address = 0
    if scratch_bytes:
        scratch = memory.allocate(scratch_bytes)  # the caller's; alive until the run is over
        scratch_address = scratch.address
        team.ensure_scratch(scratch_bytes, n_threads)
    _fill(
        words, _FIRST_INPUT, program.buffer_info()[0], addresses.buffer_info()[0],
        numbers.buffer_info()[0], team.ADDRESS[0], n_threads, scratch_address, flush_denormals,
    )  # fmt: skip
    native = _native()
    while status := native(state.pointer):
        if status == NEEDS_TEAM:
            words[TEAM_ADDRESS] = team.ensure(n_threads)
        # Here the interpreter handles signals. A handler may have gone on with this very run,
        # with scratch memory of its own.
        words[CALLER_SCRATCH] = scratch_address
    launched = words[KERNELS_LAUNCHED]
    used = words[THREADS_USED]
    if not kept:
        _states.append(state)
    statistics = STATS
    statistics.runs += 1
    statistics.kernels_launched += launched
    if used > statistics.threads_used:
        statistics.threads_used = used
    return _new_result(RunResult, (launched, used))
