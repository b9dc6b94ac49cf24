"""A finished group in a kernel's terms: order of dims, accesses, phases, run-time words.

Keeps     everything that depends on a size, a stride or an address is a bound word, never part of
          the Nest.
Touches   base.dtypes, codegen.loops, group.
Not here  how a reduction is cut into kernels (nest.py)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.loops import Access, Keep, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import Expression, expression
from flambeau.engine.planning.alignment import GroupAccess, GroupValue
from flambeau.engine.planning.group import Group
from flambeau.engine.planning.symbolic.sizes import Size
from flambeau.engine.statement import SizeNumber

# Work of one chunk of units, and work that one thread does alone.
CHUNK_NS: Final = 60_000
SERIAL_NS: Final = 12_000


class Pointer:
    """A bound word: address of a slot plus elements; `partial` marks a partials buffer instead."""

    __slots__ = ("offset_bytes", "slot")

    def __init__(self, slot: int, offset_bytes: int) -> None:
        self.slot = slot
        self.offset_bytes = offset_bytes


class Number:
    """A bound word: run-time number of the segment."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class ErrorWord:
    """A bound word: address of the word that gathers set when an index is out of range."""


Word = int | Size | Pointer | Number | ErrorWord


def number_word(number: int | SizeNumber) -> Word:
    """A record's number, or the bits of one that follows from sizes."""
    if not isinstance(number, SizeNumber):
        return Number(number)
    value = number.value
    if isinstance(value, Size):
        return value.tape.apply(_double_bits, value, 0) if number.is_float else value
    return _double_bits(value, 0) if number.is_float else value


def _double_bits(value: float, _: int) -> int:
    bits: int = struct.unpack("=q", struct.pack("=d", value))[0]
    return bits


class Kernel:
    """One kernel launch: a nest, its words, and how its units are shared out."""

    __slots__ = ("chunk_units", "n_bytes", "n_units", "nest", "scratch_bytes", "words")

    def __init__(
        self,
        nest: Nest,
        words: list[Word],
        n_units: int,
        unit_ns: float,
        scratch_bytes: int,
        n_bytes: int,
    ) -> None:
        self.nest = nest
        self.words = words
        self.n_units = n_units
        self.chunk_units = _chunk_units(n_units, unit_ns)
        self.scratch_bytes = scratch_bytes
        self.n_bytes = n_bytes


def _chunk_units(n_units: Any, unit_ns: Any) -> Any:
    for each in (n_units, unit_ns):
        if isinstance(each, Size):
            # Worked out when sizes are bound: it decides nothing else.
            return each.tape.apply(chunk_units, n_units, unit_ns)
    return chunk_units(n_units, unit_ns)


