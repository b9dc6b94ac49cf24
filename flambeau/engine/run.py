"""Flushing: find or make the plan of a segment, give it memory, run it, hand out the results.

Keeps     nothing is lost: until the program has started, a failure leaves the segment as it was;
          after an interrupt the next touch goes on where it stopped. One lock for all flushes.
Touches   plan, segment, devices.cpu (memory, runner).
Not here  planning (plan.py), when to flush (stream.py)."""

from __future__ import annotations

import sys
import threading
import time
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.errors import OutOfMemoryError
from flambeau.devices.cpu import memory, runner
from flambeau.engine.segment import Record, Segment
from flambeau.engine.storage import Storage

if TYPE_CHECKING:
    from flambeau.engine.plan import Plan
    from flambeau.engine.stream import Stream

LOCK: Final = threading.RLock()
MAX_PLANS: Final = 4096
# Variants of one segment by liveness, after which their union is planned.
MAX_VARIANTS: Final = 3


class Statistics:
    """What all flushes of this process did."""

    __slots__ = ("records", "segments_flushed", "segments_planned")

    def __init__(self) -> None:
        self.records = 0
        self.segments_flushed = 0
        self.segments_planned = 0


STATS: Final = Statistics()
# Whether results too small for normal numbers become zero (set_flush_denormal), one for all.
FLUSH_DENORMALS: Final = [False]
_PLANS: Final[dict[Any, list[Plan]]] = {}
# Whether kernels are run one by one and timed; debug.explain sets it.
TIMED: Final = [False]
# Called with (reason, plan, records, seconds of each kernel) after each run.
OBSERVERS: Final[list[Callable[..., None]]] = []
_new_segment: Callable[[Any], Segment]


def install(new_segment: Callable[[Any], Segment]) -> None:
    """Tell how a stream gets its next segment."""
    global _new_segment
    _new_segment = new_segment


_references: Final = sys.getrefcount


def _calibrate() -> int:
    """References to a storage that only a segment's list holds, as getrefcount counts them."""
    storages: list[Storage] = [object.__new__(Storage)]
    return [_references(storage) for storage in storages][0]


UNHELD_REFERENCES: Final = _calibrate()


def forget_plans() -> None:
    """Drop every plan; after a switch that plans depend on changed."""
    with LOCK:
        _PLANS.clear()


def flush(segment: Segment, reason: str) -> None:
    """Run all records of a segment and hand its results to their storages."""
    with LOCK:
        segment.closed = True
        stream: Stream = segment.stream
        if stream.segment is segment:
            stream.segment = _new_segment(stream)
        while segment.run is not None or segment.flushed < len(segment.records):
            if segment.run is None:
                segment.run = _Run(segment, reason)
            segment.run.finish()
            segment.run = None
        _let_go(segment)


def _let_go(segment: Segment) -> None:
    """Nobody points at a segment that has run."""
    for storages in (segment.inputs, segment.fresh):
        for storage in storages:
            if storage.segment is segment:
                storage.segment = None
    for place in segment.places:
        place.segment = None


