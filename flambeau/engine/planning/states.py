"""States of groups, kept: what a row of statements led to once, it leads to again.

Keeps     slots, storages and numbers are named by first appearance in the group, so that a state
          says nothing of the segment it came from; equal rows of statements are one state. The
          states kept are bounded in number; dropping them loses nothing.
Touches   group, nest, statement, codegen.loops, config, devices.cpu.features.
Not here  which group a statement tries (fuse.py), addresses (plan.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.base.dtypes import dtype
from flambeau.codegen.loops import Nest, kernel_name
from flambeau.devices.cpu import features
from flambeau.engine.planning import emitter
from flambeau.engine.planning import nest as nests
from flambeau.engine.planning.alignment import Bound, GroupValue
from flambeau.engine.planning.group import Group
from flambeau.engine.planning.symbolic.sizes import Size
from flambeau.engine.statement import Loop, SizeNumber

MAX_STATES: Final = 20_000


class State:
    """A group after some statements.

    bound      the last of them, over the group's own slots and numbers; new_storages of its slots
    next       key of a statement -> state with it, or why it is refused
    group      the group itself, where no later state has taken it over
    targets    storage each statement writes
    memory     storages that the group reads from memory
    launches   (what is stored, switches) -> kernels
    """

    __slots__ = (
        "bound",
        "group",
        "launches",
        "memory",
        "new_storages",
        "next",
        "parent",
        "targets",
    )

    def __init__(
        self,
        parent: State | None,
        bound: Bound | None,
        new_storages: tuple[int, ...],
        group: Group,
    ) -> None:
        self.parent = parent
        self.bound = bound
        self.new_storages = new_storages
        self.group: Group | None = group
        self.next: dict[tuple[Any, ...], State | str] = {}
        self.launches: dict[tuple[Any, ...], Launches] = {}
        self.targets = tuple([value.storage for value in group.values])
        self.memory = tuple(group.touched)

    def taken_group(self) -> Group:
        """The group in this state, built again where another state has it now. It is the caller's
        alone: what interrupts the caller, and what is raised there, leaves none half-made."""
        group, self.group = self.group, None
        if group is None:
            row: list[State] = []
            state: State | None = self
            while state is not None and state.bound is not None:
                row.append(state)
                state = state.parent
            group = Group([])
            for each in reversed(row):
                group.storage_of.extend(each.new_storages)
                if each.bound is None or not group.join(each.bound):
                    raise RuntimeError(f"a group cannot be built again: {group.refusal}")
        return group

    def extended(
        self, key: tuple[Any, ...], bound: Bound, new_storages: tuple[int, ...]
    ) -> State | str:
        """The state after one more statement, or why it is refused; kept under its key."""
        group = self.taken_group()
        known = len(group.storage_of)
        group.storage_of.extend(new_storages)
        outcome: State | str
        if group.join(bound):
            outcome = State(self, bound, new_storages, group)
        else:
            del group.storage_of[known:]
            outcome = group.refusal
            if self.bound is not None:  # a group's first statement leaves its mark even if refused
                self.group = group
        _count()
        self.next[key] = outcome
        return outcome

    def launched(self, is_stored: tuple[bool, ...]) -> Launches:
        """The kernels that do the group's work when these statements' results are stored."""
        bits = features.vector_bits()
        key = (is_stored, bits, CONFIG.codegen_level)
        made = self.launches.get(key)
        if made is None:
            group = self.taken_group()
            made = self.launches[key] = Launches(group, is_stored, bits)
            self.group = group
        return made


def fresh_root() -> State:
    """A state of no statements that shares nothing with what is kept."""
    return State(None, None, (), Group([]))


_ROOT: State = fresh_root()
_kept = [0]


def _count() -> None:
    _kept[0] += 1
    if _kept[0] > MAX_STATES:
        forget()


def forget() -> None:
    """Drop all states; groups at work keep theirs."""
    global _ROOT
    _ROOT = fresh_root()
    _kept[0] = 0


class Launch:
    """A kernel of a group and what its words are.

    words     static words, 0 where a patch follows
    pointers  (position, slot or -1 - temporary, bytes)
    numbers   (position, number of the group)
    errors    positions of the error word's address
    """

    __slots__ = (
        "chunk_units", "errors", "n_units", "name", "nest", "numbers", "pointers", "scratch_bytes",
        "words",
    )  # fmt: skip

    def __init__(self, kernel: emitter.Kernel, name: str, n_slots: int) -> None:
        self.name = name
        self.nest = kernel.nest
        self.n_units = kernel.n_units
        self.chunk_units = kernel.chunk_units
        self.scratch_bytes = kernel.scratch_bytes
        self.words: list[Any] = []
        self.pointers: list[tuple[int, int, int]] = []
        self.numbers: list[tuple[int, int]] = []
        self.errors: list[int] = []
        for position, word in enumerate(kernel.words):
            if isinstance(word, (int, Size)):
                self.words.append(word)
                continue
            self.words.append(0)
            if isinstance(word, emitter.Pointer):
                slot = word.slot if word.slot < n_slots else n_slots - 1 - word.slot
                self.pointers.append((position, slot, word.offset_bytes))
            elif isinstance(word, emitter.Number):
                self.numbers.append((position, word.index))
            else:
                self.errors.append(position)


class Launches:
    """Kernels of a group in order, and the temporaries (elements, dtype) between them."""

    __slots__ = ("kernels", "temporaries")

    def __init__(self, group: Group, is_stored: tuple[bool, ...], bits: int) -> None:
        self.temporaries: list[tuple[int, dtype]] = []
        n_slots = len(group.storage_of)
        stored = {id(v) for v, flag in zip(group.values, is_stored, strict=True) if flag}

        def new_temporary(count: int, element: dtype) -> int:
            self.temporaries.append((count, element))
            return n_slots + len(self.temporaries) - 1

        def is_in_memory(value: GroupValue) -> bool:
            return id(value) in stored

        self.kernels = [
            Launch(kernel, name_of(kernel.nest, bits), n_slots)
            for kernel in nests.kernels_of(group, is_in_memory, new_temporary)
            if kernel.n_units and _stores(kernel.nest)
        ]


def _stores(nest: Nest) -> bool:
    return any(
        phase.row or any(hasattr(statement, "access") for statement in phase.loop)
        for phase in nest.phases
    )


_NAMES: dict[str, str] = {}


def name_of(nest: Nest, bits: int) -> str:
    """Name of a nest's kernel."""
    # The level is part of the key, so that changing it compiles anew.
    lookup = f"{bits} {CONFIG.codegen_level} {nest.key}"
    name = _NAMES.get(lookup)
    if name is None:
        name = _NAMES[lookup] = kernel_name(nest, bits)
    return name


