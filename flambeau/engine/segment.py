"""Segment: what one thread recorded since its last flush.

Keeps     one append to `records` is the commit: whatever happens before it leaves at most an
          unused slot behind. Slots are numbered by first touch.
Touches   storage, view, signature (names only).
Not here  when to cut (stream.py), planning and running (run.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flambeau.engine import external
from flambeau.engine.storage import Storage
from flambeau.engine.view import View

if TYPE_CHECKING:
    from flambeau.engine.stream import Stream

# (key, numbers, site); key = (signature, slots of operands ..., slots of fresh outputs ...)
Record = tuple[tuple[Any, ...], tuple[Any, ...], Any]


class Segment:
    """Records and the memory they touch.

    storages   in order of first touch     views    per view slot: storage number * 2 + covers it whole
    offsets    per view slot, elements     slots    (storage number, layout, offset) -> view slot
    token      what views and nobody else keep, to know their slot is of this segment
    room       bytes that may still be recorded before the cutting rules are looked at
    direct     runs at once: memory shared with the outside is read where it lies
    closed     no longer the stream's own: a record appended late is run by whoever appended it
    flushed    records already run
    """

    __slots__ = (
        "__weakref__", "closed", "direct", "flushed", "head", "offsets", "records", "room", "run", "slots",
        "storages", "stream", "token", "views",
    )  # fmt: skip

    def __init__(self, stream: Stream, room: int) -> None:
        self.stream: Final = stream
        self.records: Final[list[Record]] = []
        self.storages: Final[list[Storage]] = []
        self.views: Final[list[int]] = []
        self.offsets: Final[list[int]] = []
        self.slots: Final[dict[tuple[Any, ...], int]] = {}
        self.token: Final = object()
        self.room = room
        self.head: Any = None
        self.closed = False
        self.direct = False
        self.flushed = 0
        self.run: Any = None

    def touch(self, view: View) -> int:
        """The view's slot; given at first touch. Flushes another stream's work on its storage."""
        storage = view._storage
        if storage.external is not None and not self.direct and external.is_shared(storage):
            # The copy's slot, not cached on the view: the next operator looks anew.
            return self.touch(external.snapshot(view))
        if storage.segment is not self:
            self.stream.adopt(storage)
        layout = view._layout
        offset = view._offset
        whole = offset == 0 and layout is storage.layout
        if whole:
            slot = storage.slot
            if slot < 0:
                slot = len(self.views)
                self.views.append(storage.number * 2 + 1)
                self.offsets.append(0)
                storage.slot = slot
        else:
            key = (storage.number, layout, offset)
            found = self.slots.get(key)
            if found is None:
                slot = len(self.views)
                self.views.append(storage.number * 2)
                self.offsets.append(offset)
                self.slots[key] = slot
            else:
                slot = found
        view._segment = self.token
        view._slot = slot
        return slot

    def take(self, storage: Storage) -> None:
        """Number a storage in this segment."""
        storage.number = len(self.storages)
        storage.slot = -1
        storage.segment = self
        self.storages.append(storage)

    def fresh(self, storage: Storage) -> int:
        """Number the storage of a new output; returns the slot of its whole view."""
        storage.number = len(self.storages)
        storage.segment = self
        self.storages.append(storage)
        storage.slot = slot = len(self.views)
        self.views.append(storage.number * 2 + 1)
        self.offsets.append(0)
        return slot
