"""A group: statements that share one kernel, while the fuser is still adding to it.

Keeps     every access is aligned with the group's dimensions; a value written in the group is read
          from a register, never from memory, by what joins later; an element-wise dependence
          inside an iteration is the only one a group may contain.
Touches   base, codegen.{vocabulary, loops, cost_reader}, statement.
Not here  which group a statement tries (fuse.py), the loop IR of a finished group (nest.py)."""

from __future__ import annotations

from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.engine.planning.alignment import (
    Bound,
    GroupAccess,
    GroupValue,
    aligned,
    collapses,
    kept_splits,
    key_of,
    named,
    refined_marks,
    split_strides,
)
from flambeau.engine.planning.joining import Joining
from flambeau.engine.statement import SizeNumber

MAX_STATEMENTS: Final = 64


class Group:
    """Statements that share one kernel.

    kind       "map", "rows" (inner dims reduced somewhere) or "columns"
    dims, size  sizes of the refined domain and their product; the first n_outer of them are rows'
               dims, then (columns) n_reduced reduced ones, then inner ones
    values     in program order; `latest` finds the last value of a storage (alignment.key_of)
    parts      of each storage written, which parts of it (statement.never_meet)
    touched    storages read from memory, with the accesses used
    """

    def __init__(self, storage_of: list[int]) -> None:
        self.storage_of = storage_of
        self.kind = "map"
        self.dims: list[int] = []
        self.size = 1
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
        self.parts: dict[int, set[int]] = {}
        self.started = False
        self.refusal = ""

    # Joining -----------------------------------------------------------------

    def join(self, bound: Bound) -> bool:
        """Take the statement in, or leave the group as it was and say why in `refusal`."""
        if not self.started:
            return self._start(bound)
        if len(self.values) >= MAX_STATEMENTS:
            return self._refuse("statement limit")
        loop = bound.loop
        undo = self._absorb(bound)
        if loop.reduction is not None:
            joined = self._join_reduction(bound)
        elif self.kind != "map" and self._is_row_domain(loop.domain):
            joined = self._join_row(bound)
        else:
            joined = self._join_elements(bound)
        if undo is not None and not joined:
            undo()
        return joined

    def _absorb(self, bound: Bound) -> Undo | None:
        """Turn a map into what rows of a larger domain start with, where `loop` reads it so.

        The group's values become row values known before the first loop: the weight of a row that
        the row's elements are multiplied with, the label that its loss picks.
        """
        loop = bound.loop
        n_rows_dims = len(self.dims)
        if self.kind != "map" or loop.is_columns or len(loop.domain) <= n_rows_dims:
            return None
        if list(loop.domain[:n_rows_dims]) != self.dims or not self.dims:
            return None
        if loop.reduction is not None and loop.n_outer != n_rows_dims:
            return None
        if not self._reads_own(bound):
            return None
        inner = list(loop.domain[n_rows_dims:])
        undo = Undo(self)
        self.kind, self.n_outer, self.n_reduced = "rows", n_rows_dims, len(inner)
        self.dims = self.dims + inner
        self.size = loop.size
        zeros = [0] * len(inner)
        for access in undo.held:
            access.strides = access.strides + zeros
        for value in self.values:
            value.level, value.early = "row", True
        return undo

    def _reads_own(self, bound: Bound) -> bool:
        """Whether the statement reads what the group writes."""
        storage_of, latest = self.storage_of, self.latest
        for slot, place in zip(bound.reads, bound.loop.reads, strict=True):
            storage, part = storage_of[slot], place.part
            if (key_of(storage, part) if part else storage) in latest:
                return True
        return False

    def _refuse(self, why: str) -> bool:
        self.refusal = why
        return False

    def _start(self, bound: Bound) -> bool:
        loop = bound.loop
        self.dims = list(loop.domain)
        self.size = loop.size
        self.started = True
        if loop.reduction is not None:
            self.kind = "columns" if loop.is_columns else "rows"
            self.n_outer, self.n_reduced = loop.n_outer, loop.n_reduced
        reads = [list(place.strides) for place in loop.reads]
        write = list(loop.write.strides)
        if loop.reduction is not None:
            write = self._row_strides(write)
        return self._commit(bound, reads, write, "element")

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

    def _join_row(self, bound: Bound) -> bool:
        loop = bound.loop
        rows = self._row_dims()
        if list(loop.domain) != rows:
            return self._refuse("rows of another shape")
        if any(place.index is not None for place in loop.reads):
            return self._refuse("gather once per row")
        if not self._reads_own(bound):
            return self._refuse("reads nothing of the group")
        if loop.uses_index:
            return self._refuse("position once per row")
        reads = [self._row_strides(list(place.strides)) for place in loop.reads]
        write = self._row_strides(list(loop.write.strides))
        return self._commit(bound, reads, write, "row")

    def _join_elements(self, bound: Bound) -> bool:
        loop = bound.loop
        # Domains of other sizes never align: one question instead of one a dimension.
        splits = aligned(self.dims, loop.domain) if loop.size == self.size else None
        if splits is None:
            return self._refuse(f"domain {named(loop.domain)} against {named(self.dims)}")
        own, others = splits
        if (own and self.has_index) or (others and loop.uses_index):
            return self._refuse("positions along a dimension that would be split")
        undo = self._split(own) if own else None
        if loop.uses_index and self._walks_several_as_one():
            if undo is not None:
                undo()
            return self._refuse("positions along dimensions that are walked as one")
        reads = [split_strides(place.strides, others) for place in loop.reads]
        write = split_strides(loop.write.strides, others)
        if self._commit(bound, reads, write, "element"):
            return True
        if undo is not None:
            undo()
        return False

    def _walks_several_as_one(self) -> bool:
        """Whether a loop inside rows or columns runs over more than one dimension."""
        if self.kind == "map":
            return False
        end = self.n_outer + self.n_reduced
        return end - self.n_outer > 1 or len(self.dims) - end > 1

    def _join_reduction(self, bound: Bound) -> bool:
        loop = bound.loop
        kind = "columns" if loop.is_columns else "rows"
        if self.kind not in ("map", kind):
            return self._refuse(f"{kind} reduction in a {self.kind} group")
        # Domains of other sizes never align: one question instead of one a dimension.
        splits = aligned(self.dims, loop.domain) if loop.size == self.size else None
        if splits is None:
            return self._refuse(f"domain {named(loop.domain)} against {named(self.dims)}")
        own, others = splits
        if (own or others) and (self.has_index or loop.uses_index):
            return self._refuse("positions along a dimension that would be split")
        # Where the reduced dimensions begin and end, counted in the refined dimensions.
        marks = refined_marks(loop.domain, others, (loop.n_outer, loop.n_outer + loop.n_reduced))
        undo = self._split(own)
        if self.kind == "map":
            if not self._turn_into(kind, marks):
                undo()
                return self._refuse("inner dimensions of the group do not collapse")
        elif (self.n_outer, self.n_outer + self.n_reduced) != marks:
            undo()
            return self._refuse("reduces other dimensions than the group")
        reads = [split_strides(place.strides, others) for place in loop.reads]
        write_splits = kept_splits(others, marks)
        write = self._row_strides(split_strides(loop.write.strides, write_splits))
        if self._commit(bound, reads, write, "element"):
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

    def _commit(self, bound: Bound, reads: list[list[int]], write: list[int], level: str) -> bool:
        joining = Joining(self, bound, reads, write, level)
        why = joining.check()
        if why:
            return self._refuse(why)
        joining.apply()
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
        self.state = (group.kind, list(group.dims), group.size, group.n_outer, group.n_reduced)
        held = {id(a): a for a in group.accesses}
        held.update({id(v.access): v.access for v in group.values})
        self.held = list(held.values())
        self.strides = [(access, access.strides) for access in self.held]
        self.levels = [(value, value.level, value.early) for value in group.values]

    def __call__(self) -> None:
        group = self.group
        group.kind, group.dims, group.size, group.n_outer, group.n_reduced = self.state
        for value, level, early in self.levels:
            value.level, value.early = level, early
        for access, strides in self.strides:
            access.strides = strides