class LoopUnit:
    """Loops that share a kernel, in one segment.

    slots, storages, numbers   the segment's -> the group's, in order of appearance
    records   of the statements
    """

    __slots__ = ("number", "numbers", "records", "slots", "state", "storages")

    def __init__(self, number: int, root: State | None = None) -> None:
        self.number = number
        self.state = _ROOT if root is None else root
        self.slots: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.records: set[int] = set()

    def join(
        self,
        loop: Loop,
        references: list[int],
        first_number: int,
        storage_of: Sequence[int],
        record: int,
    ) -> str:
        """Take a statement in, or say why not."""
        slots, storages, numbers = self.slots, self.storages, self.numbers
        n_slots, n_storages, n_numbers = len(slots), len(storages), len(numbers)
        key: list[Any] = [loop]
        new_storages: list[int] = []
        for reference in loop.sources + loop.results:
            slot = references[reference]
            own = slots.get(slot)
            if own is None:
                own = slots[slot] = len(slots)
                storage = storage_of[slot]
                place = storages.get(storage)
                if place is None:
                    place = storages[storage] = len(storages)
                new_storages.append(place)
            key.append(own)
        if new_storages:
            key += new_storages
        for number in loop.numbers:
            if isinstance(number, SizeNumber):
                continue
            number += first_number
            found = numbers.get(number)
            if found is None:
                found = numbers[number] = len(numbers)
            key.append(found)
        state = self.state
        whole = tuple(key)
        outcome = state.next.get(whole)
        if outcome is None:
            outcome = state.extended(whole, _bound(loop, whole, new_storages), tuple(new_storages))
        if isinstance(outcome, State):
            self.state = outcome
            self.records.add(record)
            return ""
        _shrink(slots, n_slots)
        _shrink(storages, n_storages)
        _shrink(numbers, n_numbers)
        return outcome

    def memory(self) -> list[int]:
        """Storages that it reads from memory."""
        storages = list(self.storages)
        return [storages[own] for own in self.state.memory]


def _bound(loop: Loop, key: tuple[Any, ...], new_storages: list[int]) -> Bound:
    n_sources = len(loop.sources)
    named = iter(key[2 + n_sources + len(new_storages) :])
    numbers = tuple([n if isinstance(n, SizeNumber) else next(named) for n in loop.numbers])
    return Bound(loop, key[1 : 1 + n_sources], key[1 + n_sources], numbers)


def _shrink(names: dict[int, int], count: int) -> None:
    while len(names) > count:
        names.popitem()
