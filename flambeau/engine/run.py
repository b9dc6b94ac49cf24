"""Flushing: find or make the plan of a segment, give it memory, run it, hand out the results.

Keeps     nothing is lost: until the program has started, a failure leaves the segment as it was;
          after an interrupt the next touch goes on where it stopped. One lock for all flushes.
Touches   segment, plan_cache, devices.cpu (memory, runner).
Not here  which plan (plan_cache.py), when to flush (stream.py)."""

from __future__ import annotations

import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.counters import Counter, Counters
from flambeau.base.errors import OutOfMemoryError
from flambeau.devices.cpu import memory
from flambeau.devices.forks import at_fork
from flambeau.engine.segment import Record, Segment
from flambeau.engine.storage import Storage

if TYPE_CHECKING:
    from flambeau.engine.stream import Stream
    from flambeau.engine.view import View

LOCK: Final = threading.RLock()


class Statistics(Counters):
    """What all flushes of this process did."""

    __slots__ = ()

    segments_flushed = Counter()
    records = Counter()
    segments_planned = Counter()


STATS: Final = Statistics()
# Whether results too small for normal numbers become zero (set_flush_denormal), one for all.
FLUSH_DENORMALS: Final = [False]
# Whether kernels are run one by one and timed; debug.explain sets it.
TIMED: Final = [False]
# Called with (reason, plan, records, seconds of each kernel) after each run.
OBSERVERS: Final[list[Callable[..., None]]] = []
_new_segment: Callable[[Any], Segment]
# devices.cpu.runner and plan_cache, imported with the first plan.
runner: Any = None
plans: Any = None


def install(new_segment: Callable[[Any], Segment]) -> None:
    """Tell how a stream gets its next segment."""
    global _new_segment
    _new_segment = new_segment


def _slots(segment: Segment, views: Sequence[View]) -> list[int]:
    found = []
    for view in views:
        place = view._place
        found.append(place.slot if place.segment is segment else segment.touch(view))
    return found


class Quick:
    """Who does what this room does more quickly; nobody at first.

    flush    runs a segment, says whether it has; else it left it as it was, or its run in `run`
    learn    is told of a segment that Python ran whole
    forget   when plans are no longer what they were
    slots    the slots of views in a segment
    """

    __slots__ = ("flush", "forget", "learn", "slots")

    def __init__(self) -> None:
        self.flush: Callable[[Segment], bool] = lambda segment: False
        self.learn: Callable[[Segment, Run], None] = lambda segment, run: None
        self.forget: Callable[[], None] = lambda: None
        self.slots: Callable[[Segment, Sequence[View]], list[int]] = _slots


QUICK: Final = Quick()

_references: Final = sys.getrefcount


def _calibrate() -> int:
    """References to a storage that only a segment's list holds, as getrefcount counts them."""
    storages: list[Storage] = [object.__new__(Storage)]
    return [_references(storage) for storage in storages][0]  # noqa: RUF015 - counted as used


UNHELD_REFERENCES: Final = _calibrate()


def forget_plans() -> None:
    """Drop every plan; after a switch that plans depend on changed."""
    with LOCK:
        if plans is not None:
            plans.forget()
        QUICK.forget()
        template = sys.modules.get("flambeau.engine.planning.template")
        if template is not None:
            template.forget()


def flush(segment: Segment, reason: str) -> None:
    """Run all records of a segment and hand its results to their storages."""
    if QUICK.flush(segment):
        return
    if sys.is_finalizing():
        _check_lock()
    with LOCK:
        segment.closed = True
        stream: Stream = segment.stream
        if stream.segment is segment:
            stream.segment = _new_segment(stream)
        while segment.run is not None or segment.flushed < len(segment.records):
            running = segment.run
            if running is None:
                try:
                    made = _planned(segment, reason)
                except OutOfMemoryError:
                    _let_go_of_done(segment)
                    raise
                # A signal handler may have run the segment while it was planned.
                if segment.run is None and segment.flushed == made.first:
                    segment.run = made
                continue
            if isinstance(running, tuple):
                resumed = Run.resumed(segment, reason, running)
                if segment.run is running:
                    segment.run = resumed
                continue
            running.finish()
            if segment.run is running:
                segment.run = None
                if not running.is_resumed:
                    QUICK.learn(segment, running)
        _let_go(segment)


def _check_lock() -> None:
    """At interpreter exit a daemon thread may hold the lock, stopped by Python for good."""
    if not LOCK.acquire(timeout=1):
        raise RuntimeError("a tensor was used at interpreter exit while a daemon thread ran others")
    LOCK.release()


