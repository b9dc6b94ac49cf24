"""Fusion: which statements share a kernel. Greedy, in program order, no search.

Keeps     a statement's group is never before one it depends on (reads after writes, writes after
          reads, writes after writes, storage by storage); what nobody reads is not computed.
Touches   statement, states.
Not here  what may share a loop and why not (group.py), kernels and memory (nest.py, plan.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from flambeau.engine.planning.states import LoopUnit, State
from flambeau.engine.statement import Loop, Native, Statement

# Groups tried for a statement, from its producer on and from the newest back, those that touch
# what it reads before others.
CANDIDATES: Final = 6
# Unrelated statements share a kernel only where a launch costs more than their work.
SMALL_DOMAIN: Final = 16384


class Instance:
    """A statement in a segment.

    references    slot of each of its signature's references
    first_number  of its record, among the segment's numbers
    """

    __slots__ = ("first_number", "record", "references", "statement")

    def __init__(
        self, statement: Statement, record: int, references: list[int], first_number: int
    ) -> None:
        self.statement = statement
        self.record = record
        self.references = references
        self.first_number = first_number


class NativeCall:
    """A native statement on its own in the order of groups."""

    __slots__ = ("native", "number", "records", "references")

    def __init__(self, number: int, instance: Instance, native: Native) -> None:
        self.number = number
        self.native = native
        self.references = instance.references
        self.records = {instance.record}


Unit = LoopUnit | NativeCall


class Fused:
    """Outcome: units in order, storages that must be in memory, and why statements parted."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.in_memory: set[int] = set()
        self.refusals: list[tuple[int, str]] = []
        self.n_statements = 0


class _Fuser:
    def __init__(self, storage_of: Sequence[int], root: State | None) -> None:
        self.storage_of = storage_of
        self.root = root
        self.fused = Fused()
        # Units that go before all others, and are ahead of no statement in `last_write`.
        self.first: list[LoopUnit] = []
        # Per storage: number of the last unit that writes it, and that touches it.
        self.last_write: dict[int, int] = {}
        self.last_touch: dict[int, int] = {}

    def add(self, instance: Instance) -> None:
        statement, references = instance.statement, instance.references
        storage_of = self.storage_of
        last_write, last_touch = self.last_write, self.last_touch
        read = [storage_of[references[r]] for r in statement.sources]
        written = [storage_of[references[r]] for r in statement.results]
        producer = -1
        for storage in read:
            number = last_write.get(storage, -1)
            if number > producer:
                producer = number
        earliest = producer
        for storage in written:
            number = last_touch.get(storage, -1)
            if number > earliest:
                earliest = number
        if isinstance(statement, Loop):
            number = self._place(instance, statement, earliest, producer, read)
            if number < 0:
                return
        else:
            number = len(self.fused.units)
            self.fused.units.append(NativeCall(number, instance, statement))
        for storage in read:
            if last_touch.get(storage, -1) < number:
                last_touch[storage] = number
        for storage in written:
            if last_touch.get(storage, -1) < number:
                last_touch[storage] = number
            if last_write.get(storage, -1) < number:
                last_write[storage] = number

    def _place(
        self, instance: Instance, loop: Loop, earliest: int, producer: int, read: list[int]
    ) -> int:
        units = self.fused.units
        references, first_number = instance.references, instance.first_number
        record, storage_of = instance.record, self.storage_of
        refusal = ""
        first = max(earliest, 0)
        order = range(len(units) - 1, max(first, len(units) - CANDIDATES) - 1, -1)
        if earliest >= 0 and earliest == producer:
            order = [producer, *[n for n in order if n != producer]]  # type: ignore[assignment]
        for unit in self._candidates(order, producer, read, loop):
            why = unit.join(loop, references, first_number, storage_of, record)
            if not why:
                return unit.number
            if unit.number == producer or not refusal:
                refusal = why
        if refusal:
            self.fused.refusals.append((record, refusal))
        # A number that depends on nothing (the gradient of a loss by itself) is there before what
        # it is multiplied with, so that it parts no statements.
        is_first = earliest < 0 and not read and not loop.domain
        if is_first and self.first:
            why = self.first[-1].join(loop, references, first_number, storage_of, record)
            if not why:
                return -1
        made = LoopUnit(-1 if is_first else len(units), self.root)
        why = made.join(loop, references, first_number, storage_of, record)
        if why:
            raise RuntimeError(f"a statement does not fit a kernel of its own: {why}")
        (self.first if is_first else units).append(made)
        return made.number

    def _candidates(
        self, order: Iterable[int], producer: int, read: list[int], loop: Loop
    ) -> list[LoopUnit]:
        """Units that a statement may join, those first that touch what it reads."""
        related: list[LoopUnit] = []
        others: list[LoopUnit] = []
        for number in order:
            unit = self.fused.units[number]
            if isinstance(unit, LoopUnit):
                touches = any(storage in unit.storages for storage in read)
                (related if touches or number == producer else others).append(unit)
        return related if not others or loop.size > SMALL_DOMAIN else related + others


def fuse(
    instances: Sequence[Instance], storage_of: Sequence[int], root: State | None = None
) -> Fused:
    """Put statements into units, in order; `root` where their states are not to be kept."""
    fuser = _Fuser(storage_of, root)
    for instance in instances:
        fuser.add(instance)
    fused = fuser.fused
    fused.units[:0] = fuser.first
    fused.n_statements = len(instances)
    for unit in fused.units:
        if isinstance(unit, LoopUnit):
            fused.in_memory.update(unit.memory())
        else:
            native, references = unit.native, unit.references
            for r in native.sources + native.results:
                fused.in_memory.add(storage_of[references[r]])
    return fused
