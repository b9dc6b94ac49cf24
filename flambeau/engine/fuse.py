"""Fusion: which statements share a kernel. Greedy, in program order, no search.

Keeps     a statement's group is never before one it depends on (reads after writes, writes after
          reads, writes after writes, storage by storage); what nobody reads is not computed.
Touches   statement, group.
Not here  what may share a loop and why not (group.py), kernels and memory (nest.py, plan.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flambeau.engine.group import Group
from flambeau.engine.statement import Loop, Native, Statement

# Groups tried for a statement, from its producer on and from the newest back.
CANDIDATES: Final = 6
# Unrelated statements share a kernel only where a launch costs more than their work.
SMALL_DOMAIN: Final = 16384


class NativeCall:
    """A native statement on its own in the order of groups."""

    def __init__(self, number: int, native: Native, record: int) -> None:
        self.number = number
        self.native = native
        self.records = {record}


Unit = Group | NativeCall


class Fused:
    """Outcome: units in order, storages that must be in memory, and why statements parted."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.in_memory: set[int] = set()
        self.refusals: list[tuple[int, str]] = []
        self.n_statements = 0


def _reads(statement: Statement) -> list[int]:
    return [place.reference for place in statement.reads]


def _writes(statement: Statement) -> list[int]:
    if isinstance(statement, Loop):
        return [statement.write.reference]
    return [memory.reference for memory in statement.writes]


def _is_empty(statement: Statement) -> bool:
    """A loop that writes no element."""
    if not isinstance(statement, Loop):
        return False
    end = statement.n_outer + statement.n_reduced
    if statement.reduction is None:
        return 0 in statement.domain
    return 0 in statement.domain[: statement.n_outer] or 0 in statement.domain[end:]


def live_statements(
    statements: Sequence[tuple[int, Statement]], storage_of: Sequence[int], kept: set[int]
) -> list[tuple[int, Statement]]:
    """Statements whose results somebody may see, in order."""
    needed = set(kept)
    live: list[tuple[int, Statement]] = []
    for record, statement in reversed(statements):
        if _is_empty(statement):
            continue
        if any(storage_of[r] in needed for r in _writes(statement)):
            needed.update(storage_of[r] for r in _reads(statement))
            live.append((record, statement))
    live.reverse()
    return live


class _Fuser:
    def __init__(self, storage_of: list[int]) -> None:
        self.storage_of = storage_of
        self.fused = Fused()
        self.last_write: dict[int, int] = {}
        self.last_touch: dict[int, int] = {}

    def add(self, record: int, statement: Statement) -> None:
        storages_read = [self.storage_of[r] for r in _reads(statement)]
        storages_written = [self.storage_of[r] for r in _writes(statement)]
        producer = max((self.last_write.get(s, -1) for s in storages_read), default=-1)
        earliest = max(
            (self.last_touch.get(s, -1) for s in storages_written), default=-1
        )
        earliest = max(earliest, producer)
        number = self._place(record, statement, earliest, producer)
        for s in storages_read:
            self.last_touch[s] = max(self.last_touch.get(s, -1), number)
        for s in storages_written:
            self.last_touch[s] = max(self.last_touch.get(s, -1), number)
            self.last_write[s] = max(self.last_write.get(s, -1), number)
        self.fused.n_statements += 1

    def _place(self, record: int, statement: Statement, earliest: int, producer: int) -> int:
        units = self.fused.units
        if isinstance(statement, Native):
            units.append(NativeCall(len(units), statement, record))
            return len(units) - 1
        refusal = ""
        for number in self._candidates(statement, earliest, producer):
            group = units[number]
            if isinstance(group, NativeCall):
                continue
            if group.join(statement, record):
                return number
            if number == producer or not refusal:
                refusal = group.refusal
        if refusal:
            self.fused.refusals.append((record, refusal))
        group = Group(len(units), self.storage_of)
        if not group.join(statement, record):
            raise RuntimeError(f"a statement does not fit a kernel of its own: {group.refusal}")
        units.append(group)
        return group.number

    def _candidates(self, loop: Loop, earliest: int, producer: int) -> list[int]:
        newest = len(self.fused.units) - 1
        first = max(earliest, 0)
        order = list(range(newest, first - 1, -1))[:CANDIDATES]
        if earliest >= 0 and earliest == producer:
            order = [producer] + [n for n in order if n != producer]
        return [n for n in order if self._related(loop, n, producer)]

    def _related(self, loop: Loop, number: int, producer: int) -> bool:
        group = self.fused.units[number]
        if number == producer or isinstance(group, NativeCall):
            return number == producer
        size = 1
        for dim in loop.domain:
            size *= dim
        if size <= SMALL_DOMAIN:
            return True
        storages = {self.storage_of[place.reference] for place in loop.reads}
        return bool(storages & (group.touched.keys() | group.latest.keys()))


def fuse(
    statements: Sequence[tuple[int, Statement]], storage_of: list[int], kept: set[int]
) -> Fused:
    """Group live statements; storages in `kept` are visible after the segment."""
    fuser = _Fuser(storage_of)
    for record, statement in live_statements(statements, storage_of, kept):
        fuser.add(record, statement)
    fused = fuser.fused
    for unit in fused.units:
        if isinstance(unit, Group):
            fused.in_memory.update(unit.touched)
        else:
            fused.in_memory.update(storage_of[m.reference] for m in unit.native.reads)
            fused.in_memory.update(storage_of[m.reference] for m in unit.native.writes)
    return fused