def _planned(segment: Segment, reason: str) -> Run:
    """A run of all records; of the first where memory for all at once cannot be had."""
    first, count = segment.flushed, len(segment.records)
    if first:
        _settle_others(segment)
    if segment.last_uses is None:
        try:
            return Run(segment, reason, first, count)
        except OutOfMemoryError:
            if count - first < 2:
                raise
        segment.last_uses = _last_uses(segment)
    return Run(segment, reason, first, first + 1)


def _settle_others(segment: Segment) -> None:
    """A record came after its segment had been run: what was recorded elsewhere meanwhile, by a
    signal handler or another thread, comes first."""
    for storages in (segment.inputs, segment.fresh):
        for storage in list(storages):
            other = storage.segment
            if other is not None and other is not segment and not other.flushed:
                flush(other, "recorded before a record that came late")


def _last_uses(segment: Segment) -> dict[int, int]:
    """Number of a storage, as in `touched` -> the last record that touches it."""
    found: dict[int, int] = {}
    touched = segment.touched
    for number, record in enumerate(segment.records):
        for slot in record[0][1:]:
            found[slot if slot >= 0 else touched[-1 - slot] >> 1] = number
    return found


def _let_go(segment: Segment) -> None:
    """Nobody points at a segment that has run."""
    for storages in (segment.inputs, segment.fresh):
        for storage in storages:
            if storage.segment is segment:
                storage.segment = None
    for place in segment.places:
        place.segment = None


