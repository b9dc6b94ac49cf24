"""A statement on its way into a group: everything is checked before anything changes.

Keeps     a refused statement leaves the group as it was.
Touches   codegen.{vocabulary, cost_reader}, alignment, the group it joins.
Not here  how its dimensions were aligned with the group's (group.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flambeau.codegen import cost_reader
from flambeau.codegen.vocabulary import Expression, expression
from flambeau.engine.planning.alignment import Bound, GroupAccess, GroupValue, collapses, key_of
from flambeau.engine.statement import Place, SizeNumber, never_meet, parts_never_meet

if TYPE_CHECKING:
    from flambeau.engine.planning.group import Group

MAX_ACCESSES: Final = 24
MAX_DEPTH: Final = 300
MAX_OPERATIONS: Final = 1200
# A value used in a later phase is computed again when it costs at most this many words.
RECOMPUTE_LIMIT: Final = 8
# Rows longer than this, and too few of them to share out, take no further phase.
LONG_ROW: Final = 16384
FEW_ROWS: Final = 8


class Joining:
    """One statement, its strides already in the group's dimensions."""

    __slots__ = ("bound", "group", "level", "phase", "reads", "write")

    def __init__(
        self, group: Group, bound: Bound, reads: list[list[int]], write: list[int], level: str
    ) -> None:
        self.group = group
        self.bound = bound
        self.reads = reads
        self.write = write
        self.level = level
        self.phase = 0

    def check(self) -> str:
        """Why the statement does not fit, or nothing."""
        group, bound = self.group, self.bound
        loop = bound.loop
        storage_of, latest = group.storage_of, group.latest
        is_element = self.level == "element"
        for place, slot, strides in zip(loop.reads, bound.reads, self.reads, strict=True):
            storage, part = storage_of[slot], place.part
            value = latest.get(key_of(storage, part) if part else storage)
            if value is None:
                if self._is_written(storage, part):
                    return "reads what the group writes through another access"
                if not self._fits_inner(strides):
                    return "inner dimensions do not collapse"
                continue
            if place.index is not None:
                return "gathers from what the group writes"
            if not value.access.same(slot, place.offset, strides, None):
                return "reads what the group writes through another access"
            ready = value.phase
            if is_element and value.level == "row" and not value.early:
                ready += 1
            if ready > self.phase:
                self.phase = ready
        return self._check_write() or self._check_limits(is_element)

    def _is_written(self, storage: int, part: int) -> bool:
        """Whether the group writes the storage in other parts, which may meet this one."""
        written = self.group.parts.get(storage)
        if written is None:
            return False
        return any(not parts_never_meet(part, each) for each in written if each != part)

    def _check_limits(self, is_element: bool) -> str:
        group, loop = self.group, self.bound.loop
        if loop.reduction is None and not self._fits_inner(self.write):
            return "inner dimensions do not collapse"
        if self.phase and is_element:
            if group.inner_size() > LONG_ROW and group.n_rows() < FEW_ROWS:
                return "few long rows take one phase only"
            if group.kind == "columns":
                return "columns take one phase only"
        # A quick bound first: counting takes longer.
        most = len(group.accesses) + len(group.values) + len(loop.reads) + 1
        if most > MAX_ACCESSES and self._count_accesses() > MAX_ACCESSES:
            return "pointer limit"
        if group.operations > MAX_OPERATIONS:
            return "operation limit"
        if loop.expression.depth + group.depth > MAX_DEPTH:
            return "expression depth limit"
        return ""

    def _count_accesses(self) -> int:
        stores = sum(1 for v in self.group.values if not v.superseded)
        return len(self.group.accesses) + stores // 2 + len(self.bound.loop.reads) + 1

    def _fits_inner(self, strides: list[int]) -> bool:
        group = self.group
        if group.kind == "map":
            return True
        start, end = group.n_outer, group.n_outer + group.n_reduced
        if not collapses(group.dims[start:end], strides[start:end]):
            return False
        return collapses(group.dims[end:], strides[end:])

    def _check_write(self) -> str:
        group, bound = self.group, self.bound
        slot = bound.write
        storage_of = group.storage_of
        storage = storage_of[slot]
        target = bound.loop.write
        part, offset = target.part, target.offset
        value = group.latest.get(key_of(storage, part) if part else storage)
        if value is not None:
            if not value.access.same(slot, offset, self.write, None):
                return "writes what the group writes through another access"
            self.phase = max(self.phase, value.phase)
        elif self._is_written(storage, part):
            return "writes what the group writes through another access"
        for number in group.touched.get(storage, ()):
            if part and never_meet(group.accesses[number], target):
                continue
            if not group.accesses[number].same(slot, offset, self.write, None):
                return "writes what the group reads through another access"
            # Loads of every phase so far must come before the store.
            self.phase = max(self.phase, self._last_phase_loading(number))
        for number, read in enumerate(bound.reads):
            if storage_of[read] == storage:
                place = bound.loop.reads[number]
                if part and never_meet(place, target):
                    continue
                same = read == slot and place.offset == offset and place.index is None
                if not same or self.reads[number] != self.write:
                    return "reads and writes overlap"
        return ""

    def _last_phase_loading(self, number: int) -> int:
        return max((v.phase for v in self.group.values if number in v.loads), default=0)

    def apply(self) -> None:
        """Add accesses, build the expression, append the value."""
        group, bound = self.group, self.bound
        loop = bound.loop
        loads: set[int] = set()
        is_tainted = False
        leaves: list[Expression] = []
        own = operations = cost_reader.cost(loop.expression).operations
        for place, slot, strides in zip(loop.reads, bound.reads, self.reads, strict=True):
            storage = group.storage_of[slot]
            part = place.part
            value = group.latest.get(key_of(storage, part) if part else storage)
            if value is not None:
                leaf = self._forwarded(value)
                leaves.append(leaf)
                if leaf.word != "kept":
                    loads |= value.loads
                    is_tainted = is_tainted or value.tainted
                    operations += value.operations
                continue
            index = None
            if place.index is not None:
                index = _substitute(place.index, leaves, [], {})
            number = self._access(slot, place, strides, index)
            loads.add(number)
            group.touched.setdefault(storage, []).append(number)
            leaves.append(expression("load", (), place.dtype, number))
        numbers = [self._number(n) for n in bound.numbers]
        body = _substitute(loop.expression, leaves, numbers, {})
        group.has_index = group.has_index or loop.uses_index
        access = GroupAccess(bound.write, loop.write, self.write, None)
        storage = group.storage_of[bound.write]
        level = "row" if loop.reduction is not None else self.level
        made = GroupValue(storage, access, body, self.phase, level, frozenset(loads), operations)
        made.tainted = is_tainted
        if loop.reduction is not None:
            self._reduce(made, body)
        group.operations += own
        group.depth = max(group.depth, made.expression.depth)
        self._overwrite(storage, made)
        group.values.append(made)
        part = loop.write.part
        group.latest[key_of(storage, part)] = made
        group.parts.setdefault(storage, set()).add(part)

    def _forwarded(self, value: GroupValue) -> Expression:
        group = self.group
        if value.level == "row" or value.phase == self.phase:
            return value.expression
        if value.kept is None and not value.tainted and value.operations <= RECOMPUTE_LIMIT:
            return value.expression
        if value.kept is None:
            value.kept = len(group.scratch)
            group.scratch.append(value.access.dtype)
        return expression("kept", (), value.access.dtype, value.kept)

    def _access(self, slot: int, place: Place, strides: list[int], index: Expression | None) -> int:
        for number, access in enumerate(self.group.accesses):
            if access.same(slot, place.offset, strides, index):
                return number
        self.group.accesses.append(GroupAccess(slot, place, strides, index))
        return len(self.group.accesses) - 1

    def _number(self, record_number: int | SizeNumber) -> int:
        numbers = self.group.numbers
        for number, known in enumerate(numbers):
            if known == record_number and _kind(known) is _kind(record_number):
                return number
        numbers.append(record_number)
        return len(numbers) - 1

    def _reduce(self, made: GroupValue, body: Expression) -> None:
        group, loop = self.group, self.bound.loop
        made.reduction = body
        made.reduction_kind = loop.reduction or ""
        result = loop.write.dtype
        accumulated = result if result.category == 0 or "arg" in made.reduction_kind else body.dtype
        leaf = expression("reduced", (), accumulated, group.n_reductions)
        group.n_reductions += 1
        if accumulated is not result:
            leaf = expression("convert", (leaf,), result)
        made.expression = leaf
        made.operations = 0

    def _overwrite(self, storage: int, made: GroupValue) -> None:
        group = self.group
        target = made.access
        before = group.latest.get(key_of(storage, target.part))
        if before is not None:
            before.superseded = True
        overwritten = set(group.touched.get(storage, ()))
        if target.part:
            accesses = group.accesses
            overwritten = {n for n in overwritten if not never_meet(accesses[n], target)}
        if overwritten:
            for value in group.values:
                if overwritten & value.loads:
                    value.tainted = True
            if overwritten & made.loads:
                made.tainted = True


def _kind(number: int | SizeNumber) -> type:
    """Tells a count 2 from a count 2.0 and both from run-time number 2."""
    return (float if number.is_float else int) if isinstance(number, SizeNumber) else SizeNumber


def _substitute(
    body: Expression,
    loads: list[Expression],
    numbers: list[int],
    memo: dict[Expression, Expression],
) -> Expression:
    """The expression with the statement's leaves replaced by the group's."""
    found = memo.get(body)
    if found is not None:
        return found
    made: Expression
    if body.word == "load":
        made = loads[body.value]
    elif body.word == "number":
        made = expression("number", (), body.dtype, numbers[body.value])
    elif body.arguments:
        arguments = tuple([_substitute(each, loads, numbers, memo) for each in body.arguments])
        same = all(a is b for a, b in zip(arguments, body.arguments, strict=True))
        made = body if same else expression(body.word, arguments, body.dtype, body.value)
        if made.word == "convert" and made.arguments[0].dtype is made.dtype:
            made = made.arguments[0]
    else:
        made = body
    memo[body] = made
    return made
