"""A group: statements that share one kernel, while the fuser is still adding to it.

Keeps     every access is aligned with the group's dimensions; a value written in the group is read
          from a register, never from memory, by what joins later; an element-wise dependence
          inside an iteration is the only one a group may contain.
Touches   base, codegen.{vocabulary, loops, cost_reader}, statement.
Not here  which group a statement tries (fuse.py), the loop IR of a finished group (nest.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.codegen import cost_reader
from flambeau.codegen.vocabulary import Expression, expression
from flambeau.engine.statement import Loop, Place, SizeNumber

MAX_ACCESSES: Final = 24
MAX_STATEMENTS: Final = 64
MAX_DEPTH: Final = 300
MAX_OPERATIONS: Final = 1200
# A value used in a later phase is computed again when it costs at most this many words.
RECOMPUTE_LIMIT: Final = 8
# Rows longer than this, and too few of them to share out, take no further phase.
LONG_ROW: Final = 16384
FEW_ROWS: Final = 8


class GroupAccess:
    """A place aligned with the group's dimensions (strides per dimension, 0 where it is constant).

    slot    number of the view slot or temporary; storage what it belongs to
    """

    __slots__ = ("dtype", "index", "index_bound", "index_stride", "offset", "slot", "strides")

    def __init__(self, place: Place, strides: list[int], index: Expression | None) -> None:
        self.slot = place.reference
        self.strides = strides
        self.offset = place.offset
        self.dtype = place.dtype
        self.index = index
        self.index_stride = place.index_stride
        self.index_bound = place.index_bound

    def same(self, slot: int, offset: int, strides: list[int], index: Expression | None) -> bool:
        """Whether this is the access with these parts."""
        return (
            self.slot == slot
            and self.offset == offset
            and self.strides == strides
            and self.index is index
        )


class GroupValue:
    """What a statement of the group computed, and where it would be stored.

    level     "element" (one per iteration) or "row" (one per row)
    phase     first phase in which it is known
    tainted   something it loads has been overwritten since: it must be kept, not computed again
    early     a row value known before the first loop
    superseded  a later statement of the group writes the same elements
    """

    __slots__ = (
        "access", "early", "expression", "kept", "level", "loads", "operations", "phase", "reduction",
        "reduction_kind", "storage", "superseded", "tainted",
    )  # fmt: skip

    def __init__(
        self,
        storage: int,
        access: GroupAccess,
        value: Expression,
        phase: int,
        level: str,
        loads: frozenset[int],
        operations: int,
    ) -> None:
        self.storage = storage
        self.access = access
        self.expression = value
        self.phase = phase
        self.level = level
        self.loads = loads
        self.kept: int | None = None
        self.early = False
        self.tainted = False
        self.superseded = False
        self.reduction: Expression | None = None
        self.reduction_kind = ""
        self.operations = operations


def aligned(
    group_dims: list[int], domain: tuple[int, ...]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]] | None:
    """Splits that make two domains equal: (dimension, inner size) lists for each, or None.

    Splits are in order and refer to dimensions numbered as they are when the split is made.
    """
    if len(group_dims) == len(domain) and all(
        a == b for a, b in zip(group_dims, domain, strict=True)
    ):
        return [], []
    left, right = list(group_dims), list(domain)
    left_splits: list[tuple[int, int]] = []
    right_splits: list[tuple[int, int]] = []
    position = 0
    while position < len(left) and position < len(right):
        a, b = left[position], right[position]
        if a > b:
            if b == 0 or a % b:
                return None
            left_splits.append((position, a // b))
            left[position : position + 1] = [b, a // b]
        elif b > a:
            if a == 0 or b % a:
                return None
            right_splits.append((position, b // a))
            right[position : position + 1] = [a, b // a]
        position += 1
    return (left_splits, right_splits) if len(left) == len(right) else None


def split_strides(strides: Sequence[int], splits: list[tuple[int, int]]) -> list[int]:
    """Strides after dimensions were split: i = i1 * inner + i2."""
    result = list(strides)
    for position, inner in splits:
        stride = result[position]
        result[position : position + 1] = [stride * inner, stride]
    return result


def collapses(sizes: list[int], strides: list[int]) -> bool:
    """Whether dimensions can be walked as one, with the last one's stride."""
    expected: int | None = None
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if expected is not None and stride != expected:
            return False
        expected = stride * size
    return True


