"""Runs programs: one native call walks the steps, the worker team helps with the large ones.

Keeps     the GIL is released while a program runs; about every 50 ms the call comes back, the
          interpreter handles its signals, and the run goes on where it was; several Python
          threads may run programs at once.
Touches   team, jit, memory (scratch).
Not here  building programs (engine/run.py), native text (runner_text.py, team_text.py)."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features, jit, memory, team
from flambeau.devices.cpu import runner_text as text

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

# States not in use, with their addresses. A run takes one out: a signal handler that runs a
# program in the middle of another gets a state of its own.
_states: list[tuple[Words, int]] = []


@cache
def _native() -> Callable[[int, int, int, int], int]:
    name, source = team.unique_name("runner", text.runner_text)
    address = jit.compile_functions({name: source})[name]
    # CFUNCTYPE, not PYFUNCTYPE: the GIL is released during the call.
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(address)


@cache
def _fresh_state() -> Words:
    state = array("q", bytes(8 * text.STATE_WORDS))
    state[text.SLICE_CYCLES] = int(_SLICE_SECONDS * features.cycles_per_second())
    return state


def run(
    program: Words, addresses: Words, numbers: Words, flush_denormals: bool = False
) -> RunResult:
    """Run a program to its end; its words are described in runner_text.py."""
    try:
        state, state_address = _states.pop()
        state[:] = _fresh_state()
    except IndexError:
        state = _fresh_state()[:]
        state_address = state.buffer_info()[0]
    if flush_denormals:
        state[text.FLUSH_DENORMALS] = 1
    state[text.THREADS_WANTED] = CONFIG.threads or features.usable_cores()
    state[text.TEAM_ADDRESS] = team.address()
    scratch_bytes = program[2]
    if scratch_bytes:
        scratch = memory.allocate(scratch_bytes)  # the caller's; alive until the run is over
        state[text.CALLER_SCRATCH] = scratch.address
        team.ensure_scratch(scratch_bytes)
    native = _native()
    program_address = program.buffer_info()[0]
    addresses_address = addresses.buffer_info()[0]
    numbers_address = numbers.buffer_info()[0]
    # Between two calls the interpreter handles signals; an exception from a handler leaves the
    # program unfinished, and the team idle.
    while status := native(program_address, addresses_address, numbers_address, state_address):
        if status == text.NEEDS_TEAM:
            state[text.TEAM_ADDRESS] = team.ensure(state[text.THREADS_WANTED])
    result = RunResult(state[text.KERNELS_LAUNCHED], state[text.THREADS_USED])
    _states.append((state, state_address))
    STATS.runs += 1
    STATS.kernels_launched += result.kernels_launched
    STATS.threads_used = max(STATS.threads_used, result.threads_used)
    return result


def run_single(kernel: int, arguments: Words, n_units: int, chunk_units: int) -> RunResult:
    """Run one kernel over `n_units`, without scratch memory."""
    n_arguments = len(arguments)
    program = array("q", (1, n_arguments, 0, 0, kernel, n_units, chunk_units, n_arguments, 0, 0))
    program.extend(arguments)
    return run(program, _NOTHING, _NOTHING)


_NOTHING: Final = array("q", (0,))
