"""Segment: what one thread recorded since its last flush.

Keeps     one append to `records` is the commit: whatever happens before it leaves at most an
          unused slot behind. Slots are numbered by first touch: fresh outputs 0, 1, ..., views of
          other memory -1, -2, ... A signal handler or another thread may come between any two
          calls here and record into the segment, or flush it: numbers are checked after they were
          given, and what belongs together is appended in one call.
Touches   storage, view, external.
Not here  when to cut (stream.py), planning and running (run.py)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from flambeau.engine import external
from flambeau.engine.storage import Storage
from flambeau.engine.view import Place, View

if TYPE_CHECKING:
    from flambeau.engine.callsite import Site
    from flambeau.engine.run import Run
    from flambeau.engine.signature import Signature
    from flambeau.engine.stream import Stream

# (key, numbers, site); key = (signature, slots of operands ..., slots of fresh outputs ...)
Record = tuple[tuple[Any, ...], tuple[Any, ...], "Site | None"]
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
    last_uses  fresh storage -> last record that touches it, where memory for all was lacking
    run        the run of the records from `flushed` on that has begun
    weighed    inputs and fresh storages that were weighed so far, and their bytes
    """

    __slots__ = (
        "__weakref__", "armed", "closed", "direct", "flushed", "fresh", "inputs", "last_uses",
        "limit", "offsets", "places", "records", "run", "stream", "touched", "views", "weighed",
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
        self.armed: Signature | None = None
        self.closed = False
        self.direct = False
        self.flushed = 0
        self.last_uses: dict[int, int] | None = None
        self.run: Run | tuple[Any, ...] | None = None
        self.weighed = 0, 0, 0

    def touch(self, view: View) -> int:
        """The view's slot; given at first touch. Flushes another stream's work on its storage."""
        storage = view._storage
        if storage.external is not None and not self.direct:
            small = view._layout.span_bytes <= external.SNAPSHOT_BYTES
            # Small views of an array's memory are copied whoever still sees it: a record that
            # waits must not be what keeps an array alive.
            is_foreign = small and type(storage.block) is external.OutsideBlock
            if is_foreign or external.is_shared(storage):
                if small or external.is_cramped(storage.block):
                    # The copy's slot, not cached on the view: the next operator looks anew.
                    return self.touch(external.snapshot(view))
                self.closed = True  # so that the record is run before its call returns
        slot = storage.slot if storage.segment is self else self._take(storage)
        layout, offset = view._layout, view._offset
        if offset == 0 and (
            layout is storage.layout or (layout.is_conj and layout.conjugated() is storage.layout)
        ):
            view._place = storage
            return slot
        key = (slot, layout, offset)
        number = self.views.get(key)
        if number is None:
            number = self.views.setdefault(key, self._number_view(self._code(slot) * 2, offset))
        place = Place()
        place.segment = self
        place.slot = number
        self.places.append(place)
        view._place = place
        return number

    def _take(self, storage: Storage) -> int:
        """Give a storage that was there before a slot for its whole view."""
        inputs, touched = self.inputs, self.touched
        while True:
            if storage.segment is self:
                return storage.slot
            self.stream.settle(storage, self)
            index, position = len(inputs), len(touched)
            slot, code = -1 - position, (-1 - index) * 2 + 1
            _append_together((inputs, touched, self.offsets), (storage, code, 0))
            is_ours = len(touched) == position + 1 and len(inputs) == index + 1
            # Nothing can come between this look and the two stores.
            if is_ours and storage.segment is None:
                storage.slot = slot
                storage.segment = self
                return slot

    def _number_view(self, code: int, offset: int) -> int:
        """A new slot of a view that does not cover its storage."""
        touched = self.touched
        while True:
            position = len(touched)
            _append_together((touched, self.offsets), (code, offset))
            if len(touched) == position + 1:
                return -1 - position

    def _code(self, slot: int) -> int:
        """Number of the storage whose whole view has this slot: of a fresh one the slot, else as
        in `touched`."""
        return slot if slot >= 0 else self.touched[-1 - slot] >> 1

    def add(self, storage: Storage) -> int:
        """Number the storage of a new output; returns the slot of its whole view."""
        fresh = self.fresh
        slot = len(fresh)
        storage.segment = self
        fresh.append(storage)
        while fresh[slot] is not storage:
            slot += 1
        storage.slot = slot
        return slot


def _append_together(lists: tuple[list[Any], ...], values: tuple[Any, ...]) -> None:
    """Append a value to each list in one call, which no signal handler or thread comes between."""
    deque(map(list.append, lists, values), 0)