class Group:
    """Statements that share one kernel.

    kind       "map", "rows" (inner dims reduced somewhere) or "columns"
    dims       sizes of the refined domain; the first n_outer of them are rows' dims, then (columns)
               n_reduced reduced ones, then inner ones
    values     in program order; `latest` finds the last value of a storage
    touched    storages read from memory, with the accesses used
    """

    def __init__(self, number: int, storage_of: list[int]) -> None:
        self.number = number
        self.storage_of = storage_of
        self.kind = "map"
        self.dims: list[int] = []
        self.n_outer = 0
        self.n_reduced = 0
        self.accesses: list[GroupAccess] = []
        self.values: list[GroupValue] = []
        self.latest: dict[int, GroupValue] = {}
        self.touched: dict[int, list[int]] = {}
        self.numbers: list[int | SizeNumber] = []
        self.scratch: list[dtype] = []
        self.n_reductions = 0
        self.operations = 0
        self.depth = 0  # of the deepest expression
        self.has_index = False
        self.started = False
        self.records: set[int] = set()
        self.refusal = ""

    # Joining -----------------------------------------------------------------

    def join(self, loop: Loop, record: int) -> bool:
        """Take the statement in, or leave the group as it was and say why in `refusal`."""
        if not self.started:
            return self._start(loop, record)
        if len(self.values) >= MAX_STATEMENTS:
            return self._refuse("statement limit")
        undo = self._absorb(loop)
        if loop.reduction is not None:
            joined = self._join_reduction(loop, record)
        elif self.kind != "map" and self._is_row_domain(loop.domain):
            joined = self._join_row(loop, record)
        else:
            joined = self._join_elements(loop, record)
        if undo is not None and not joined:
            undo()
        return joined

    def _absorb(self, loop: Loop) -> Undo | None:
        """Turn a map into what rows of a larger domain start with, where `loop` reads it so.

        The group's values become row values known before the first loop: the weight of a row that
        the row's elements are multiplied with, the label that its loss picks.
        """
        n_rows_dims = len(self.dims)
        if self.kind != "map" or loop.is_columns or len(loop.domain) <= n_rows_dims:
            return None
        if list(loop.domain[:n_rows_dims]) != self.dims or not self.dims:
            return None
        if loop.reduction is not None and loop.n_outer != n_rows_dims:
            return None
        if not any(self.storage_of[place.reference] in self.latest for place in loop.reads):
            return None
        inner = list(loop.domain[n_rows_dims:])
        undo = Undo(self)
        self.kind, self.n_outer, self.n_reduced = "rows", n_rows_dims, len(inner)
        self.dims = self.dims + inner
        zeros = [0] * len(inner)
        for access in undo.held:
            access.strides = access.strides + zeros
        for value in self.values:
            value.level, value.early = "row", True
        return undo

    def _refuse(self, why: str) -> bool:
        self.refusal = why
        return False

    def _start(self, loop: Loop, record: int) -> bool:
        self.dims = list(loop.domain)
        self.started = True
        if loop.reduction is not None:
            self.kind = "columns" if loop.is_columns else "rows"
            self.n_outer, self.n_reduced = loop.n_outer, loop.n_reduced
        reads = [list(place.strides) for place in loop.reads]
        write = list(loop.write.strides)
        if loop.reduction is not None:
            write = self._row_strides(write)
        return self._commit(loop, record, reads, write, "element")

    def _row_strides(self, write: list[int]) -> list[int]:
        """Strides of a row-level access in the group's dimensions."""
        inner = len(self.dims) - self.n_outer - self.n_reduced
        if self.kind == "columns":
            return [*write[: self.n_outer], *([0] * self.n_reduced), *write[self.n_outer :]]
        return write + [0] * (inner + self.n_reduced)

    def _is_row_domain(self, domain: tuple[int, ...]) -> bool:
        rows = self._row_dims()
        count = wanted = 1
        for size in rows:
            count *= size
        for size in domain:
            wanted *= size
        total = count
        for size in self.dims[self.n_outer : self.n_outer + self.n_reduced or None]:
            total *= size
        return count == wanted and (total != count or len(domain) == len(rows))

    def _row_dims(self) -> list[int]:
        if self.kind == "columns":
            return self.dims[: self.n_outer] + self.dims[self.n_outer + self.n_reduced :]
        return self.dims[: self.n_outer]

    def _join_row(self, loop: Loop, record: int) -> bool:
        rows = self._row_dims()
        if list(loop.domain) != rows:
            return self._refuse("rows of another shape")
        if any(place.index is not None for place in loop.reads):
            return self._refuse("gather once per row")
        if not any(self.storage_of[place.reference] in self.latest for place in loop.reads):
            return self._refuse("reads nothing of the group")
        if loop.expression.uses_index:
            return self._refuse("position once per row")
        reads = [self._row_strides(list(place.strides)) for place in loop.reads]
        write = self._row_strides(list(loop.write.strides))
        return self._commit(loop, record, reads, write, "row")

    def _join_elements(self, loop: Loop, record: int) -> bool:
        splits = aligned(self.dims, loop.domain)
        if splits is None:
            return self._refuse(f"domain {tuple(loop.domain)} against {tuple(self.dims)}")
        own, others = splits
        if (own and self.has_index) or (others and loop.expression.uses_index):
            return self._refuse("positions along a dimension that would be split")
        undo = self._split(own) if own else None
        reads = [split_strides(place.strides, others) for place in loop.reads]
        write = split_strides(loop.write.strides, others)
        if self._commit(loop, record, reads, write, "element"):
            return True
        if undo is not None:
            undo()
        return False

    def _join_reduction(self, loop: Loop, record: int) -> bool:
        kind = "columns" if loop.is_columns else "rows"
        if self.kind not in ("map", kind):
            return self._refuse(f"{kind} reduction in a {self.kind} group")
        splits = aligned(self.dims, loop.domain)
        if splits is None:
            return self._refuse(f"domain {tuple(loop.domain)} against {tuple(self.dims)}")
        own, others = splits
        if (own or others) and (self.has_index or loop.expression.uses_index):
            return self._refuse("positions along a dimension that would be split")
        # Where the reduced dimensions begin and end, counted in the refined dimensions.
        marks = _refined_marks(loop.domain, others, (loop.n_outer, loop.n_outer + loop.n_reduced))
        undo = self._split(own)
        if self.kind == "map":
            if not self._turn_into(kind, marks):
                undo()
                return self._refuse("inner dimensions of the group do not collapse")
        elif (self.n_outer, self.n_outer + self.n_reduced) != marks:
            undo()
            return self._refuse("reduces other dimensions than the group")
        reads = [split_strides(place.strides, others) for place in loop.reads]
        write_splits = _kept_splits(others, marks)
        write = self._row_strides(split_strides(loop.write.strides, write_splits))
        if self._commit(loop, record, reads, write, "element"):
            return True
        undo()
        return False

    def _turn_into(self, kind: str, marks: tuple[int, int]) -> bool:
        start, end = marks
        if self.has_index and len(self.dims) - start > 1:
            return False
        parts = [(start, end), (end, len(self.dims))] if kind == "columns" else [(start, end)]
        for low, high in parts:
            sizes = self.dims[low:high]
            if not all(collapses(sizes, a.strides[low:high]) for a in self.accesses):
                return False
            if not all(collapses(sizes, v.access.strides[low:high]) for v in self.values):
                return False
        if kind == "columns" and any(a.index is not None for a in self.accesses):
            return False
        self.kind, self.n_outer, self.n_reduced = kind, start, end - start
        return True

    def _split(self, splits: list[tuple[int, int]]) -> Undo:
        """Refine the group's dimensions; returns what puts them back."""
        undo = Undo(self)
        if splits:
            for position, inner in splits:
                self.dims[position : position + 1] = [self.dims[position] // inner, inner]
                if position < self.n_outer:
                    self.n_outer += 1
                elif position < self.n_outer + self.n_reduced:
                    self.n_reduced += 1
            for access in self.accesses:
                access.strides = split_strides(access.strides, splits)
            for value in self.values:
                if all(value.access is not access for access in self.accesses):
                    value.access.strides = split_strides(value.access.strides, splits)
        return undo

    # Committing --------------------------------------------------------------

    def _commit(
        self, loop: Loop, record: int, reads: list[list[int]], write: list[int], level: str
    ) -> bool:
        plan = _Joining(self, loop, reads, write, level)
        why = plan.check()
        if why:
            return self._refuse(why)
        plan.apply(record)
        return True

    def phases(self) -> int:
        """Number of phases so far."""
        return 1 + max((value.phase for value in self.values), default=0)

    def n_rows(self) -> int:
        """Rows of a rows group."""
        count = 1
        for size in self.dims[: self.n_outer]:
            count *= size
        return count

    def inner_size(self) -> int:
        """Elements of a row (rows groups), of the whole domain (maps)."""
        count = 1
        for size in self.dims[self.n_outer :]:
            count *= size
        return count


class Undo:
    """Puts a group's dimensions back after a refused join."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.state = (group.kind, list(group.dims), group.n_outer, group.n_reduced)
        held = {id(a): a for a in group.accesses}
        held.update({id(v.access): v.access for v in group.values})
        self.held = list(held.values())
        self.strides = [(access, access.strides) for access in self.held]
        self.levels = [(value, value.level, value.early) for value in group.values]

    def __call__(self) -> None:
        group = self.group
        group.kind, group.dims, group.n_outer, group.n_reduced = self.state
        for value, level, early in self.levels:
            value.level, value.early = level, early
        for access, strides in self.strides:
            access.strides = strides


class _Joining:
    """One statement on its way into a group: everything is checked before anything changes."""

    def __init__(
        self, group: Group, loop: Loop, reads: list[list[int]], write: list[int], level: str
    ) -> None:
        self.group = group
        self.loop = loop
        self.reads = reads
        self.write = write
        self.level = level
        self.phase = 0
        self.leaves: list[tuple[str, GroupValue | int | None]] = []
        self.new_accesses: list[GroupAccess] = []

    def check(self) -> str:
        group, loop = self.group, self.loop
        for place, strides in zip(loop.reads, self.reads, strict=True):
            storage = group.storage_of[place.reference]
            value = group.latest.get(storage)
            if value is None:
                if not self._fits_inner(strides):
                    return "inner dimensions do not collapse"
                continue
            if place.index is not None:
                return "gathers from what the group writes"
            if not value.access.same(place.reference, place.offset, strides, None):
                return "reads what the group writes through another access"
            ready = value.phase
            if value.level == "row" and self.level == "element" and not value.early:
                ready += 1
            self.phase = max(self.phase, ready)
        why = self._check_write()
        if why:
            return why
        if loop.reduction is None and self.level == "element" and not self._fits_inner(self.write):
            return "inner dimensions do not collapse"
        if self.phase and self.level == "element" and group.inner_size() > LONG_ROW:
            if group.n_rows() < FEW_ROWS:
                return "few long rows take one phase only"
        if self.phase and self.level == "element" and group.kind == "columns":
            return "columns take one phase only"
        if len(group.accesses) + len(group.values) + len(loop.reads) + 1 > MAX_ACCESSES:
            used = self._count_accesses()
            if used > MAX_ACCESSES:
                return "pointer limit"
        if group.operations > MAX_OPERATIONS:
            return "operation limit"
        if loop.expression.depth + group.depth > MAX_DEPTH:
            return "expression depth limit"
        return ""

    def _count_accesses(self) -> int:
        stores = sum(1 for v in self.group.values if not v.superseded)
        return len(self.group.accesses) + stores // 2 + len(self.loop.reads) + 1

    def _fits_inner(self, strides: list[int]) -> bool:
        group = self.group
        if group.kind == "map":
            return True
        start, end = group.n_outer, group.n_outer + group.n_reduced
        if not collapses(group.dims[start:end], strides[start:end]):
            return False
        return collapses(group.dims[end:], strides[end:])

    def _check_write(self) -> str:
        group = self.group
        slot = self.loop.write.reference
        storage = group.storage_of[slot]
        value = group.latest.get(storage)
        offset = self.loop.write.offset
        if value is not None:
            if not value.access.same(slot, offset, self.write, None):
                return "writes what the group writes through another access"
            self.phase = max(self.phase, value.phase)
        for number in group.touched.get(storage, ()):
            if not group.accesses[number].same(slot, offset, self.write, None):
                return "writes what the group reads through another access"
            # Loads of every phase so far must come before the store.
            self.phase = max(self.phase, self._last_phase_loading(number))
        for place, strides in zip(self.loop.reads, self.reads, strict=True):
            if group.storage_of[place.reference] == storage:
                same = place.reference == slot and place.offset == offset
                if not same or strides != self.write or place.index is not None:
                    return "reads and writes overlap"
        return ""

    def _last_phase_loading(self, number: int) -> int:
        return max((v.phase for v in self.group.values if number in v.loads), default=0)

    def apply(self, record: int) -> None:
        """Add accesses, build the expression, append the value."""
        group, loop = self.group, self.loop
        loads: set[int] = set()
        leaves: list[Expression] = []
        own = operations = cost_reader.cost(loop.expression).operations
        for place, strides in zip(loop.reads, self.reads, strict=True):
            storage = group.storage_of[place.reference]
            value = group.latest.get(storage)
            if value is not None:
                leaf = self._forwarded(value)
                leaves.append(leaf)
                if leaf.word != "kept":
                    loads |= value.loads
                    operations += value.operations
                continue
            index = None
            if place.index is not None:
                index = _substitute(place.index, leaves, [], None)
            number = self._access(place, strides, index)
            loads.add(number)
            group.touched.setdefault(storage, []).append(number)
            leaves.append(expression("load", (), place.dtype, number))
        numbers = [self._number(n) for n in loop.numbers]
        body = _substitute(loop.expression, leaves, numbers, None)
        group.has_index = group.has_index or body.uses_index
        access = GroupAccess(loop.write, self.write, None)
        storage = group.storage_of[loop.write.reference]
        level = "row" if loop.reduction is not None else self.level
        made = GroupValue(storage, access, body, self.phase, level, frozenset(loads), operations)
        if loop.reduction is not None:
            self._reduce(made, body)
        group.operations += own
        group.depth = max(group.depth, made.expression.depth)
        self._overwrite(storage, made)
        group.values.append(made)
        group.latest[storage] = made
        group.records.add(record)

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

    def _access(self, place: Place, strides: list[int], index: Expression | None) -> int:
        for number, access in enumerate(self.group.accesses):
            if access.same(place.reference, place.offset, strides, index):
                return number
        self.group.accesses.append(GroupAccess(place, strides, index))
        return len(self.group.accesses) - 1

    def _number(self, record_number: int | SizeNumber) -> int:
        numbers = self.group.numbers
        if record_number not in numbers:
            numbers.append(record_number)
        return numbers.index(record_number)

    def _reduce(self, made: GroupValue, body: Expression) -> None:
        group, loop = self.group, self.loop
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
        before = group.latest.get(storage)
        if before is not None:
            before.superseded = True
        overwritten = set(group.touched.get(storage, ()))
        if overwritten:
            for value in group.values:
                if overwritten & value.loads:
                    value.tainted = True
            if overwritten & made.loads:
                made.tainted = True


def _substitute(
    body: Expression,
    loads: list[Expression],
    numbers: list[int],
    memo: dict[Expression, Expression] | None,
) -> Expression:
    """The expression with the statement's leaves replaced by the group's."""
    if memo is None:
        memo = {}
    found = memo.get(body)
    if found is not None:
        return found
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


def _refined_marks(
    domain: tuple[int, ...], splits: list[tuple[int, int]], marks: tuple[int, int]
) -> tuple[int, int]:
    """Where dimension numbers of a domain lie after its splits."""
    start, end = marks
    for position, _ in splits:
        if position < start:
            start += 1
        if position < end:
            end += 1
    return start, end


def _kept_splits(
    splits: list[tuple[int, int]], marks: tuple[int, int]
) -> list[tuple[int, int]]:
    """Splits of the kept dimensions, numbered among the kept ones; marks are refined already.

    Splits refer to dimensions as numbered when made, left to right, so a split before the reduced
    ones keeps its number and one behind them moves left by the number of reduced dimensions.
    """
    start, end = marks
    kept = []
    for position, inner in splits:
        if position < start:
            kept.append((position, inner))
        elif position >= end:
            kept.append((position - (end - start), inner))
    return kept