class _Run:
    """One run of a plan over a segment's records, resumable."""

    def __init__(self, segment: Segment, reason: str) -> None:
        self.segment = segment
        self.reason = reason
        first, count = segment.flushed, len(segment.records)
        self.records: list[Record] = segment.records[first:count]
        self.count = count
        fresh = segment.fresh
        # Read in one sweep: reference counts move while Python runs.
        alive = bytes([_references(storage) > UNHELD_REFERENCES for storage in fresh])
        keys = tuple([record[0] for record in self.records])
        self.plan = plan = _plan_for(segment, keys, alive)
        try:
            self.blocks = [
                (storage, memory.allocate(storage.layout.span_bytes))
                for storage in [fresh[number] for number in plan.stored_numbers]
                if storage.block is None
            ]
            self.arena = memory.allocate(plan.arena_bytes) if plan.arena_bytes else None
        except memory.OutOfMemory as error:
            raise out_of_memory(error.n_bytes) from None
        self._bind()
        self.state = runner.take_state()
        self.is_committed = False
        self.seconds: list[float] = []  # of each kernel, where they are timed

    def _bind(self) -> None:
        segment, plan = self.segment, self.plan
        addresses = [_ERROR_WORD_ADDRESS, self.arena.address if self.arena is not None else 0]
        addresses += [storage.block.address for storage in segment.inputs]
        placed = dict(self.blocks)
        for number in plan.stored_numbers:
            storage = segment.fresh[number]
            block = placed.get(storage)
            addresses.append(storage.block.address if block is None else block.address)
        self.addresses = array("q", addresses)
        values: list[Any] = segment.offsets[: plan.n_touched]
        for record in self.records:
            if record[1]:
                values += record[1]
        self.numbers = array("q", plan.pack_numbers(*values))

    def finish(self) -> None:
        """Run to the end and commit. After an exception from a signal handler, call it again; the
        handler itself may have finished the run by touching one of its tensors."""
        plan = self.plan
        if plan.n_kernels:
            if TIMED[0]:
                self.seconds = _run_timed(plan.program, self.addresses, self.numbers)
            else:
                runner.run(
                    plan.program, self.addresses, self.numbers, FLUSH_DENORMALS[0], self.state
                )
        if self.is_committed:
            return
        self.is_committed = True
        for storage, block in self.blocks:
            storage.block = block
            storage.external = None
        self.segment.flushed = self.count
        runner.give_state(self.state)
        plan.runs += 1
        STATS.segments_flushed += 1
        STATS.records += len(self.records)
        for observer in OBSERVERS:
            observer(self.reason, plan, self.records, self.seconds)
        if _ERROR_WORD[0]:
            _ERROR_WORD[0] = 0
            raise IndexError("index out of range in self")


def _plan_for(segment: Segment, keys: tuple[Any, ...], alive: bytes) -> Plan:
    """A plan that leaves at least what is alive in memory."""
    lookup = (keys, tuple(segment.touched))
    variants = _PLANS.get(lookup)
    if variants is None:
        if len(_PLANS) >= MAX_PLANS:
            for old in list(_PLANS)[: MAX_PLANS // 4]:
                del _PLANS[old]
        variants = _PLANS[lookup] = []
    wanted = int.from_bytes(alive, "little")
    for plan in variants:
        if plan.stored & wanted == wanted:
            return plan
    if len(variants) >= MAX_VARIANTS:
        for plan in variants:
            wanted |= plan.stored
    # Planning brings the whole code generator: a process whose plans exist never needs it.
    from flambeau.engine.plan import SegmentFacts, plan_segment

    facts = SegmentFacts(
        keys,
        lookup[1],
        [storage.layout.span_bytes for storage in segment.inputs],
        [storage.layout.span_bytes for storage in segment.fresh],
        # What an earlier part of the segment has put in memory stays there.
        {n for n, storage in enumerate(segment.fresh) if wanted >> 8 * n & 1}
        | ({n for n, s in enumerate(segment.fresh) if s.block is not None} if segment.flushed else set()),
    )
    plan = plan_segment(facts)
    STATS.segments_planned += 1
    variants.insert(0, plan)
    del variants[MAX_VARIANTS + 1 :]
    return plan


def _run_timed(program: Any, addresses: Any, numbers: Any) -> list[float]:
    """Run a program's steps one at a time; seconds of each."""
    n_steps, max_arguments, scratch_bytes, _ = program[:4]
    seconds = []
    start = 4
    for _ in range(n_steps):
        n_arguments, n_patches = program[start + 3], program[start + 4]
        end = start + 6 + n_arguments + 5 * n_patches
        alone = array("q", [1, max_arguments, scratch_bytes, 0]) + program[start:end]
        before = time.perf_counter()
        runner.run(alone, addresses, numbers, FLUSH_DENORMALS[0])
        seconds.append(time.perf_counter() - before)
        start = end
    return seconds


_ERROR_WORD: Final = array("q", [0])
_ERROR_WORD_ADDRESS: Final = _ERROR_WORD.buffer_info()[0]


def out_of_memory(n_bytes: int) -> OutOfMemoryError:
    """torch's error for memory that cannot be had."""
    return OutOfMemoryError(
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
        f"you tried to allocate {n_bytes} bytes. Error code 12 (Cannot allocate memory)"
    )
