"""Fetching the next row into the cache while the current one is worked on.

Keeps     hints alone: nothing is read or written, an address may be any.
Touches   frame, loops.
Not here  the loops that call it (rows.py).

A row that is gone through several times is read from memory in its first phase alone, and that
phase waits: hardware follows a stream within a page, and rows are often a page or less. So the
second phase, which finds its row in the cache, asks for the next one.
"""

from __future__ import annotations

from typing import Final

from flambeau.codegen.loops import Phase, Reduce, Store
from flambeau.codegen.nest_text.frame import Code, Frame
from flambeau.codegen.vocabulary import Expression

# Bytes of the longest row that is fetched ahead: it is to share the first cache with this one.
ROW_BYTES: Final = 16384
LINE_BYTES: Final = 64


class NextRow:
    """What the first phase of a nest reads, one row further on."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        nest = frame.nest
        loops = [phase for phase in nest.phases if phase.loop]
        self.phase: Phase | None = None
        self.accesses: list[int] = []
        self._steps: list[str] = []
        # A phase that stores rows has the memory's attention already: asking there costs time.
        if nest.kind == "rows" and nest.n_outer and not any(map(_stores, loops[:2])) and loops[1:]:
            self.phase = loops[1]
            self.accesses = _streamed(frame, loops[0])

    def fetch(self, code: Code, phase: Phase, position: str) -> None:
        """Asks for the next row's elements at the vector of `position`, in the phase for it."""
        if phase is not self.phase:
            return
        frame = self.frame
        if not self._steps:
            self._steps = [self._step(access) for access in self.accesses]
        name = "@llvm.prefetch.p0"
        for access, step in zip(self.accesses, self._steps, strict=True):
            frame.module.declares[name] = f"declare void {name}(ptr, i32, i32, i32)"
            size = frame.nest.accesses[access].dtype.itemsize
            row = code.value(f"load ptr, ptr {frame.pointer_slots[access]}")
            following = code.value(f"getelementptr i8, ptr {row}, i64 {step}")
            first = code.value(f"getelementptr [{size} x i8], ptr {following}, i64 {position}")
            for line in range(0, frame.lanes * size, LINE_BYTES):
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
    seen: set[Expression] = set()
    stack = [each.value for each in phase.loop if isinstance(each, Reduce)]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        stack += top.arguments
        if top.word == "load":
            access = frame.nest.accesses[top.value]
            if access.inner == "unit" and not access.row_level and access.index is None:
                found.append(top.value)
    return sorted(found)
