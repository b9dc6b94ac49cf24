"""Plans: from a segment's records to a program the native runner walks, without side effects.

Keeps     a plan depends on signatures, view slots and liveness, never on values, addresses,
          offsets or scalars; one that stores more than is alive is valid.
Touches   base, codegen, devices.cpu (kernels), fuse, states, statement.
Not here  the cache of plans and the run itself (run.py), recording (stream.py)."""

from __future__ import annotations

import math
import struct
from array import array
from bisect import insort
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.config import CONFIG
from flambeau.base.dtypes import dtype, uint8
from flambeau.codegen.loops import Nest
from flambeau.devices.cpu import features, jit
from flambeau.devices.cpu.steps import At
from flambeau.engine.fuse import Fused, Instance, NativeCall, fuse
from flambeau.engine.signature import Signature
from flambeau.engine.statement import Loop, Native
from flambeau.engine.states import LoopUnit

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
    """References: touched views, fresh outputs, temporaries; storages: inputs, fresh ones,
    temporaries."""

    def __init__(self, facts: SegmentFacts) -> None:
        self.facts = facts
        self.n_touched = len(facts.touched)
        self.n_inputs = len(facts.input_bytes)
        self.n_fresh = len(facts.fresh_bytes)
        self.n_storages = self.n_inputs + self.n_fresh
        self.storage_of = [self._storage(code >> 1) for code in facts.touched]
        self.storage_of += range(self.n_inputs, self.n_storages)
        # Bytes of inputs, fresh storages, temporaries.
        self.n_bytes: list[int] = [*facts.input_bytes, *facts.fresh_bytes]
        self.itemsizes: list[int] = [1] * self.n_touched
        self.formats: list[str] = []
        # Everything that is there before or after the segment.
        self.kept = set(range(self.n_inputs)) | {self.n_inputs + n for n in facts.kept}
        self.stored_numbers = tuple(sorted(facts.kept))
        self.address_of = {n: FIRST_STORAGE + n for n in range(self.n_inputs)}
        for position, number in enumerate(self.stored_numbers):
            self.address_of[self.n_inputs + number] = FIRST_STORAGE + self.n_inputs + position
        # storage -> [first step, last step] of those that live in the arena
        self.lifetimes: dict[int, list[int]] = {}

    def _storage(self, code: int) -> int:
        return -1 - code if code < 0 else self.n_inputs + code

    # Instantiating -----------------------------------------------------------

    def instantiate(self) -> list[Instance]:
        """Statements whose results somebody may see, in order."""
        numbers = [self.n_touched]
        for key in self.facts.keys:
            letters = key[0].number_format
            if letters:
                self.formats.append(letters)
            numbers.append(numbers[-1] + len(letters))
        needed = set(self.kept)
        live: list[Instance] = []
        for record in range(len(self.facts.keys) - 1, -1, -1):
            key = self.facts.keys[record]
            signature: Signature = key[0]
            if self._is_needed(key, signature, needed):
                self._instantiate(record, key, signature, numbers[record], needed, live)
        live.reverse()
        return live

    def _is_needed(self, key: tuple[Any, ...], signature: Signature, needed: set[int]) -> bool:
        """Whether the record writes what somebody may see; one that does not is not lowered."""
        n_inputs, storage_of, n_touched = self.n_inputs, self.storage_of, self.n_touched
        for slot in key[1 + len(signature.layouts) :]:
            if n_inputs + slot in needed:
                return True
        for position in signature.targets:
            slot = key[1 + position]
            if storage_of[-1 - slot if slot < 0 else n_touched + slot] in needed:
                return True
        return False

    def _instantiate(
        self,
        record: int,
        key: tuple[Any, ...],
        signature: Signature,
        first_number: int,
        needed: set[int],
        live: list[Instance],
    ) -> None:
        n_touched, storage_of = self.n_touched, self.storage_of
        references = [-1 - slot if slot < 0 else n_touched + slot for slot in key[1:]]
        for slot, layout in zip(references, signature.layouts, strict=False):
            if slot < n_touched:
                self.itemsizes[slot] = layout.itemsize
        lowered = signature.lowered()
        for count, element in lowered.temporaries:
            references.append(self.new_temporary(count, element))
        for statement in reversed(lowered.statements):
            if statement.is_empty:
                continue
            for r in statement.results:
                if storage_of[references[r]] in needed:
                    for source in statement.sources:
                        needed.add(storage_of[references[source]])
                    if isinstance(statement, Loop) and statement.overlaps(references, storage_of):
                        # Read first, then write: through memory between the two.
                        count = math.prod(statement.kept)
                        slot = self.new_temporary(count, statement.write.dtype)
                        first, second = statement.apart(len(references))
                        own = [*references, slot]
                        live.append(Instance(second, record, own, first_number))
                        live.append(Instance(first, record, own, first_number))
                    else:
                        live.append(Instance(statement, record, references, first_number))
                    break

    def new_temporary(self, count: int, element: dtype) -> int:
        """A slot of memory that lives within the segment."""
        self.storage_of.append(len(self.n_bytes))
        self.n_bytes.append(count * element.itemsize)
        return len(self.storage_of) - 1

    # Memory ------------------------------------------------------------------

    def use(self, storage: int, step: int) -> None:
        """Note that a step touches a storage; steps come in order."""
        if storage not in self.kept:
            found = self.lifetimes.get(storage)
            if found is None:
                self.lifetimes[storage] = [step, step]
            else:
                found[1] = step

    def place_arena(self) -> tuple[dict[int, int], int]:
        """Offsets in the arena: first fit, largest first, lifetimes apart or places apart."""
        placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last; in order
        offsets: dict[int, int] = {}
        total = 0
        n_bytes = self.n_bytes
        for storage in sorted(self.lifetimes, key=lambda each: -n_bytes[each]):
            first, last = self.lifetimes[storage]
            size = -(-max(n_bytes[storage], 1) // ALIGNMENT) * ALIGNMENT
            offset = 0
            for low, high, begin, end in placed:
                if begin <= last and first <= end:
                    if low - offset >= size:
                        break
                    if high > offset:
                        offset = high
            offsets[storage] = offset
            insort(placed, (offset, offset + size, first, last))
            if offset + size > total:
                total = offset + size
        return offsets, total


class _Step:
    """A step of the program before memory is placed.

    pointers   (position among the arguments, slot, bytes)
    numbers    (position, the segment's number)
    errors     positions of the error word's address
    """

    __slots__ = (
        "chunk_units", "errors", "n_units", "name", "numbers", "pointers", "records",
        "scratch_bytes", "words",
    )  # fmt: skip

    def __init__(
        self,
        made: Any,
        words: Sequence[int],
        pointers: list[tuple[int, int, int]],
        numbers: list[tuple[int, int]],
        errors: Sequence[int],
        records: set[int],
    ) -> None:
        self.name: str = made.name
        self.n_units: int = made.n_units
        self.chunk_units: int = made.chunk_units
        self.scratch_bytes: int = made.scratch_bytes
        self.words = words
        self.pointers = pointers
        self.numbers = numbers
        self.errors = errors
        self.records = records


def plan_segment(facts: SegmentFacts) -> Plan:
    """Plan a segment: instantiate, fuse, make kernels, place memory, write the program."""
    planner = _Planner(facts)
    fused = fuse(planner.instantiate(), planner.storage_of)
    texts: dict[str, jit.Text] = {}
    steps = _steps(planner, fused, texts)
    addresses = _compiled(texts)
    offsets, arena_bytes = planner.place_arena()
    plan = Plan()
    plan.stored_numbers = planner.stored_numbers
    plan.stored = sum([1 << 8 * number for number in facts.kept])
    plan.arena_bytes = arena_bytes
    plan.n_touched = planner.n_touched
    plan.pack_numbers = struct.Struct("=" + "q" * planner.n_touched + "".join(planner.formats)).pack
    plan.n_kernels = len(steps)
    plan.statements = fused.n_statements
    plan.notes = fused.refusals
    plan.kernels = [(step.name, step.records, step.n_units) for step in steps]
    plan.program = _program(planner, steps, addresses, offsets)
    return plan


_KERNELS: dict[str, int] = {}
# Folders that decide what the text of a nest is.
_WRITERS: Final = ("codegen", "base")


def _compiled(texts: dict[str, jit.Text]) -> dict[str, int]:
    missing = {name: text for name, text in texts.items() if name not in _KERNELS}
    if missing:
        _KERNELS.update(jit.compile_functions(missing))
    return _KERNELS


def _steps(planner: _Planner, fused: Fused, texts: dict[str, jit.Text]) -> list[_Step]:
    bits = CONFIG.vector_bits or features.vector_bits()
    steps: list[_Step] = []
    for unit in fused.units:
        if isinstance(unit, NativeCall):
            _native_steps(planner, unit, steps, texts, bits)
        else:
            _loop_steps(planner, unit, steps, texts, fused.in_memory, bits)
    return steps


def _loop_steps(
    planner: _Planner,
    unit: LoopUnit,
    steps: list[_Step],
    texts: dict[str, jit.Text],
    in_memory: set[int],
    bits: int,
) -> None:
    kept, storage_of = planner.kept, planner.storage_of
    storages, slots, numbers = list(unit.storages), list(unit.slots), list(unit.numbers)
    is_stored = tuple(
        [storages[own] in kept or storages[own] in in_memory for own in unit.state.targets]
    )
    launches = unit.state.launched(is_stored)
    temporaries = [planner.new_temporary(*each) for each in launches.temporaries]
    for kernel in launches.kernels:
        name = kernel.name
        if name not in _KERNELS and name not in texts:
            texts[name] = jit.LateText(_text_maker(kernel.nest, bits, name), _WRITERS)
        number = len(steps)
        pointers = []
        for position, own, n_bytes in kernel.pointers:
            slot = slots[own] if own >= 0 else temporaries[-1 - own]
            planner.use(storage_of[slot], number)
            pointers.append((position, slot, n_bytes))
        steps.append(
            _Step(
                kernel, kernel.words, pointers,
                [(position, numbers[own]) for position, own in kernel.numbers],
                kernel.errors, unit.records,
            )
        )  # fmt: skip


def _text_maker(nest: Nest, bits: int, name: str) -> Callable[[], str]:
    def make() -> str:
        from flambeau.codegen import nest_text

        return nest_text.kernel_text(nest, bits, name)

    return make


def _made(native: Native, bits: int) -> Any:
    """What a native statement's maker says, asked once under the same switches."""
    switches = (bits, CONFIG.threads, CONFIG.codegen_level)
    made = native.made.get(switches)
    if made is None:
        made = native.maker(native.reads, native.writes, **native.attributes)
        native.made[switches] = made
    return made


def _native_steps(
    planner: _Planner,
    call: NativeCall,
    steps: list[_Step],
    texts: dict[str, jit.Text],
    bits: int,
) -> None:
    native, references = call.native, call.references
    storage_of = planner.storage_of
    made = _made(native, bits)
    workspace = -1
    if made.workspace_bytes:
        workspace = planner.new_temporary(made.workspace_bytes, uint8)
    for step in made.steps:
        if not step.n_units:
            continue
        number = len(steps)
        words: list[int] = []
        pointers: list[tuple[int, int, int]] = []
        errors: list[int] = []
        for position, word in enumerate(step.arguments):
            if not isinstance(word, At):
                words.append(word)
                continue
            words.append(0)
            if word.what == "error":
                errors.append(position)
                continue
            if word.what == "workspace":
                slot, n_bytes = workspace, word.n_bytes
            else:
                memory = (native.reads if word.what == "read" else native.writes)[word.number]
                slot = references[memory.reference]
                n_bytes = memory.offset * memory.dtype.itemsize + word.n_bytes
            planner.use(storage_of[slot], number)
            pointers.append((position, slot, n_bytes))
        if step.name not in _KERNELS:
            texts[step.name] = step.text
        steps.append(_Step(step, words, pointers, [], errors, call.records))
    # A write no step touched still has to outlive the call.
    for r in native.results:
        planner.use(storage_of[references[r]], max(len(steps) - 1, 0))


def _program(
    planner: _Planner, steps: list[_Step], addresses: dict[str, int], offsets: dict[int, int]
) -> Words:
    max_arguments = max([len(step.words) for step in steps], default=0)
    scratch_bytes = max([step.scratch_bytes for step in steps], default=0)
    words: list[int] = [len(steps), max_arguments, scratch_bytes, 0]
    storage_of, n_touched = planner.storage_of, planner.n_touched
    address_of, itemsizes = planner.address_of, planner.itemsizes
    for step in steps:
        n_patches = len(step.pointers) + len(step.numbers) + len(step.errors)
        words += (
            addresses[step.name], step.n_units, step.chunk_units, len(step.words), n_patches,
            step.scratch_bytes,
        )  # fmt: skip
        words += step.words
        # A patch: position, address index, static bytes, number index, scale.
        for position, slot, n_bytes in step.pointers:
            storage = storage_of[slot]
            address = address_of.get(storage)
            if address is None:
                address = ARENA_ADDRESS
                n_bytes += offsets[storage]
            if slot < n_touched:
                words += (position, address, n_bytes, slot, itemsizes[slot])
            else:
                words += (position, address, n_bytes, -1, 0)
        for position, number in step.numbers:
            words += (position, -1, 0, number, 1)
        for position in step.errors:
            words += (position, ERROR_ADDRESS, 0, -1, 0)
    return array("q", words)
