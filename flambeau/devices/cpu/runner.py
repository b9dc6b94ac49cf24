"""Runs programs: one native call walks the steps, the worker team helps with the large ones.

Keeps     the GIL is released while a program runs; about every 50 ms the call comes back, the
          interpreter handles its signals, and the run goes on where it was; several Python
          threads may run programs at once.
Touches   team, jit, memory (scratch).
Not here  building programs (engine/run.py), native text (runner_text.py, team_text.py)."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features, jit, memory, team
from flambeau.devices.cpu.runner_text import (
    KERNELS_LAUNCHED,
    NEEDS_TEAM,
    PROGRAM,
    SLICE_CYCLES,
    STATE_WORDS,
    TEAM_ADDRESS,
    THREADS_USED,
    runner_text,
)

if TYPE_CHECKING:
    Words = array[int]

_SLICE_SECONDS: Final = 0.05


class RunResult(NamedTuple):
    """What a run did."""

    kernels_launched: int
    threads_used: int


class Statistics:
    """What all runs of this process did."""

    __slots__ = ("kernels_launched", "runs", "threads_used")

    def __init__(self) -> None:
        self.runs = 0
        self.kernels_launched = 0
        self.threads_used = 0  # most threads that took part in one run


STATS: Final = Statistics()

# States not in use: words and the pointer to them. A run takes one out: a signal handler that
# runs a program in the middle of another gets a state of its own.
_states: list[tuple[Words, ctypes.c_void_p]] = []
_FIRST_INPUT: Final = 8 * PROGRAM
_fill: Final = struct.Struct("=7q").pack_into  # PROGRAM .. FLUSH_DENORMALS
_new_result: Final = tuple.__new__  # a third of the time of RunResult's own constructor


@cache
def _native() -> Callable[[ctypes.c_void_p], int]:
    name, source = team.unique_name("runner", runner_text)
    address = jit.compile_functions({name: source})[name]
    # CFUNCTYPE, not PYFUNCTYPE: the GIL is released during the call. One pointer, made once:
    # converting four integers would take longer than everything else here.
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)


def _new_state() -> Words:
    state = array("q", bytes(8 * STATE_WORDS))
    state[SLICE_CYCLES] = int(_SLICE_SECONDS * features.cycles_per_second())
    return state


def run(
    program: Words, addresses: Words, numbers: Words, flush_denormals: bool = False
) -> RunResult:
    """Run a program to its end; its words are described in runner_text.py."""
    try:
        state, pointer = _states.pop()
    except IndexError:
        state = _new_state()
        pointer = ctypes.c_void_p(state.buffer_info()[0])
    scratch_bytes = program[2]
    scratch_address = 0
    if scratch_bytes:
        scratch = memory.allocate(scratch_bytes)  # the caller's; alive until the run is over
        scratch_address = scratch.address
        team.ensure_scratch(scratch_bytes)
    n_threads = CONFIG.threads or features.usable_cores()
    _fill(
        state, _FIRST_INPUT, program.buffer_info()[0], addresses.buffer_info()[0],
        numbers.buffer_info()[0], team.address, n_threads, scratch_address, flush_denormals,
    )  # fmt: skip
    native = _native()
    # Between two calls the interpreter handles signals; an exception from a handler leaves the
    # program unfinished, and the team idle.
    while status := native(pointer):
        if status == NEEDS_TEAM:
            state[TEAM_ADDRESS] = team.ensure(n_threads)
    launched = state[KERNELS_LAUNCHED]
    used = state[THREADS_USED]
    _states.append((state, pointer))
    statistics = STATS
    statistics.runs += 1
    statistics.kernels_launched += launched
    if used > statistics.threads_used:
        statistics.threads_used = used
    return _new_result(RunResult, (launched, used))


def run_single(kernel: int, arguments: Words, n_units: int, chunk_units: int) -> RunResult:
    """Run one kernel over `n_units`, without scratch memory."""
    n_arguments = len(arguments)
    program = array("q", (1, n_arguments, 0, 0, kernel, n_units, chunk_units, n_arguments, 0, 0))
    program.extend(arguments)
    return run(program, _NOTHING, _NOTHING)


_NOTHING: Final = array("q", (0,))
