"""Plans of small segments seen for the first time: one-record plans in a row, nothing fused.

Keeps     the bits of the fused plan; a record's own plan is found by its signature and by which of
          its operands share memory, so that a new segment of known records costs microseconds a
          record and compiles nothing. A segment that comes back is planned as a whole.
Touches   base.config, plan, signature.
Not here  when a segment is planned this way, and how a lone record is (template.py)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.engine.plan import (
    HEAD_WORDS,
    PATCH_WORDS,
    STEP_WORDS,
    Plan,
    SegmentFacts,
    number_packer,
)
from flambeau.engine.planning.plan import (
    ALIGNMENT,
    ARENA_ADDRESS,
    ERROR_ADDRESS,
    FIRST_STORAGE,
    Draft,
    finish,
)
from flambeau.engine.signature import Signature

# A segment is planned as a whole at first sight where it is short, and where it moves so much
# memory that fusing it saves more than planning it costs (some 60 us a record).
FEWEST_RECORDS: Final = 16
MOST_BYTES: Final = 1 << 17  # read and written by a record, on average
MAX_PARTS: Final = 20_000
NOTE: Final = "the segment is small and new: it is fused when it comes again"

Begin = Callable[[SegmentFacts], Plan | Draft]


class _Part:
    """A record's own plan, as it is put together with others.

    words      of its steps
    storages   (place of an address's index, storage): 0, 1, ... of operands, -1, -2, ... of outputs
    arena      places of addresses in the part's arena
    numbers    (place of a number's index, number): touched views first, then the record's numbers
    """

    __slots__ = (
        "arena", "arena_bytes", "kernels", "max_arguments", "numbers", "scratch_bytes",
        "statements", "storages", "words",
    )  # fmt: skip

    def __init__(self, plan: Plan, n_operands: int) -> None:
        program = plan.program.tolist()
        n_steps, self.max_arguments, self.scratch_bytes = program[:3]
        self.words = words = program[HEAD_WORDS:]
        self.arena_bytes = -(-plan.arena_bytes // ALIGNMENT) * ALIGNMENT
        self.kernels = [(name, n_units) for name, _, n_units in plan.explained()[0]]
        self.statements = plan.statements
        self.storages: list[tuple[int, int]] = []
        self.arena: list[int] = []
        self.numbers: list[tuple[int, int]] = []
        position = 0
        for _ in range(n_steps):
            n_arguments, n_patches = words[position + 3 : position + 5]
            position += STEP_WORDS + n_arguments
            for _ in range(n_patches):
                self._read_patch(position, n_operands, plan.stored_numbers)
                position += PATCH_WORDS

    def _read_patch(self, position: int, n_operands: int, stored: Sequence[int]) -> None:
        _, place, _, number, _ = self.words[position : position + PATCH_WORDS]
        if place == ARENA_ADDRESS:
            self.arena.append(position + 1)
        elif place >= FIRST_STORAGE:
            own = place - FIRST_STORAGE
            self.storages.append(
                (position + 1, own if own < n_operands else -1 - stored[own - n_operands])
            )
        elif place != ERROR_ADDRESS and place != -1:
            raise RuntimeError(f"a plan's address {place} is of no known kind")
        if number >= 0:
            self.numbers.append((position + 3, number))


# (signature, operands by which share memory, outputs somebody reads) -> its plan
_PARTS: Final[dict[tuple[Any, ...], _Part]] = {}


def forget() -> None:
    """Drop all parts; after a switch that plans depend on changed."""
    _PARTS.clear()


def pays(facts: SegmentFacts, live: Sequence[int]) -> bool:
    """Whether planning the segment as a whole would cost more than it could save once."""
    if CONFIG.fuse_new or len(live) < FEWEST_RECORDS:
        return False
    keys = facts.keys
    n_bytes = 0
    for record in live:
        for layout in keys[record][0].all_layouts:
            n_bytes += layout.span_bytes
    return n_bytes <= MOST_BYTES * len(live)


class _Call:
    """A record among others: which of the segment's storages and views its part speaks of.

    storages   of the operands, in order of appearance, as (-1 - an input) or a fresh storage
    views      per touched view of the part: the segment's number, -1 for a whole fresh storage
    outputs    fresh storages
    """

    __slots__ = ("first_number", "key", "outputs", "record", "storages", "views")

    def __init__(self, facts: SegmentFacts, record: int, needed: set[int]) -> None:
        key = facts.keys[record]
        signature: Signature = key[0]
        end = 1 + len(signature.layouts)
        touched = facts.touched
        self.record = record
        self.storages: list[int] = []
        self.views: list[int] = []
        self.outputs: tuple[int, ...] = key[end:]
        self.first_number = 0
        places: dict[int, int] = {}  # slot -> the part's slot
        codes: list[int] = []
        slots: list[int] = []
        for slot in key[1:end]:
            own = places.get(slot)
            if own is None:
                code = slot * 2 + 1 if slot >= 0 else touched[-1 - slot]
                storage = code >> 1
                if storage in self.storages:
                    index = self.storages.index(storage)
                else:
                    index = len(self.storages)
                    self.storages.append(storage)
                codes.append((-1 - index) * 2 + (code & 1))
                self.views.append(-1 if slot >= 0 else -1 - slot)
                own = places[slot] = -len(codes)
            slots.append(own)
        kept = tuple([number for number, slot in enumerate(self.outputs) if slot in needed])
        self.key = (signature, tuple(slots), tuple(codes), kept)

    def facts(self, of: SegmentFacts) -> SegmentFacts:
        """What planning the record alone may know."""
        signature, slots, codes, kept = self.key
        outputs = range(len(self.outputs))
        inputs = [
            of.fresh_bytes[each] if each >= 0 else of.input_bytes[-1 - each]
            for each in self.storages
        ]
        fresh = [of.fresh_bytes[each] for each in self.outputs]
        return SegmentFacts([(signature, *slots, *outputs)], codes, inputs, fresh, set(kept))


def plan_apart(facts: SegmentFacts, live: Sequence[int], begin: Begin) -> Plan:
    """A plan of the live records (last one first), each by its own plan.

    begin   plans a record alone, up to the compilation of its kernels"""
    needed = _needed(facts, live)
    calls = [_Call(facts, record, needed) for record in reversed(live)]
    _make_missing(facts, calls, begin)
    return _Assembly(facts, calls).plan()


def _needed(facts: SegmentFacts, live: Sequence[int]) -> set[int]:
    """Fresh storages that are kept or read by a live record."""
    needed = set(facts.kept)
    for record in live:
        key = facts.keys[record]
        for slot in key[1 : 1 + len(key[0].layouts)]:
            needed.add(slot if slot >= 0 else facts.touched[-1 - slot] >> 1)
    return needed


def _make_missing(facts: SegmentFacts, calls: Sequence[_Call], begin: Begin) -> None:
    """Plan the records that no segment had before; their kernels are compiled together."""
    begun: dict[tuple[Any, ...], tuple[_Call, Plan | Draft]] = {}
    for call in calls:
        if call.key not in _PARTS and call.key not in begun:
            begun[call.key] = (call, begin(call.facts(facts)))
    if len(_PARTS) + len(begun) > MAX_PARTS:
        _PARTS.clear()
        return _make_missing(facts, calls, begin)
    plans = finish([made for _, made in begun.values()])
    for (key, (call, _)), plan in zip(begun.items(), plans, strict=True):
        _PARTS[key] = _Part(plan, len(call.storages))
    return None


class _Places:
    """Memory in the arena, taken and given back as records go by."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._free: dict[int, list[int]] = {}

    def take(self, n_bytes: int) -> int:
        """Offset of so many bytes, a multiple of the alignment."""
        free = self._free.get(n_bytes)
        if free:
            return free.pop()
        offset = self.n_bytes
        self.n_bytes += n_bytes
        return offset

    def give(self, offset: int, n_bytes: int) -> None:
        """The bytes are free again."""
        self._free.setdefault(n_bytes, []).append(offset)


class _Assembly:
    """The program being put together."""

    def __init__(self, facts: SegmentFacts, calls: Sequence[_Call]) -> None:
        self.facts = facts
        self.calls = calls
        self.stored_numbers = tuple(sorted(facts.kept))
        self.n_inputs = len(facts.input_bytes)
        # Storage (fresh, or -1 - an input) -> index of its address.
        self.address_of = {-1 - n: FIRST_STORAGE + n for n in range(self.n_inputs)}
        for position, number in enumerate(self.stored_numbers, FIRST_STORAGE + self.n_inputs):
            self.address_of[number] = position
        self.places = _Places()
        self.offsets: dict[int, int] = {}
        self.words: list[int] = [0] * HEAD_WORDS
        self.kernels: list[tuple[str, set[int], int]] = []
        self.n_statements = 0

    def plan(self) -> Plan:
        """The whole plan."""
        facts, calls = self.facts, self.calls
        counts = [len(key[0].number_format) for key in facts.keys]
        first_numbers = [len(facts.touched)]
        for count in counts:
            first_numbers.append(first_numbers[-1] + count)
        last_uses: dict[int, int] = {}
        for position, call in enumerate(calls):
            for storage in (*call.storages, *call.outputs):
                last_uses[storage] = position
        max_arguments = scratch_bytes = 0
        for position, call in enumerate(calls):
            part = _PARTS[call.key]
            self._add(call, part, first_numbers[call.record])
            max_arguments = max(max_arguments, part.max_arguments)
            scratch_bytes = max(scratch_bytes, part.scratch_bytes)
            for storage in {*call.storages, *call.outputs}:
                if last_uses[storage] == position and storage in self.offsets:
                    self.places.give(self.offsets.pop(storage), self._size(storage))
        self.words[:3] = len(self.kernels), max_arguments, scratch_bytes
        made = Plan()
        made.is_apart = True
        made.stored_numbers = self.stored_numbers
        made.stored = sum([1 << 8 * number for number in self.stored_numbers])
        made.program = array("q", self.words)
        made.arena_bytes = self.places.n_bytes
        made.n_touched = len(facts.touched)
        made.number_format = "".join([key[0].number_format for key in facts.keys])
        made.pack_numbers = number_packer(made.n_touched, made.number_format)
        made.n_kernels = len(self.kernels)
        made.statements = self.n_statements
        kernels, notes = self.kernels, [(calls[0].record, NOTE)]
        made.explained = lambda: (kernels, notes)
        return made

    def _size(self, storage: int) -> int:
        return -(-max(self.facts.fresh_bytes[storage], 1) // ALIGNMENT) * ALIGNMENT

    def _add(self, call: _Call, part: _Part, first_number: int) -> None:
        """Append a record's steps; its outputs get their memory."""
        words, address_of, offsets = self.words, self.address_of, self.offsets
        start = len(words)
        words += part.words
        for storage in call.outputs:
            if storage not in address_of:
                offsets[storage] = self.places.take(self._size(storage))
        for place, own in part.storages:
            storage = call.storages[own] if own >= 0 else call.outputs[-1 - own]
            address = address_of.get(storage)
            if address is None:
                words[start + place] = ARENA_ADDRESS
                words[start + place + 1] += offsets[storage]
            else:
                words[start + place] = address
        if part.arena_bytes:
            offset = self.places.take(part.arena_bytes)
            for place in part.arena:
                words[start + place + 1] += offset
            self.places.give(offset, part.arena_bytes)
        views = call.views
        n_views = len(views)
        for place, number in part.numbers:
            if number >= n_views:
                words[start + place] = first_number + number - n_views
            elif views[number] >= 0:
                words[start + place] = views[number]
            else:  # a whole storage has no offset
                words[start + place : start + place + 2] = -1, 0
        records = {call.record}
        self.kernels += [(name, records, n_units) for name, n_units in part.kernels]
        self.n_statements += part.statements
