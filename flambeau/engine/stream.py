"""Streams: one a thread; when a segment is cut, and who flushes whose work.

Keeps     a flush comes before the record that asks for it, so that the cut falls where the finished
          expressions have already let go of their operands; budgets count shapes, never free
          memory, so that cuts are as periodic as the program.
Touches   segment, storage, run.
Not here  the plan and its run (run.py), what is recorded (record.py)."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.engine import external, run
from flambeau.engine.segment import Segment
from flambeau.engine.signature import RECORD_WEIGHT, Signature
from flambeau.engine.storage import Storage
from flambeau.engine.view import View

MAX_RECORDS: Final = 2048
RECURRENCE_RECORDS: Final = 256
# Bytes recorded before liveness is looked at, and bytes only a segment may keep alive.
ROOM_BYTES: Final = RECORD_WEIGHT * MAX_RECORDS
HELD_BYTES: Final = 1 << 30

_STREAMS: weakref.WeakSet[Stream] = weakref.WeakSet()


class Stream:
    """A thread's recorder state. `current()` gives the calling thread's.

    grad_enabled, inference   modes of gradients.modes, here so that one access serves all
    """

    __slots__ = ("__weakref__", "grad_enabled", "inference", "segment")

    def __init__(self) -> None:
        self.grad_enabled = True
        self.inference = False
        self.segment = Segment(self, ROOM_BYTES if CONFIG.fuse else 0)
        _STREAMS.add(self)

    def adopt(self, storage: Storage) -> None:
        """Make a storage this stream's: run what any other segment still has to do with it."""
        other = storage.segment
        if other is not None and other is not self.segment:
            run.flush(other, "touched by another stream")
        self.segment.take(storage)

    def cut(self, signature: Signature) -> Segment:
        """Look at the cutting rules before `signature` is recorded; returns the open segment."""
        segment = self.segment
        count = len(segment.records)
        if not CONFIG.fuse:
            if count:
                run.flush(segment, "FLAMBEAU_FUSE=0")
        elif count >= MAX_RECORDS:
            run.flush(segment, f"{MAX_RECORDS} records")
        elif signature is segment.head and count >= RECURRENCE_RECORDS:
            run.flush(segment, "the segment's first operator came again")
        elif segment.room < 0:
            if held_bytes(segment) > HELD_BYTES:
                run.flush(segment, "memory that only the segment keeps alive")
            else:
                segment.room = ROOM_BYTES
        return self.segment

    def make_room(self, n_bytes: int) -> None:
        """Before memory is taken outside a segment: let go of what only the segment holds."""
        if n_bytes >= HELD_BYTES >> 4:
            segment = self.segment
            if segment.records and held_bytes(segment) + n_bytes > HELD_BYTES:
                run.flush(segment, "memory that only the segment keeps alive")

    def renew(self) -> None:
        """Start a segment under the present switches; for when they change."""
        self.synchronize("a switch changed")
        self.segment = Segment(self, ROOM_BYTES if CONFIG.fuse else 0)

    def synchronize(self, reason: str) -> None:
        """Run everything this thread recorded."""
        if self.segment.records:
            run.flush(self.segment, reason)


def held_bytes(segment: Segment) -> int:
    """Bytes of inputs nobody else holds and of live pending outputs."""
    total = 0
    for storage in segment.storages:
        alive = sys.getrefcount(storage) > run.UNHELD_REFERENCES
        if alive != (storage.block is not None):
            total += storage.n_bytes
    return total


class _Local(threading.local):
    def __init__(self) -> None:
        self.stream = Stream()


LOCAL: Final = _Local()


def current() -> Stream:
    """The calling thread's stream."""
    return LOCAL.stream


def materialize(view: View, reason: str) -> None:
    """Put a view's storage in memory, with every recorded write in it."""
    storage = view._storage
    segment = storage.segment
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
    site: Any,
) -> list[Storage]:
    """Record one operator: storages of its fresh outputs. The general form; the closures of
    tensor/binding.py spell it out for the common shapes of operators."""
    segment = stream.segment
    segment.room -= signature.weight
    if segment.room < 0 or len(segment.records) >= RECURRENCE_RECORDS:
        segment = stream.cut(signature)
    slots = []
    for view in views:
        if view._segment is segment.token:
            slots.append(view._slot)
        else:
            slots.append(segment.touch(view))
            if segment is not stream.segment:  # touching flushed this stream as well
                return record(stream, signature, views, numbers, site)
    made = []
    for layout in signature.fresh_outputs:
        storage = Storage(layout, layout.span * layout.itemsize)
        slots.append(segment.fresh(storage))
        made.append(storage)
    if segment.head is None:
        segment.head = signature
    segment.records.append(((signature, *slots), numbers, site))
    if segment.closed:
        run.flush(segment, "recorded while another thread flushed")
    return made


run.install(lambda stream: Segment(stream, ROOM_BYTES if CONFIG.fuse else 0))
external.install_recorder(record, run.flush)
