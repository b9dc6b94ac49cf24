"""Plans: from a segment's records to a program the native runner walks, without side effects.

Keeps     a plan depends on signatures, view slots and liveness, never on values, addresses,
          offsets or scalars; one that stores more than is alive is valid.
Touches   base, codegen, devices.cpu (kernels), lower, fuse, nest, statement.
Not here  the cache of plans and the run itself (run.py), recording (stream.py)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.config import CONFIG
from flambeau.base.dtypes import dtype, uint8
from flambeau.codegen import nest_text
from flambeau.devices.cpu import features, jit
from flambeau.devices.cpu.steps import At
from flambeau.engine import nest as nests
from flambeau.engine.fuse import Fused, NativeCall, fuse
from flambeau.engine.group import GroupValue
from flambeau.engine.signature import Signature
from flambeau.engine.statement import Loop, SizeNumber, Statement

if TYPE_CHECKING:
    Words = array[int]

ALIGNMENT: Final = 64
# Address table: the error word, the arena, the segment's inputs, then the fresh storages stored.
ERROR_ADDRESS: Final = 0
ARENA_ADDRESS: Final = 1
FIRST_STORAGE: Final = 2


class Plan:
    """A segment ready to run.

    stored, stored_numbers   fresh storages that the program leaves in memory of their own: byte n
                  of the mask is 1 for number n
    program       words of the runner's program
    arena_bytes   memory for values that live within the segment
    n_touched     view offsets that come first among the numbers
    pack_numbers  packs view offsets, then the records' numbers
    notes         what did not fuse and why, for debug.explain
    """

    __slots__ = (
        "arena_bytes", "kernels", "n_kernels", "n_touched", "notes", "pack_numbers", "program",
        "runs", "statements", "stored", "stored_numbers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.stored = 0
        self.stored_numbers: tuple[int, ...] = ()
        self.program: Words = array("q")
        self.arena_bytes = 0
        self.n_touched = 0
        self.pack_numbers: Any = None
        self.n_kernels = 0
        self.statements = 0
        self.runs = 0
        self.kernels: list[tuple[str, set[int], int]] = []
        self.notes: list[tuple[int, str]] = []


class SegmentFacts:
    """What planning may know of a segment.

    keys         per record: (signature, slots of operands ..., slots of fresh outputs ...)
    touched      as Segment.touched
    input_bytes, fresh_bytes   per storage
    kept         fresh storages visible after the segment
    """

    __slots__ = ("fresh_bytes", "input_bytes", "kept", "keys", "touched")

    def __init__(
        self,
        keys: Sequence[tuple[Any, ...]],
        touched: Sequence[int],
        input_bytes: Sequence[int],
        fresh_bytes: Sequence[int],
        kept: set[int],
    ) -> None:
        self.keys = keys
        self.touched = touched
        self.input_bytes = input_bytes
        self.fresh_bytes = fresh_bytes
        self.kept = kept


class _Planner:
    """References: touched views, fresh outputs, temporaries; storages: inputs, fresh, temporaries."""

    def __init__(self, facts: SegmentFacts) -> None:
        self.facts = facts
        self.n_touched = len(facts.touched)
        self.n_inputs = len(facts.input_bytes)
        self.n_fresh = len(facts.fresh_bytes)
        self.n_storages = self.n_inputs + self.n_fresh
        self.storage_of = [self._storage(code >> 1) for code in facts.touched]
        self.storage_of += range(self.n_inputs, self.n_storages)
        self.temporary_bytes: list[int] = []
        self.itemsizes: list[int] = [1] * len(self.storage_of)
        self.formats: list[str] = []
        self.statements: list[tuple[int, Statement]] = []
        # Everything that is there before or after the segment.
        self.kept = set(range(self.n_inputs)) | {self.n_inputs + n for n in facts.kept}
        self.stored_numbers = tuple(sorted(facts.kept))
        self.address_of = {n: FIRST_STORAGE + n for n in range(self.n_inputs)}
        for position, number in enumerate(self.stored_numbers):
            self.address_of[self.n_inputs + number] = FIRST_STORAGE + self.n_inputs + position
        # storage -> (first step, last step) of those that live in the arena
        self.lifetimes: dict[int, tuple[int, int]] = {}

    def _storage(self, code: int) -> int:
        return -1 - code if code < 0 else self.n_inputs + code

    def _reference(self, slot: int) -> int:
        return -1 - slot if slot < 0 else self.n_touched + slot

    # Instantiating -----------------------------------------------------------

    def instantiate(self) -> None:
        """Statements of all records over view slots, temporaries and run-time numbers."""
        first_number = self.n_touched
        for record, key in enumerate(self.facts.keys):
            signature: Signature = key[0]
            references = [self._reference(slot) for slot in key[1:]]
            for slot, layout in zip(references, signature.all_layouts, strict=True):
                self.itemsizes[slot] = layout.itemsize
            lowered = signature.lowered()
            for count, element in lowered.temporaries:
                references.append(self.new_temporary(count, element))
            for statement in lowered.statements:
                made = _with_references(statement, references, first_number)
                self.statements.append((record, made))
            self.formats.append(signature.number_format)
            first_number += len(signature.number_format)

    def new_temporary(self, count: int, element: dtype) -> int:
        """A slot of memory that lives within the segment."""
        storage = self.n_storages + len(self.temporary_bytes)
        self.temporary_bytes.append(count * element.itemsize)
        self.storage_of.append(storage)
        self.itemsizes.append(element.itemsize)
        return len(self.storage_of) - 1

    # Memory ------------------------------------------------------------------

    def bytes_of(self, storage: int) -> int:
        """Size of a storage or temporary."""
        if storage >= self.n_storages:
            return self.temporary_bytes[storage - self.n_storages]
        if storage >= self.n_inputs:
            return self.facts.fresh_bytes[storage - self.n_inputs]
        return self.facts.input_bytes[storage]

    def in_arena(self, storage: int) -> bool:
        """Whether it needs memory only while the segment runs."""
        return storage not in self.kept

    def use(self, storage: int, step: int) -> None:
        """Note that a step touches a storage."""
        if self.in_arena(storage):
            first, last = self.lifetimes.get(storage, (step, step))
            self.lifetimes[storage] = (min(first, step), max(last, step))

    def place_arena(self) -> tuple[dict[int, int], int]:
        """Offsets in the arena: first fit, largest first, lifetimes apart or places apart."""
        placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last
        offsets: dict[int, int] = {}
        total = 0
        items = sorted(self.lifetimes.items(), key=lambda item: -self.bytes_of(item[0]))
        for storage, (first, last) in items:
            size = -(-max(self.bytes_of(storage), 1) // ALIGNMENT) * ALIGNMENT
            offset = 0
            for low, high, begin, end in sorted(placed):
                if begin <= last and first <= end:
                    if low - offset >= size:
                        break
                    offset = max(offset, high)
            offsets[storage] = offset
            placed.append((offset, offset + size, first, last))
            total = max(total, offset + size)
        return offsets, total


def _with_references(statement: Statement, references: list[int], first_number: int) -> Statement:
    if isinstance(statement, Loop):
        return Loop(
            statement.domain,
            tuple([place.at(references[place.reference]) for place in statement.reads]),
            tuple([n if isinstance(n, SizeNumber) else n + first_number for n in statement.numbers]),
            statement.expression,
            statement.write.at(references[statement.write.reference]),
            statement.reduction,
            statement.n_outer,
            statement.n_reduced,
            statement.is_columns,
        )
    return type(statement)(
        statement.maker,
        tuple([memory.at(references[memory.reference]) for memory in statement.reads]),
        tuple([memory.at(references[memory.reference]) for memory in statement.writes]),
        statement.attributes,
    )


class _Step:
    """A step of the program before memory is placed."""

    __slots__ = ("arguments", "chunk_units", "key", "n_units", "records", "scratch_bytes")

    def __init__(
        self,
        key: str,
        n_units: int,
        chunk_units: int,
        arguments: list[Any],
        scratch_bytes: int,
        records: set[int],
    ) -> None:
        self.key = key
        self.n_units = n_units
        self.chunk_units = chunk_units
        self.arguments = arguments
        self.scratch_bytes = scratch_bytes
        self.records = records


def plan_segment(facts: SegmentFacts) -> Plan:
    """Plan a segment: instantiate, fuse, make kernels, place memory, write the program."""
    planner = _Planner(facts)
    planner.instantiate()
    fused = fuse(planner.statements, planner.storage_of, planner.kept)
    texts: dict[str, str] = {}
    steps = _steps(planner, fused, texts)
    addresses = _compiled(texts)
    offsets, arena_bytes = planner.place_arena()
    plan = Plan()
    plan.stored_numbers = planner.stored_numbers
    plan.stored = sum(1 << 8 * number for number in facts.kept)
    plan.arena_bytes = arena_bytes
    plan.n_touched = planner.n_touched
    plan.pack_numbers = struct.Struct("=" + "q" * planner.n_touched + "".join(planner.formats)).pack
    plan.n_kernels = len(steps)
    plan.statements = fused.n_statements
    plan.notes = fused.refusals
    plan.kernels = [(step.key, step.records, step.n_units) for step in steps]
    plan.program = _program(planner, steps, addresses, offsets)
    return plan


_KERNELS: dict[str, int] = {}
_NAMES: dict[str, str] = {}


def _compiled(texts: dict[str, str]) -> dict[str, int]:
    missing = {name: text for name, text in texts.items() if name not in _KERNELS}
    if missing:
        _KERNELS.update(jit.compile_functions(missing))
    return _KERNELS


def _steps(planner: _Planner, fused: Fused, texts: dict[str, str]) -> list[_Step]:
    kept = planner.kept

    def is_stored(value: GroupValue) -> bool:
        return value.storage in kept or value.storage in fused.in_memory

    bits = CONFIG.vector_bits or features.vector_bits()
    steps: list[_Step] = []
    for unit in fused.units:
        if isinstance(unit, NativeCall):
            _native_steps(planner, unit, steps, texts)
            continue
        for kernel in nests.kernels_of(unit, is_stored, planner.new_temporary):
            if not kernel.n_units or not _stores(kernel.nest):
                continue
            # The level is part of the name, so that changing it compiles anew.
            lookup = f"{bits} {CONFIG.codegen_level} {kernel.nest.key}"
            name = _NAMES.get(lookup)
            if name is None:
                name = _NAMES[lookup] = nest_text.kernel_name(kernel.nest, bits)
            if name not in _KERNELS and name not in texts:
                texts[name] = nest_text.kernel_text(kernel.nest, bits, name)
            number = len(steps)
            for word in kernel.words:
                if isinstance(word, nests.Pointer):
                    planner.use(planner.storage_of[word.slot], number)
            steps.append(
                _Step(
                    name, kernel.n_units, kernel.chunk_units, list(kernel.words),
                    kernel.scratch_bytes, kernel.records,
                )
            )  # fmt: skip
    return steps


def _stores(nest: Any) -> bool:
    return any(
        phase.row or any(hasattr(statement, "access") for statement in phase.loop)
        for phase in nest.phases
    )


def _native_steps(
    planner: _Planner, call: NativeCall, steps: list[_Step], texts: dict[str, str]
) -> None:
    native = call.native
    made = native.maker(native.reads, native.writes, **native.attributes)
    workspace = -1
    if made.workspace_bytes:
        workspace = planner.new_temporary(made.workspace_bytes, uint8)
    for step in made.steps:
        if not step.n_units:
            continue
        number = len(steps)
        words: list[Any] = []
        for word in step.arguments:
            if not isinstance(word, At):
                words.append(word)
            elif word.what == "error":
                words.append(nests.ErrorWord())
            elif word.what == "workspace":
                planner.use(planner.storage_of[workspace], number)
                words.append(nests.Pointer(workspace, word.n_bytes))
            else:
                memory = (native.reads if word.what == "read" else native.writes)[word.number]
                planner.use(planner.storage_of[memory.reference], number)
                n_bytes = memory.offset * memory.dtype.itemsize + word.n_bytes
                words.append(nests.Pointer(memory.reference, n_bytes))
        if step.name not in _KERNELS:
            texts[step.name] = step.text
        steps.append(
            _Step(
                step.name, step.n_units, step.chunk_units, words, step.scratch_bytes, call.records
            )
        )
    # A write no step touched still has to outlive the call.
    for memory in native.writes:
        planner.use(planner.storage_of[memory.reference], max(len(steps) - 1, 0))


def _program(
    planner: _Planner, steps: list[_Step], addresses: dict[str, int], offsets: dict[int, int]
) -> Words:
    words = array("q")
    max_arguments = max((len(step.arguments) for step in steps), default=0)
    scratch_bytes = max((step.scratch_bytes for step in steps), default=0)
    words.extend([len(steps), max_arguments, scratch_bytes, 0])
    for step in steps:
        statics: list[int] = []
        patches: list[int] = []
        for position, word in enumerate(step.arguments):
            if isinstance(word, int):
                statics.append(word)
                continue
            statics.append(0)
            patches.extend([position, *_patch(planner, word, offsets)])
        words.extend(
            [
                addresses[step.key], step.n_units, step.chunk_units, len(statics),
                len(patches) // 5, step.scratch_bytes,
            ]
        )  # fmt: skip
        words.extend(statics)
        words.extend(patches)
    return words


def _patch(planner: _Planner, word: Any, offsets: dict[int, int]) -> tuple[int, int, int, int]:
    """(address index, static bytes, number index, scale) of a bound word."""
    if isinstance(word, nests.Number):
        return (-1, 0, word.index, 1)
    if isinstance(word, nests.ErrorWord):
        return (ERROR_ADDRESS, 0, -1, 0)
    slot = word.slot
    storage = planner.storage_of[slot]
    number, scale = (slot, planner.itemsizes[slot]) if slot < planner.n_touched else (-1, 0)
    if planner.in_arena(storage):
        return (ARENA_ADDRESS, offsets[storage] + word.offset_bytes, number, scale)
    return (planner.address_of[storage], word.offset_bytes, number, scale)