def chunk_units(n_units: int, unit_ns: float) -> int:
    """Units handed out at a time: all of them where sharing costs more than it gives."""
    if n_units * unit_ns <= SERIAL_NS:
        return max(n_units, 1)
    at_once = max(1, int(CHUNK_NS / max(unit_ns, 1.0)))
    # At least a few chunks a thread, so that an unevenly loaded machine still ends together.
    return max(1, min(at_once, -(-n_units // 8)))


class Emitter:
    """Works out loop order, accesses and words of one group."""

    def __init__(self, group: Group, is_stored: Callable[[GroupValue], bool]) -> None:
        self.group = group
        self.is_stored = is_stored
        self.dims = list(group.dims)
        self.accesses: list[GroupAccess] = list(group.accesses)
        self.stored: list[GroupValue] = []
        self.store_access: dict[int, int] = {}
        for value in group.values:
            if is_stored(value) and not value.superseded:
                self.store_access[id(value)] = len(self.accesses)
                self.accesses.append(value.access)
                self.stored.append(value)
        self.strides: list[list[int]] = [list(access.strides) for access in self.accesses]
        self.position_of_dim: dict[int, int] = {}
        # Slot, offset and strides of complex numbers -> number of the pair (Access.half).
        self.pairs: dict[tuple[Any, ...], int] = {}

    # Loop order ----------------------------------------------------------------

    def arrange(self) -> None:
        """Order and merge dimensions: outer ones, (reduced one,) one inner one."""
        group = self.group
        n_outer = group.n_outer
        indexed = self._indexed_dims()
        if group.kind == "map":
            order = self._map_order(indexed)
            self.dims = [self.dims[d] for d in order]
            self.strides = [[row[d] for d in order] for row in self.strides]
            indexed = {order.index(d): leaf for d, leaf in indexed.items()}
            sections = [list(range(len(self.dims)))]
        elif group.kind == "rows":
            sections = [list(range(n_outer)), list(range(n_outer, len(self.dims)))]
        else:
            end = n_outer + group.n_reduced
            sections = [
                list(range(n_outer)), list(range(n_outer, end)), list(range(end, len(self.dims)))
            ]  # fmt: skip
        merged: list[list[list[int]]] = [self._merge(section, indexed) for section in sections]
        if group.kind == "map":
            outer, inner = merged[0][:-1], merged[0][-1:]
            parts = [*outer, *(inner or [[]])]
            self.n_outer = len(outer)
        else:
            outer = merged[0]
            parts = [*outer, *[[d for run in section for d in run] for section in merged[1:]]]
            self.n_outer = len(outer)
        self.sizes = [self._product(run) for run in parts]
        self.part_strides = [[self._last_stride(row, run) for run in parts] for row in self.strides]
        for position, run in enumerate(parts):
            for d in run:
                if d in indexed:
                    self.position_of_dim[indexed[d]] = position

    def _product(self, run: list[int]) -> int:
        count = 1
        for d in run:
            count *= self.dims[d]
        return count

    def _last_stride(self, row: list[int], run: list[int]) -> int:
        for d in reversed(run):
            if self.dims[d] != 1:
                return row[d]
        return row[run[-1]] if run else 0

    def _indexed_dims(self) -> dict[int, int]:
        """Dimensions whose position some expression uses."""
        if not self.group.has_index:
            return {}
        return {each.value: each.value for each in self._expressions() if each.word == "index"}

    def _expressions(self) -> Iterator[Expression]:
        """Everything that the group computes, and every index of its accesses, each once."""
        seen: set[Expression] = set()
        stack: list[Expression] = []
        for value in self.group.values:
            stack.append(value.expression)
            if value.reduction is not None:
                stack.append(value.reduction)
        stack += [a.index for a in self.accesses if a.index is not None]
        while stack:
            body = stack.pop()
            if body in seen:
                continue
            seen.add(body)
            yield body
            stack.extend(body.arguments)

    def _map_order(self, indexed: dict[int, int]) -> list[int]:
        """Dimensions by the strides of what is stored, largest outermost, stable."""
        dims = range(len(self.dims))
        if not self.stored:
            return list(dims)
        guide = self.strides[self.store_access[id(self.stored[-1])]]
        keys = [abs(guide[d]) for d in dims]
        return sorted(dims, key=lambda d: -keys[d])

    def _merge(self, section: list[int], indexed: dict[int, int]) -> list[list[int]]:
        """Runs of neighbouring dimensions that every access walks with one stride."""
        runs: list[list[int]] = []
        for d in section:
            if runs and d not in indexed and runs[-1][-1] not in indexed:
                last = runs[-1][-1]
                if all(row[last] == row[d] * self.dims[d] for row in self.strides):
                    runs[-1].append(d)
                    continue
            runs.append([d])
        return runs

    # Loop IR ---------------------------------------------------------------------

    def access_of(self, number: int) -> Access:
        """Loop IR of an access."""
        access = self.accesses[number]
        strides = self.part_strides[number]
        inner = strides[-1]
        n_inner_parts = len(strides) - self.n_outer
        flat = all(s == 0 for s in strides[self.n_outer :])
        is_store = number >= len(self.group.accesses)
        row_level = flat and access.index is None and not (is_store and self.group.kind == "map")
        kind = "unit" if inner == 1 else "zero" if inner == 0 else "strided"
        if self.sizes[-1] == 1 and not row_level and inner != 1:
            kind = "unit"  # one element: any stride will do, and vectors load fastest
        if access.index is not None:
            index = self.rewritten(access.index)
            if n_inner_parts and flat and not _varies(index, self.part_strides, self.n_outer):
                row_level = True
            return Access(access.dtype, kind, row_level, index)
        if access.part and kind == "strided" and inner == 2:
            place = (access.slot, access.offset + 1 - access.part, tuple(strides))
            pair = self.pairs.setdefault(place, len(self.pairs))
            return Access(access.dtype, "pair", row_level, None, (pair, access.part))
        return Access(access.dtype, kind, row_level)

    def rewritten(self, body: Expression) -> Expression:
        """Expression with positions numbered by the arranged loop."""
        if not self.position_of_dim:
            return body
        memo: dict[Expression, Expression] = {}

        def walk(each: Expression) -> Expression:
            found = memo.get(each)
            if found is None:
                if each.word == "index":
                    found = expression("index", (), each.dtype, self.position_of_dim[each.value])
                elif each.arguments:
                    found = expression(
                        each.word, tuple([walk(a) for a in each.arguments]), each.dtype, each.value
                    )
                else:
                    found = each
                memo[each] = found
            return found

        return walk(body)

    def phases(self) -> tuple[Phase, ...]:
        """Statements of each phase in program order."""
        group = self.group
        made: list[Phase] = []
        for number in range(group.phases()):
            loop: list[Store | Keep | Reduce] = []
            row: list[Store] = []
            for value in group.values:
                if value.phase != number:
                    continue
                stored = self.store_access.get(id(value))
                if value.reduction is not None:
                    leaf = value.expression
                    while leaf.word != "reduced":
                        leaf = leaf.arguments[0]
                    body = self.rewritten(value.reduction)
                    loop.append(Reduce(leaf.value, value.reduction_kind, body))
                if value.kept is not None:
                    loop.append(Keep(value.kept, self.rewritten(value.expression)))
                if stored is not None:
                    store = Store(stored, self.rewritten(value.expression))
                    (row if value.level == "row" else loop).append(store)
            made.append(Phase(tuple(loop), tuple(row)))
        return tuple(made)

    def words(self, nest: Nest, head: list[int]) -> list[Word]:
        """Run-time words of a nest over this group's accesses, in argument order."""
        words: list[Word] = [*head, *self.sizes[: self.n_outer]]
        columns = nest.kind in ("columns", "column_blocks")
        for number, access in enumerate(nest.accesses):
            self.access_words(words, number, access, columns)
        words.extend(number_word(n) for n in self.group.numbers)
        return words

    def access_words(self, words: list[Word], number: int, access: Access, columns: bool) -> None:
        source = self.accesses[number]
        size = source.dtype.itemsize
        strides = self.part_strides[number]
        words.append(Pointer(source.slot, source.offset * size))
        words.extend(s * size for s in strides[: self.n_outer])
        if columns and not access.row_level:
            words.append(strides[self.n_outer] * size)
        if access.inner == "strided":
            words.append(strides[-1] * size)
        if access.index is not None:
            words += [source.index_stride * size, source.index_bound, ErrorWord()]

    def number_dtypes(self) -> tuple[dtype, ...]:
        """Dtype of each run-time number: int64 or float64, as the expressions say."""
        found = {each.value: each.dtype for each in self._expressions() if each.word == "number"}
        return tuple([found.get(n, dtypes.float64) for n in range(len(self.group.numbers))])


def _varies(index: Expression, strides: list[list[int]], n_outer: int) -> bool:
    """Whether an index expression changes within a row."""
    if index.word == "load":
        return any(s != 0 for s in strides[index.value][n_outer:])
    if index.word == "index":
        return bool(index.value >= n_outer)
    return any(_varies(each, strides, n_outer) for each in index.arguments)
