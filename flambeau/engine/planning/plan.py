"""Plans: from a segment's records to a program the native runner walks, without side effects.

Keeps     a plan depends on signatures, view slots and liveness, never on values, addresses,
          offsets or scalars; one that stores more than is alive is valid.
Touches   base, codegen, devices.cpu (kernels), fuse, states, statement.
Not here  the cache of plans and the run itself (run.py), recording (stream.py)."""

from __future__ import annotations

import math
from array import array
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base.dtypes import dtype, uint8
from flambeau.codegen.loops import Nest
from flambeau.devices.cpu import features, jit
from flambeau.engine.plan import Plan, SegmentFacts, number_packer
from flambeau.engine.planning.fuse import Instance, NativeCall, fuse
from flambeau.engine.planning.natives import NativeLaunches, launches_of, operands_of
from flambeau.engine.planning.states import LoopUnit
from flambeau.engine.signature import Signature
from flambeau.engine.statement import Loop, Native

ALIGNMENT: Final = 64
# Address table: the error word, the arena, the segment's inputs, then the fresh storages stored.
ERROR_ADDRESS: Final = 0
ARENA_ADDRESS: Final = 1
FIRST_STORAGE: Final = 2


class Arena:
    """Memory that storages share while a segment runs.

    kept       storages with memory of their own
    n_bytes    per storage
    lifetimes  storage -> [first unit, last unit] that touches it
    """

    __slots__ = ("kept", "lifetimes", "n_bytes")

    def __init__(self, kept: set[int], n_bytes: list[Any]) -> None:
        self.kept = kept
        self.n_bytes = n_bytes
        self.lifetimes: dict[int, list[int]] = {}

    def use(self, storage: int, unit: int) -> None:
        """Note that a unit touches a storage; units come in order."""
        if storage not in self.kept:
            found = self.lifetimes.get(storage)
            if found is None:
                self.lifetimes[storage] = [unit, unit]
            else:
                found[1] = unit

    def placed(self) -> tuple[dict[int, int], int]:
        """Offsets and total: first fit, largest first, lifetimes apart or places apart."""
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


class Planner:
    """References: touched views, fresh outputs, temporaries; storages: inputs, fresh ones,
    temporaries.

    meant    what to lower in place of a signature: itself, or its form with Sizes
    """

    def __init__(
        self, facts: SegmentFacts, meant: dict[Signature, Signature] | None = None
    ) -> None:
        self.facts = facts
        self.meant = meant
        self.n_touched = len(facts.touched)
        self.n_inputs = len(facts.input_bytes)
        self.n_storages = self.n_inputs + len(facts.fresh_bytes)
        self.storage_of = [self._storage(code >> 1) for code in facts.touched]
        self.storage_of += range(self.n_inputs, self.n_storages)
        self.itemsizes: list[int] = [1] * self.n_touched
        self.formats: list[str] = []
        # Everything that is there before or after the segment.
        kept = set(range(self.n_inputs)) | {self.n_inputs + n for n in facts.kept}
        self.arena = Arena(kept, [*facts.input_bytes, *facts.fresh_bytes])
        self.stored_numbers = tuple(sorted(facts.kept))
        self.address_of = {n: FIRST_STORAGE + n for n in range(self.n_inputs)}
        for position, number in enumerate(self.stored_numbers):
            self.address_of[self.n_inputs + number] = FIRST_STORAGE + self.n_inputs + position

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
        needed = set(self.arena.kept)
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
        lowered = (signature if self.meant is None else self.meant[signature]).lowered()
        for count, element in lowered.temporaries:
            references.append(self.new_temporary(count, element))
        for statement in reversed(lowered.statements):
            if statement.is_empty:
                continue
            if isinstance(statement, Native) and "wanted" in statement.attributes:
                read = [storage_of[references[r]] in needed for r in statement.results]
                if sum(read) == 1:
                    statement = statement.alone(read.index(True))
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

    def new_temporary(self, count: Any, element: dtype) -> int:
        """A slot of memory that lives within the segment."""
        n_bytes = self.arena.n_bytes
        self.storage_of.append(len(n_bytes))
        n_bytes.append(count * element.itemsize)
        return len(self.storage_of) - 1

    def offset_of(self, slot: int) -> tuple[int, int]:
        """Index among the numbers of a view's own offset, and bytes of an element."""
        return (slot, self.itemsizes[slot]) if slot < self.n_touched else (-1, 0)

    def use(self, steps: Sequence[Step], unit: int) -> None:
        """Note the memory that a unit's steps touch."""
        storage_of, arena = self.storage_of, self.arena
        for step in steps:
            for _, slot, _ in step.pointers:
                arena.use(storage_of[slot], unit)


class Step:
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
        words: Sequence[Any],
        pointers: list[tuple[int, int, Any]],
        numbers: list[tuple[int, int]],
        errors: Sequence[int],
        records: set[int],
    ) -> None:
        self.name: str = made.name
        self.n_units = made.n_units
        self.chunk_units = made.chunk_units
        self.scratch_bytes = made.scratch_bytes
        self.words = words
        self.pointers = pointers
        self.numbers = numbers
        self.errors = errors
        self.records = records


