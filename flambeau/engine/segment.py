"""Segment: what one thread recorded since its last flush.

Keeps     one append to `records` is the commit: whatever happens before it leaves at most an
          unused slot behind. Slots are numbered by first touch: fresh outputs 0, 1, ..., views of
          other memory -1, -2, ...
Touches   storage, view, external.
Not here  when to cut (stream.py), planning and running (run.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flambeau.engine import external
from flambeau.engine.storage import Storage
from flambeau.engine.view import Place, View

if TYPE_CHECKING:
    from flambeau.engine.stream import Stream

# (key, numbers, site); key = (signature, slots of operands ..., slots of fresh outputs ...)
Record = tuple[tuple[Any, ...], tuple[Any, ...], Any]
# Records after which the cutting rules are looked at for the first time, and then again.
FIRST_LOOK: Final = 64


class Segment:
    """Records and the memory they touch.

    fresh      storages of outputs, in order of their slots
    inputs     storages that were there before
    touched    per touched view -1 - slot: its storage (an index of fresh, or -1 - an index of
               inputs) * 2 + (1 if it covers the storage whole)
    offsets    per touched view, elements
    views      (storage, layout, offset) -> slot of a view that does not cover its storage
    places     of such views, to be emptied
    limit      records at which the cutting rules are looked at again
    armed      signature whose return cuts the segment, once it is long enough
    direct     runs at once: memory shared with the outside is read where it lies
    closed     no longer the stream's own: a record appended late is run by whoever appended it
    flushed    records already run
    """

    __slots__ = (
        "__weakref__", "armed", "closed", "direct", "flushed", "fresh", "inputs", "limit",
        "offsets", "places", "records", "run", "stream", "touched", "views",
    )  # fmt: skip

    def __init__(self, stream: Stream, limit: int = FIRST_LOOK) -> None:
        self.stream: Final = stream
        self.records: Final[list[Record]] = []
        self.fresh: Final[list[Storage]] = []
        self.inputs: Final[list[Storage]] = []
        self.touched: Final[list[int]] = []
        self.offsets: Final[list[int]] = []
        self.views: Final[dict[tuple[Any, ...], int]] = {}
        self.places: Final[list[Place]] = []
        self.limit = limit
        self.armed: Any = None
        self.closed = False
        self.direct = False
        self.flushed = 0
        self.run: Any = None

    def touch(self, view: View) -> int:
        """The view's slot; given at first touch. Flushes another stream's work on its storage."""
        storage = view._storage
        if storage.external is not None and not self.direct and external.is_shared(storage):
            small = view._layout.span_bytes <= external.SNAPSHOT_BYTES
            if small or external.is_cramped(storage.block):
                # The copy's slot, not cached on the view: the next operator looks anew.
                return self.touch(external.snapshot(view))
            self.closed = True  # so that the record is run before its call returns
        if storage.segment is not self:
            self.stream.settle(storage, self)
            self._take(storage)
        layout, offset = view._layout, view._offset
        if offset == 0 and layout is storage.layout:
            view._place = storage
            return storage.slot
        key = (storage.slot, layout, offset)
        slot = self.views.get(key)
        if slot is None:
            slot = -1 - len(self.touched)
            self.touched.append(self._code(storage) * 2)
            self.offsets.append(offset)
            self.views[key] = slot
        place = Place()
        place.segment = self
        place.slot = slot
        self.places.append(place)
        view._place = place
        return slot

    def _take(self, storage: Storage) -> None:
        """Give a storage that was there before a slot for its whole view."""
        number = -1 - len(self.inputs)
        self.inputs.append(storage)
        slot = -1 - len(self.touched)
        self.touched.append(number * 2 + 1)
        self.offsets.append(0)
        storage.slot = slot
        storage.segment = self

    def _code(self, storage: Storage) -> int:
        """Number of a storage of this segment: of a fresh one its slot, else as in `touched`."""
        slot = storage.slot
        return slot if slot >= 0 else self.touched[-1 - slot] >> 1

    def add(self, storage: Storage) -> int:
        """Number the storage of a new output; returns the slot of its whole view."""
        storage.slot = slot = len(self.fresh)
        storage.segment = self
        self.fresh.append(storage)
        return slot