class Run:
    """One run of a plan over a segment's records [first, count), resumable."""

    def __init__(self, segment: Segment, reason: str, first: int, count: int) -> None:
        self._begin(segment, reason, first, count)
        if runner is None:
            _bring_runner()
        # Records first: what a thread adds meanwhile is more than they need, never less.
        touched = tuple(segment.touched)
        self.n_inputs = len(segment.inputs)
        self.n_fresh = len(segment.fresh)
        self.plan = plan = plans.plan_for(self, touched)
        fresh = segment.fresh
        try:
            self.blocks = [
                (storage, memory.allocate(storage.layout.span_bytes))
                for storage in [fresh[number] for number in plan.stored_numbers]
                if storage.block is None
            ]
            arena = memory.allocate(plan.arena_bytes) if plan.arena_bytes else None
        except memory.OutOfMemory as error:
            raise out_of_memory(error.n_bytes) from None
        self.arena: Any = arena
        self._bind(arena.address if arena is not None else 0)
        self.state = runner.take_state()

    def _begin(self, segment: Segment, reason: str, first: int, count: int) -> None:
        self.segment = segment
        self.reason = reason
        self.first = first
        self.count = count
        self.records: list[Record] = segment.records[first:count]
        self.entered = 0
        self.is_resumed = False
        self.step = 0  # where kernels are timed: the next one
        self.is_committed = False
        # None until the first kernel: a run goes on as it began, for its state means nothing else.
        self.is_timed: bool | None = None
        self.seconds: list[float] = []  # of each kernel, where they are timed

    @classmethod
    def resumed(cls, segment: Segment, reason: str, left: tuple[Any, ...]) -> Run:
        """A run that native code began and left in the segment. Whoever makes one of the same
        `left` goes on with the same state."""
        count, plan, blocks, addresses, numbers, state = left
        made = cls.__new__(cls)
        made._begin(segment, reason, 0, count)
        made.is_resumed, made.is_timed = True, False
        made.plan = plan
        stored = [segment.fresh[number] for number in plan.stored_numbers]
        made.blocks = list(zip(stored, blocks, strict=False))
        made.arena = blocks  # what else the plan needs: kept until the end
        made.addresses, made.numbers = array("q", addresses), array("q", numbers)
        made.state = runner.shared_state(state)
        return made

    def wanted(self) -> int:
        """Mask of the fresh storages that must be in memory afterwards: byte n is 1 for n."""
        segment = self.segment
        # Read in one sweep: reference counts move while Python runs.
        alive = [_references(storage) > UNHELD_REFERENCES for storage in segment.fresh]
        mask = int.from_bytes(bytes(alive[: self.n_fresh]), "little")
        if segment.last_uses is not None:
            return self._wanted_alone(alive, segment.last_uses)
        if self.first:  # what an earlier part has put in memory stays there
            for number, storage in enumerate(segment.fresh[: self.n_fresh]):
                if storage.block is not None:
                    mask |= 1 << 8 * number
        return mask

    def _wanted_alone(self, alive: list[bool], last_uses: dict[int, int]) -> int:
        """The same for one record of many: of what it touches, what later ones read too."""
        touched = self.segment.touched
        own = {
            slot if slot >= 0 else touched[-1 - slot] >> 1
            for record in self.records
            for slot in record[0][1:]
        }
        mask = 0
        for number, storage in enumerate(self.segment.fresh[: self.n_fresh]):
            is_needed = alive[number] or last_uses.get(number, -1) >= self.count
            if storage.block is not None or (number in own and is_needed):
                mask |= 1 << 8 * number
        return mask

    def _bind(self, arena_address: int) -> None:
        segment, plan = self.segment, self.plan
        addresses = [_ERROR_WORD_ADDRESS, arena_address]
        for storage in segment.inputs[: self.n_inputs]:
            block = storage.block  # None: given back after its last use, for lack of memory
            addresses.append(0 if block is None else block.address)
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
        self.entered += 1
        is_alone = self.entered == 1
        plan = self.plan
        if self.is_timed is None:
            self.is_timed = TIMED[0]
        if plan.n_kernels and not self.is_committed:
            try:
                if self.is_timed:
                    self._run_timed()
                else:
                    runner.run(
                        plan.program, self.addresses, self.numbers, FLUSH_DENORMALS[0], self.state
                    )
            except memory.OutOfMemory as error:
                raise out_of_memory(error.n_bytes) from None
        for storage, block in self.blocks:
            if storage.block is None and not self.is_committed:
                storage.block = block
                storage.external = None
        if self.is_committed:
            return
        self.segment.flushed = self.count
        self.is_committed = True
        if is_alone:  # else somebody may still hold it
            runner.give_state(self.state)
        self._forget_dead()
        plan.runs += 1
        STATS.segments_flushed += 1
        STATS.records += len(self.records)
        for observer in tuple(OBSERVERS):
            observer(self.reason, plan, self.records, self.seconds)
        if ERROR_WORD[0]:
            raise_index()

    def _forget_dead(self) -> None:
        """Where a segment is run record by record: give back what no later one reads."""
        segment = self.segment
        last_uses = segment.last_uses
        if last_uses is not None:
            self.blocks = []
            for storages, sign in ((segment.fresh, 0), (segment.inputs, -1)):
                alive = [_references(storage) > UNHELD_REFERENCES for storage in storages]
                for number, is_alive in enumerate(alive):
                    if not is_alive and last_uses.get(number ^ sign, -1) < self.count:
                        storages[number].block = None

    def _run_timed(self) -> None:
        """Run the program's steps one at a time; seconds of each."""
        program = self.plan.program
        n_steps, max_arguments, scratch_bytes, _ = program[:4]
        starts = [4]
        for _ in range(n_steps):
            start = starts[-1]
            starts.append(start + 6 + program[start + 3] + 5 * program[start + 4])
        # A handler may finish the run between any two lines: the step is read once.
        while (number := self.step) < n_steps:
            state = self.state
            alone = array("q", [1, max_arguments, scratch_bytes, 0])
            alone += program[starts[number] : starts[number + 1]]
            before = time.perf_counter()
            runner.run(alone, self.addresses, self.numbers, FLUSH_DENORMALS[0], state)
            spent = time.perf_counter() - before
            fresh_state = runner.RunState()
            # Nothing can come between this look and the stores.
            if self.step == number:
                self.step = number + 1
                self.state = fresh_state
                self.seconds = [*self.seconds, spent]


def _let_go_of_done(segment: Segment) -> None:
    """What the records still to be run do not touch is free of the segment."""
    last_uses = segment.last_uses
    if last_uses is not None:
        for storages, sign in ((segment.fresh, 0), (segment.inputs, -1)):
            for number, storage in enumerate(storages):
                is_done = last_uses.get(number ^ sign, -1) < segment.flushed
                if storage.segment is segment and storage.block is not None and is_done:
                    storage.segment = None


def _bring_runner() -> None:
    """The first plan brings what makes it and what runs it."""
    global runner, plans
    from flambeau.devices.cpu import runner as found
    from flambeau.engine import plan_cache

    plans = plan_cache
    if runner is None:
        runner = found
        # What is registered last comes first before a fork: this lock before those of the rooms
        # below, in the order in which a flush takes them.
        at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


ERROR_WORD: Final = array("q", [0])
_ERROR_WORD_ADDRESS: Final = ERROR_WORD.buffer_info()[0]


def raise_index() -> None:
    """A kernel has met an index that is out of range."""
    ERROR_WORD[0] = 0
    raise IndexError("index out of range in self")


def out_of_memory(n_bytes: int) -> OutOfMemoryError:
    """torch's error for memory that cannot be had."""
    return OutOfMemoryError(
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
        f"you tried to allocate {n_bytes} bytes. Error code 12 (Cannot allocate memory)"
    )