class Draft:
    """A plan but for the addresses of its kernels."""

    __slots__ = ("fused", "planner", "steps", "texts")

    def __init__(self, facts: SegmentFacts) -> None:
        self.planner = planner = Planner(facts)
        self.fused = fuse(planner.instantiate(), planner.storage_of)
        self.texts: dict[str, jit.Text] = {}
        self.steps: list[Step] = []
        for number, unit in enumerate(self.fused.units):
            if isinstance(unit, NativeCall):
                workspace = planner.new_temporary(0, uint8)
                launches = launches_of(unit.native)
                made = native_steps(unit, launches, workspace, planner)
                self.texts.update(launches.texts)
                for r in unit.native.results:
                    planner.arena.use(planner.storage_of[unit.references[r]], number)
            else:
                made = loop_steps(planner, unit, self.texts, self.fused.in_memory)
            planner.use(made, number)
            self.steps += made

    def written(self, addresses: dict[str, int]) -> Plan:
        """The plan, memory placed and the program written."""
        planner, steps = self.planner, self.steps
        words: list[Any] = [
            len(steps), max([len(step.words) for step in steps], default=0),
            max([step.scratch_bytes for step in steps], default=0), 0,
        ]  # fmt: skip
        in_arena: list[tuple[int, int]] = []
        for step in steps:
            write_step(words, in_arena, step, addresses[step.name], planner)
        offsets, arena_bytes = planner.arena.placed()
        for position, storage in in_arena:
            words[position] += offsets[storage]
        plan = Plan()
        describe(plan, planner)
        plan.arena_bytes = arena_bytes
        plan.n_kernels = len(steps)
        plan.statements = self.fused.n_statements
        kernels = [(step.name, step.records, step.n_units) for step in steps]
        notes = self.fused.refusals
        plan.explained = lambda: (kernels, notes)
        plan.program = array("q", words)
        return plan


def finish(begun: Sequence[Plan | Draft]) -> list[Plan]:
    """Plans of drafts, their kernels compiled together; what is a plan already stays as it is."""
    texts: dict[str, jit.Text] = {}
    for each in begun:
        if isinstance(each, Draft):
            texts.update(each.texts)
    addresses = compiled(texts)
    return [each.written(addresses) if isinstance(each, Draft) else each for each in begun]


def plan_segment(facts: SegmentFacts) -> Plan:
    """Plan a segment: instantiate, fuse, make kernels, place memory, write the program."""
    return finish([Draft(facts)])[0]


def describe(plan: Plan, planner: Planner) -> None:
    """What of a plan does not depend on sizes."""
    plan.stored_numbers = planner.stored_numbers
    plan.stored = sum([1 << 8 * number for number in planner.stored_numbers])
    plan.n_touched = planner.n_touched
    plan.number_format = "".join(planner.formats)
    plan.pack_numbers = number_packer(planner.n_touched, plan.number_format)


_KERNELS: dict[str, int] = {}
# Folders that decide what the text of a nest is.
_WRITERS: Final = ("codegen", "base")


def compiled(texts: dict[str, jit.Text]) -> dict[str, int]:
    """Addresses of all kernels, these included."""
    missing = {name: text for name, text in texts.items() if name not in _KERNELS}
    if missing:
        _KERNELS.update(jit.compile_functions(missing))
    return _KERNELS


def loop_steps(
    planner: Planner, unit: LoopUnit, texts: dict[str, jit.Text], in_memory: set[int]
) -> list[Step]:
    """Steps of loops that share a kernel."""
    kept = planner.arena.kept
    storages, slots, numbers = list(unit.storages), list(unit.slots), list(unit.numbers)
    is_stored = tuple(
        [storages[own] in kept or storages[own] in in_memory for own in unit.state.targets]
    )
    launches = unit.state.launched(is_stored)
    temporaries = [planner.new_temporary(*each) for each in launches.temporaries]
    steps = []
    for kernel in launches.kernels:
        name = kernel.name
        if name not in _KERNELS and name not in texts:
            texts[name] = jit.LateText(
                _text_maker(kernel.nest, features.vector_bits(), name), _WRITERS
            )
        pointers = [
            (position, slots[own] if own >= 0 else temporaries[-1 - own], n_bytes)
            for position, own, n_bytes in kernel.pointers
        ]
        taken = [(position, numbers[own]) for position, own in kernel.numbers]
        steps.append(Step(kernel, kernel.words, pointers, taken, kernel.errors, unit.records))
    return steps


def _text_maker(nest: Nest, bits: int, name: str) -> Callable[[], str]:
    def make() -> str:
        from flambeau.codegen import nest_text

        return nest_text.kernel_text(nest, bits, name, features.has_avx512())

    return make


def native_steps(
    call: NativeCall, launches: NativeLaunches, workspace: int, planner: Planner
) -> list[Step]:
    """Steps of a native statement; the bytes of its workspace become known."""
    planner.arena.n_bytes[planner.storage_of[workspace]] = launches.workspace_bytes
    slots = operands_of(call.native, call.references, workspace)
    steps = []
    for kernel in launches.kernels:
        pointers = [(position, slots[own], n_bytes) for position, own, n_bytes in kernel.pointers]
        steps.append(Step(kernel, kernel.words, pointers, [], kernel.errors, call.records))
    return steps


def write_step(
    words: list[Any],
    in_arena: list[tuple[int, int]],
    step: Step,
    address: int,
    planner: Planner,
) -> None:
    """Append a step's words; in_arena gets (position, storage) where an offset is to be added."""
    n_patches = len(step.pointers) + len(step.numbers) + len(step.errors)
    words += (
        address, step.n_units, step.chunk_units, len(step.words), n_patches, step.scratch_bytes
    )  # fmt: skip
    words += step.words
    storage_of = planner.storage_of
    # A patch: position, address index, static bytes, number index, scale.
    for position, slot, n_bytes in step.pointers:
        storage = storage_of[slot]
        place = planner.address_of.get(storage)
        if place is None:
            place = ARENA_ADDRESS
            in_arena.append((len(words) + 2, storage))
        words += (position, place, n_bytes, *planner.offset_of(slot))
    for position, number in step.numbers:
        words += (position, -1, 0, number, 1)
    for position in step.errors:
        words += (position, ERROR_ADDRESS, 0, -1, 0)
