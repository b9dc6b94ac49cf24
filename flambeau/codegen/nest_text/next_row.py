"""Fetching the next row into the cache while the current one is worked on.

Keeps     hints alone: nothing is read or written, an address may be any.
Touches   frame, loops, scopes, stores; cost_reader.
Not here  the loops that call it (rows.py).

A row that is gone through several times is read from memory in its first phase alone, and that
phase waits: hardware follows a stream within a page, and rows are often a page or less. So a
later phase, which finds its row in the cache, asks for the next one: the second, where neither
it nor the first stores rows, whose lines are read, too. A phase that stores past the caches
reads nothing while it writes: it asks for all of the next row where the second phase does not,
and for the second half of it where that phase takes less time than the row takes to come.
"""

from __future__ import annotations

from typing import Final

from flambeau.codegen.cost_reader import cost
from flambeau.codegen.loops import Phase, Reduce, Store
from flambeau.codegen.nest_text.frame import LINE_BYTES, Code, Frame
from flambeau.codegen.nest_text.scopes import RowScope
from flambeau.codegen.nest_text.stores import may_pass_caches
from flambeau.codegen.vocabulary import Expression

# Bytes of the longest row that is fetched ahead: it is to share the first cache with this one.
ROW_BYTES: Final = 16384
# Words of a phase that is over before a row has come from memory.
LIGHT: Final = 12


class NextRow:
    """What the first phase of a nest reads, one row further on."""

    def __init__(self, row: RowScope) -> None:
        self.row = row
        self.frame = frame = row.frame
        nest = frame.nest
        loops = [phase for phase in nest.phases if phase.loop]
        self.phase: Phase | None = None  # asks while it stores nothing
        self.storing: Phase | None = None  # asks where it stores past the caches
        self.accesses: list[int] = []
        self._starts: dict[tuple[RowScope, int], str] = {}
        if nest.kind != "rows" or not nest.n_outer or _stores(loops[0]):
            return
        self.accesses = _streamed(frame, loops[0])
        if loops[1:] and not _stores(loops[1]):
            self.phase = loops[1]
            if cost(*[each.value for each in loops[1].loop]).operations > LIGHT:
                return
        self.storing = next((each for each in loops[1:] if may_pass_caches(nest, each)), None)

    def fetch(self, code: Code, phase: Phase, position: str, ahead: RowScope | None) -> None:
        """Asks for the next row's elements at the vector of `position`, in the phase for it; for
        those at half of it where a later phase asks for the rest; for those of the row after
        `ahead` where that is being read."""
        if ahead is not None:
            for access in self.accesses:
                self._ask(code, access, position, self.frame.lanes, ahead)
            return
        if phase is not self.phase:
            return
        frame = self.frame
        if self.storing is not None:
            large = frame.is_large(may_pass_caches(frame.nest, self.storing))
            half = frame.entry.emit(f"zext i1 {large} to i64")
            position = code.value(f"lshr i64 {position}, {half}")
        for access in self.accesses:
            self._ask(code, access, position, frame.lanes, self.row)

    def fetch_beside(self, code: Code, phase: Phase, position: str) -> None:
        """The same where the phase is storing past the caches."""
        if phase is not self.storing:
            return
        lanes = self.frame.lanes
        if self.phase is not None:
            position = code.value(f"add i64 {position}, {self.frame.word('inner_size')}")
            position = code.value(f"lshr i64 {position}, 1")
            lanes //= 2
        for access in self.accesses:
            self._ask(code, access, position, lanes, self.row)

    def _ask(self, code: Code, access: int, position: str, lanes: int, row: RowScope) -> None:
        """Asks for so many elements of the row after `row` from a position on."""
        frame = self.frame
        size = frame.nest.accesses[access].dtype.itemsize
        start = self._starts.get((row, access))
        if start is None:
            here, step = row.start(access), self._step(access)
            start = row.reader.emit(f"getelementptr i8, ptr {here}, i64 {step}")
            self._starts[row, access] = start
        name = "@llvm.prefetch.p0"
        frame.module.declares[name] = f"declare void {name}(ptr, i32, i32, i32)"
        first = code.value(f"getelementptr [{size} x i8], ptr {start}, i64 {position}")
        for line in range(0, lanes * size, LINE_BYTES):
            at = code.value(f"getelementptr i8, ptr {first}, i64 {line}")
            code.do(f"call void {name}(ptr {at}, i32 0, i32 3, i32 1)")

    def _step(self, access: int) -> str:
        """Bytes to the next row; 0 where rows are long."""
        entry, frame = self.frame.entry, self.frame
        limit = ROW_BYTES // frame.nest.accesses[access].dtype.itemsize
        fits = entry.emit(f"icmp sle i64 {frame.word('inner_size')}, {limit}")
        stride = frame.word(f"stride.{access}.{frame.nest.n_outer - 1}")
        return entry.emit(f"select i1 {fits}, i64 {stride}, i64 0")


def _stores(phase: Phase) -> bool:
    return any(isinstance(each, Store) for each in phase.loop)


def _streamed(frame: Frame, phase: Phase) -> list[int]:
    """Accesses that the reductions of a phase read in order, whole vectors at a time."""
    found: list[int] = []
    for number in loads_of(phase):
        access = frame.nest.accesses[number]
        if access.inner == "unit" and not access.row_level and access.index is None:
            found.append(number)
    return found


def loads_of(phase: Phase) -> list[int]:
    """Accesses that the reductions of a phase read."""
    found: set[int] = set()
    seen: set[Expression] = set()
    stack = [each.value for each in phase.loop if isinstance(each, Reduce)]
    while stack:
        top = stack.pop()
        if top not in seen:
            seen.add(top)
            stack += top.arguments
            if top.word == "load":
                found.add(top.value)
    return sorted(found)
