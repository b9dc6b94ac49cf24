"""What native flushes know: plans of segments that Python ran before.

Keeps     what native code points at is held by an object that it holds, too, while it looks.
Touches   engine.run, devices.cpu, library.
Not here  the text (text.py), planning (engine/planning)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import memory
from flambeau.engine import external, run
from flambeau.engine.segment import FIRST_LOOK, Segment
from flambeau.tensor.native import types
from flambeau.tensor.native.flush.words import (
    BLOCK,
    BLOCK_BYTES,
    PLACE_BYTES,
    PLAN,
    PLAN_BITS,
    PLAN_PROBES,
    mixed,
    place_of,
)
from flambeau.tensor.native.tables import TABLE

if TYPE_CHECKING:
    from flambeau.tensor.native.library import Library

# Runs in Python after which a plan is told to native code: most plans of a program that does not
# repeat itself run once.
LEARN_AFTER: Final = 2
# Words of all known plans together; past them all are forgotten.
MAX_WORDS: Final = 2 << 20
_PLACES: Final = (1 << PLAN_BITS) + PLAN_PROBES - 1


class KnownPlans:
    """The table of known plans and what fills it."""

    def __init__(self, library: Library) -> None:
        self._words = library._words(_PLACES * PLACE_BYTES // 8)
        self._held: list[Any] = [None] * _PLACES
        self._places: dict[tuple[int, int], int] = {}
        self._n_words = 0
        self._turn = 0
        self._library = library

    @property
    def address(self) -> int:
        """Where the table lies."""
        return ctypes.addressof(self._words)

    def forget(self) -> None:
        """Know no plan any more."""
        for place, held in enumerate(self._held):
            if held is not None:
                self._words[2 * place : 2 * place + 2] = [0, 0]
                self._held[place] = None
        self._places.clear()
        self._n_words = 0

    def learn(self, segment: Segment, running: Any) -> None:
        """Remember the plan of a segment that Python ran whole, if it runs often."""
        plan = running.plan
        if plan.is_apart:  # it will be planned anew when it comes back
            return
        if plan.runs < LEARN_AFTER or not plan.n_kernels or segment.last_uses is not None:
            return
        from flambeau.devices.cpu import runner, team

        threads = runner.threads_wanted()
        known = id(plan), threads
        if known in self._places or running.first or running.count != len(segment.records):
            return
        self._start(runner, team)
        # The run may have been one of fewer threads: native code asks for no worker's scratch.
        team.ensure_scratch(plan.program[2], threads)
        made = _Words(running, segment, threads)
        if self._n_words + made.n_words > MAX_WORDS:
            self.forget()
        first = place_of(made.mix)
        places = range(first, first + PLAN_PROBES)
        place = next((p for p in places if self._held[p] is None), None)
        if place is None:
            place = first + self._turn % PLAN_PROBES
            self._turn += 1
            before = self._held[place]
            self._places.pop(before.known, None)
            self._n_words -= before.n_words
        made.known = known
        # No call, so no signal handler and no thread, comes between these lines.
        words, held, start, end = self._words, self._held, 2 * place, 2 * place + 2
        filled = [made.mix, made.address]
        words[start] = 0
        held[place] = made
        words[start:end] = filled
        self._places[known] = place
        self._n_words += made.n_words

    def _start(self, runner: Any, team: Any) -> None:
        """Tell native code of the runner, which comes with the first plan."""
        table = self._library.table
        if not table[TABLE["runner"] // 8]:
            from flambeau.devices.cpu import features

            table[TABLE["team"] // 8] = team.ADDRESS.buffer_info()[0]
            table[TABLE["cores"] // 8] = features.usable_cores()
            table[TABLE["slice"] // 8] = runner.slice_cycles()
            table[TABLE["runner_counts"] // 8] = runner.STATS.address
            table[TABLE["runner"] // 8] = runner.native_address()


class _Words:
    """Words of one known plan and what they point at."""

    def __init__(self, running: Any, segment: Segment, threads: int) -> None:
        plan = running.plan
        self.known: Any = None
        self._kept: list[Any] = [plan]
        self.n_words = 0
        keys = [record[0] for record in running.records]
        touched = segment.touched[: plan.n_touched]
        n_inputs, n_fresh = running.n_inputs, running.n_fresh
        self.mix = mixed(
            first=id(keys[0][0]), last=id(keys[-1][0]), count=len(keys), inputs=n_inputs,
            fresh=n_fresh, n_touched=len(touched), threads=threads,
        )  # fmt: skip
        self._kept.append(keys)
        stored = [int(plan.stored >> 8 * number & 1) for number in range(n_fresh)]
        rows = [self._row(segment.fresh[n].layout.span_bytes, n) for n in plan.stored_numbers]
        extra = {"arena": plan.arena_bytes, "scratch": plan.program[2]}
        places = {}
        for name, n_bytes in extra.items():
            places[name] = len(rows) if n_bytes else -1
            if n_bytes:
                rows.append(self._row(n_bytes, 0))
        numbers = [
            [record, place, letter == "d"]
            for record, key in enumerate(keys)
            for place, letter in enumerate(key[0].number_format)
        ]
        values = {
            "count": len(keys), "inputs": n_inputs, "fresh": n_fresh, "n_touched": len(touched),
            "threads": threads, "n_stored": len(plan.stored_numbers), "n_rows": len(rows),
            "n_numbers": len(numbers), "program": plan.program.buffer_info()[0], "plan": id(plan),
            "held": id(self), **places,
            "keys": self._made([w for key in keys for w in (len(key), id(key[0]), *key[1:])]),
            "touched": self._made(touched), "stored": self._made(stored),
            "rows": self._made([word for row in rows for word in row]),
            "numbers": self._made([word for each in numbers for word in each]),
        }  # fmt: skip
        self.address = self._made([values[name] for name in PLAN])

    def _row(self, n_bytes: int, fresh: int) -> list[int]:
        free = memory.free_blocks(n_bytes)
        if free is None:
            return [n_bytes, 0, fresh]
        if id(free) not in _FOR_GOOD:
            keep_for_good(free)
        return [n_bytes, id(free), fresh]

    def _made(self, words: list[int]) -> int:
        made = (ctypes.c_int64 * max(1, len(words)))(*words)
        self._kept.append(made)
        self.n_words += len(words)
        return ctypes.addressof(made)


def install(library: Library, addresses: dict[str, int]) -> None:
    """Let native code run segments of known plans."""
    known = KnownPlans(library)
    lock: Any = run.LOCK
    block = types.new_type(
        b"flambeau.Block", BLOCK_BYTES, types.MADE_NATIVELY,
        {types.FREE: addresses["free_block"]},
        {b"address": BLOCK["address"], b"n_bytes": BLOCK["n_bytes"]},
    )  # fmt: skip
    values: dict[str, Any] = {
        "segment": Segment, "observers": run.OBSERVERS, "timed": run.TIMED,
        "denormals": run.FLUSH_DENORMALS, "config": CONFIG, "acquire": lock.acquire,
        "release": lock.release, "block": block,
        "own_block": memory.Block, "large_block": memory.LargeBlock,
        "outside_block": external.OutsideBlock, "allocate": _allocate, "limit": FIRST_LOOK,
        "raise_index": run.raise_index, "weighed": (0, 0, 0),
    }  # fmt: skip
    for name, value in values.items():
        library.table[TABLE[name] // 8] = library.keep(value)
    words = {
        "flush": addresses["flush"], "plans": known.address, "run_counts": run.STATS.address,
        "memory_counts": memory.STATS.address, "error": run.ERROR_WORD.buffer_info()[0],
    }  # fmt: skip
    for name, word in words.items():
        library.table[TABLE[name] // 8] = word
    keep_for_good(memory.STATS.words)
    run.QUICK.learn = known.learn
    run.QUICK.forget = known.forget
    run.QUICK.flush = library.plain_callable(addresses["quick"])


_FOR_GOOD: Final[set[int]] = set()


def keep_for_good(value: Any) -> None:
    """Let an object outlive modules: blocks are let go of after them, at interpreter exit."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    _FOR_GOOD.add(id(value))


def _allocate(n_bytes: int) -> Any:
    return memory.allocate(n_bytes)
