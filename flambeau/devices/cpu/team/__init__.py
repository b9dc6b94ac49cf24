"""The worker team: its memory, its size, its threads' scratch, its fate in a forked child.

Keeps     one team a process; its memory and the scratch ever given to it stay mapped, because
          native threads may look at them at any moment, interpreter exit included; a forked
          child forgets its parent's team and starts its own at the first large step.
Touches   memory, jit, features.
Not here  what workers do (text.py), how work is handed out (runner/chunks_text.py)."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from array import array
from collections.abc import Callable
from functools import cache
from typing import Final

from flambeau.base.errors import present
from flambeau.devices.cpu import features, jit, memory
from flambeau.devices.cpu.team import text
from flambeau.devices.forks import at_fork

_SPIN_SECONDS: Final = 30e-6

_lock = threading.RLock()
_team: memory.Block | None = None
# Of the team's memory; 0 while there is no team. Native code looks, too.
ADDRESS: Final = array("q", [0])
# Scratch of each worker by its number, and what was replaced by more. The latter is never freed:
# a worker may be using it in another thread's run. Sizes double at least, so its sum is bounded.
_scratch: dict[int, memory.Block] = {}
_replaced: list[memory.Block] = []
_scratch_bytes = 0
_scratch_threads = 1


def unique_name(family: str, module_text: Callable[[str], str]) -> tuple[str, str]:
    """Name made from the content, and the text under that name."""
    digest = hashlib.sha256(module_text(family).encode()).hexdigest()[:16]
    name = f"{family}_{digest}"
    return name, module_text(name)


@cache
def _resize() -> tuple[Callable[[int, int, int], int], int]:
    worker, worker_source = unique_name("team_worker", text.worker_text)
    resize, resize_source = unique_name("team_resize", text.resize_text)
    addresses = jit.compile_functions({worker: worker_source, resize: resize_source})
    signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
    return signature(addresses[resize]), addresses[worker]


def ensure(n_threads: int) -> int:
    """Bring the team to `n_threads`, the caller included; returns its address."""
    global _team
    with _lock:
        if _team is None:
            team = memory.allocate(text.TEAM_BYTES)
            ctypes.memset(team.address, 0, text.TEAM_BYTES)
            _team = team
            for number, block in _scratch.items():
                _write_scratch(number, block)
        # More threads than cores: one that spins keeps another from its work.
        spins = n_threads <= features.usable_cores()
        cycles = int(_SPIN_SECONDS * features.cycles_per_second()) if spins else 0
        _write(text.SPIN_CYCLES, cycles)
        allowed = sum(1 << cpu for cpu in os.sched_getaffinity(0) if cpu < 8 * text.ALLOWED_BYTES)
        mask = allowed.to_bytes(text.ALLOWED_BYTES, "little")
        ctypes.memmove(_team.address + text.ALLOWED, mask, text.ALLOWED_BYTES)
        resize, worker = _resize()
        resize(_team.address, n_threads, worker)
        ADDRESS[0] = _team.address
        return ADDRESS[0]


def ensure_scratch(n_bytes: int, n_threads: int) -> None:
    """Let every worker of a team of `n_threads` have at least `n_bytes` of scratch memory.

    Before a run begins, because in the middle of one is too late to find that there is none."""
    global _scratch_bytes, _scratch_threads
    if n_bytes <= _scratch_bytes and n_threads <= _scratch_threads:
        return
    with _lock:
        n_bytes = max(n_bytes, _scratch_bytes)
        n_threads = max(n_threads, _scratch_threads)
        for number in range(1, n_threads):
            old = _scratch.get(number)
            if old is not None:
                if old.n_bytes >= n_bytes:
                    continue
                _replaced.append(old)
            block = memory.allocate(n_bytes if old is None else max(n_bytes, 2 * old.n_bytes))
            _scratch[number] = block
            if _team is not None:
                _write_scratch(number, block)
        _scratch_bytes = n_bytes
        _scratch_threads = n_threads


def _write_scratch(number: int, block: memory.Block) -> None:
    _write(text.WORKERS + number * text.WORKER_BYTES + text.SCRATCH, block.address)


def _write(offset: int, value: int) -> None:
    ctypes.c_int64.from_address(present(_team, "the team").address + offset).value = value


def _forget() -> None:
    """In a forked child: the parent's workers are not here, so nothing looks at their memory."""
    global _team, _scratch_bytes, _scratch_threads
    _team = None
    ADDRESS[0] = 0
    _scratch.clear()
    _replaced.clear()
    _scratch_bytes = 0
    _scratch_threads = 1
    _lock.release()


at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget)
