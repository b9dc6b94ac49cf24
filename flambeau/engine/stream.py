"""Streams: one a thread; when a segment is cut, and who flushes whose work.

Keeps     a flush comes before the record that asks for it, so that the cut falls where the finished
          expressions have already let go of their operands; budgets count shapes, never free
          memory, so that cuts are as periodic as the program.
Touches   segment, storage, external, run.
Not here  the plan and its run (run.py), recording the common shapes of operators
          (tensor/closures.py)."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.config import CONFIG
from flambeau.devices.forks import at_fork
from flambeau.engine import external, run
from flambeau.engine.segment import FIRST_LOOK, Segment
from flambeau.engine.signature import Signature
from flambeau.engine.storage import Storage, new_storage
from flambeau.engine.view import View

if TYPE_CHECKING:
    from flambeau.engine.callsite import Site

MAX_RECORDS: Final = 2048
RECURRENCE_RECORDS: Final = 256
# Bytes that only a segment may keep alive.
HELD_BYTES: Final = 1 << 30
# Outputs of this size have the budget looked at with every record.
HEAVY_BYTES: Final = 1 << 26

_STREAMS: weakref.WeakSet[Stream] = weakref.WeakSet()


def new_segment(stream: Stream) -> Segment:
    """An empty segment under the present switches."""
    return Segment(stream, FIRST_LOOK if CONFIG.fuse else 1)


class Stream:
    """A thread's recorder state. `current()` gives the calling thread's.

    grad_enabled, inference   modes of gradients.modes, here so that one access serves all
    asks          whether arguments may take calls over (tensor.arguments.taken_over), here for
                  native code, which reads it
    site          call site that everything recorded is given, or None: the caller's. A backward
                  pass sets it to the line whose gradient it records
    """

    __slots__ = ("__weakref__", "asks", "grad_enabled", "inference", "segment", "site")

    def __init__(self) -> None:
        self.asks = True
        self.grad_enabled = True
        self.inference = False
        self.site: Site | None = None
        self.segment = new_segment(self)
        _STREAMS.add(self)

    def settle(self, storage: Storage, segment: Segment) -> None:
        """Run what any other segment still has to do with a storage."""
        other = storage.segment
        if other is not None and other is not segment:
            run.flush(other, "touched by another stream")

    def cut(self, signature: Signature) -> Segment:
        """Look at the cutting rules before `signature` is recorded; returns the open segment."""
        segment = self.segment
        count = len(segment.records)
        if not CONFIG.fuse:
            if count:
                run.flush(segment, "FLAMBEAU_FUSE=0")
        elif count >= MAX_RECORDS:
            run.flush(segment, f"{MAX_RECORDS} records")
        elif signature is segment.armed:
            run.flush(segment, "the segment's first operator came again")
        elif _may_hold(segment) > HELD_BYTES and held_bytes(segment) > HELD_BYTES:
            run.flush(segment, "memory that only the segment keeps alive")
        elif count >= segment.limit:
            segment.limit = count + FIRST_LOOK
            if count >= RECURRENCE_RECORDS:
                segment.armed = segment.records[0][0][0]
                if segment.armed is signature:
                    run.flush(segment, "the segment's first operator came again")
        return self.segment

    def make_room(self, n_bytes: int) -> None:
        """Before memory is taken outside a segment: let go of what only the segment holds."""
        if n_bytes >= HEAVY_BYTES:
            segment = self.segment
            if segment.records and held_bytes(segment) + n_bytes > HELD_BYTES:
                run.flush(segment, "memory that only the segment keeps alive")

    def renew(self) -> None:
        """Start a segment under the present switches; for when they change."""
        self.synchronize("a switch changed")
        self.segment = new_segment(self)

    def synchronize(self, reason: str) -> None:
        """Run everything this thread recorded."""
        if self.segment.records:
            run.flush(self.segment, reason)


def _may_hold(segment: Segment) -> int:
    """At least `held_bytes`: all it ever touched. Weighs what is new since the last look."""
    inputs, fresh, total = segment.weighed
    new = segment.inputs[inputs:], segment.fresh[fresh:]
    for storages in new:
        total += sum([storage.layout.span_bytes for storage in storages])
    segment.weighed = inputs + len(new[0]), fresh + len(new[1]), total
    return total


def held_bytes(segment: Segment) -> int:
    """Bytes of inputs nobody else holds and of live pending outputs."""
    limit = run.UNHELD_REFERENCES
    count = sys.getrefcount
    total = sum([s.layout.span_bytes for s in segment.inputs if count(s) <= limit])
    return total + sum([s.layout.span_bytes for s in segment.fresh if count(s) > limit])


class _Local(threading.local):
    def __init__(self) -> None:
        self.stream = Stream()


LOCAL: Final = _Local()


def current() -> Stream:
    """The calling thread's stream."""
    return LOCAL.stream


def materialize(view: View, reason: str) -> None:
    """Put a view's storage in memory, with every recorded write in it."""
    segment = view._storage.segment
    if segment is not None:
        run.flush(segment, reason)


def flush_all(reason: str) -> None:
    """Run what every thread recorded (before a fork)."""
    for stream in list(_STREAMS):
        if stream.segment.records:
            run.flush(stream.segment, reason)


def record(
    stream: Stream,
    signature: Signature,
    views: Sequence[View],
    numbers: tuple[Any, ...],
    site: Site | None,
) -> list[Storage]:
    """Record one operator: storages of its fresh outputs. The general form; the closures of
    tensor/closures.py spell it out for the common shapes of operators."""
    segment = stream.segment
    if (
        signature is segment.armed
        or len(segment.records) >= segment.limit
        or signature.out_bytes > HEAVY_BYTES
    ):
        segment = stream.cut(signature)
    slots = run.QUICK.slots(segment, views)
    made = []
    for layout in signature.fresh_outputs:
        storage = new_storage(layout)
        slots.append(segment.add(storage))
        made.append(storage)
    segment.records.append(((signature, *slots), numbers, site))
    if segment.closed:
        run.flush(segment, "recorded while another thread flushed")
    return made


def _before_fork() -> None:
    """A child starts with nothing pending: it has no other thread to finish their work."""
    run.LOCK.acquire()
    flush_all("a fork")


def _after_fork() -> None:
    run.LOCK.release()


def _in_child() -> None:
    run.QUICK.forget()  # the team and its scratch memory are gone
    run.LOCK.release()


at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
run.install(new_segment)
external.install_recorder(record, run.flush)
