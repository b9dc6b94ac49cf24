"""From a finished group to kernels: loop IR and what its run-time words are bound to.

Keeps     everything that depends on a size, a stride or an address is a bound word, never part of
          the Nest. How a reduction is cut into units (rows, blocks, column blocks) changes no bit.
Touches   base.dtypes, codegen.loops, group.
Not here  memory and program words (plan.py), the decision what is stored (plan.py)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import loops
from flambeau.codegen.loops import Access, Keep, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import Expression, expression
from flambeau.engine.planning.alignment import GroupAccess, GroupValue
from flambeau.engine.planning.group import Group
from flambeau.engine.planning.joining import FEW_ROWS, LONG_ROW
from flambeau.engine.planning.sizes import Size
from flambeau.engine.statement import SizeNumber

# Elements of a map's row handled as one unit of work.
MAP_BLOCK: Final = 8192
# Columns handled as one unit of a reduction over other axes: as many as stream from memory.
COLUMN_BLOCK: Final = 1024
# Rough nanoseconds per element: one word of arithmetic, one byte moved.
OPERATION_NS: Final = 0.12
BYTE_NS: Final = 0.05
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


def _number_word(number: int | SizeNumber) -> Word:
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


class _Emitter:
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
        found: dict[int, int] = {}
        seen: set[Expression] = set()
        stack = [v.reduction or v.expression for v in self.group.values]
        stack += [v.expression for v in self.group.values]
        stack += [a.index for a in self.accesses if a.index is not None]
        while stack:
            body = stack.pop()
            if body in seen:
                continue
            seen.add(body)
            if body.word == "index":
                found[body.value] = body.value
            stack.extend(body.arguments)
        return found

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
        row_level = flat and access.index is None
        if row_level and is_store and self.group.kind == "map":
            row_level = False
        if row_level and is_store:
            row_level = True
        kind = "unit" if inner == 1 else "zero" if inner == 0 else "strided"
        if self.sizes[-1] == 1 and not row_level and inner != 1:
            kind = "unit"  # one element: any stride will do, and vectors load fastest
        if access.index is not None:
            index = self.rewritten(access.index)
            if n_inner_parts and flat and not _varies(index, self.part_strides, self.n_outer):
                row_level = True
            return Access(access.dtype, kind, row_level, index)
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
        words.extend(_number_word(n) for n in self.group.numbers)
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
        found: dict[int, dtype] = {}
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
            if body.word == "number":
                found[body.value] = body.dtype
            stack.extend(body.arguments)
        return tuple([found.get(n, dtypes.float64) for n in range(len(self.group.numbers))])


def _varies(index: Expression, strides: list[list[int]], n_outer: int) -> bool:
    """Whether an index expression changes within a row."""
    if index.word == "load":
        return any(s != 0 for s in strides[index.value][n_outer:])
    if index.word == "index":
        return bool(index.value >= n_outer)
    return any(_varies(each, strides, n_outer) for each in index.arguments)


def kernels_of(
    group: Group,
    is_stored: Callable[[GroupValue], bool],
    new_temporary: Callable[[int, dtype], int],
) -> list[Kernel]:
    """The kernels that do a group's work, in order.

    new_temporary(elements, dtype) gives the slot of fresh memory for partial results.
    """
    emitter = _Emitter(group, is_stored)
    emitter.arrange()
    if group.kind == "columns":
        return _column_kernels(emitter, new_temporary)
    # What is rarely so is asked first: every answer about sizes binds a plan template.
    is_foldable = group.kind == "rows" and _foldable(group)
    if is_foldable and group.inner_size() > LONG_ROW and group.n_rows() < FEW_ROWS:
        return _block_kernels(emitter, new_temporary)
    return [_row_kernel(emitter)]


def _foldable(group: Group) -> bool:
    kinds = [v.reduction_kind for v in group.values if v.reduction is not None]
    return group.phases() == 1 and not any("arg" in kind for kind in kinds) and bool(kinds)


def _nest(emitter: _Emitter, kind: str, phases: tuple[Phase, ...]) -> Nest:
    accesses = tuple(emitter.access_of(n) for n in range(len(emitter.accesses)))
    numbers = emitter.number_dtypes()
    return Nest(kind, emitter.n_outer, accesses, phases, numbers, tuple(emitter.group.scratch))


def _element_ns(emitter: _Emitter) -> tuple[float, int]:
    """Rough cost of one iteration, and bytes it moves."""
    n_bytes = 0
    for number, access in enumerate(emitter.accesses):
        if emitter.part_strides[number][-1] != 0:
            n_bytes += access.dtype.itemsize
    return emitter.group.operations * OPERATION_NS + n_bytes * BYTE_NS + 0.05, n_bytes


def _rows_of(emitter: _Emitter) -> int:
    count = 1
    for size in emitter.sizes[: emitter.n_outer]:
        count *= size
    return count


def _row_kernel(emitter: _Emitter) -> Kernel:
    inner = emitter.sizes[-1]
    rows = _rows_of(emitter)
    nest = _nest(emitter, "rows", emitter.phases())
    block = inner
    if nest.is_map and len(nest.phases) == 1 and not nest.row_stores:
        block = min(inner, MAP_BLOCK)
    element_ns, n_bytes = _element_ns(emitter)
    blocks = -(-inner // block) if block else 1
    scratch = sum((inner * d.itemsize + 1087) // 64 * 64 for d in emitter.group.scratch)
    return Kernel(
        nest, emitter.words(nest, [inner, block]), rows * blocks,
        element_ns * block + 10, scratch, n_bytes * rows * inner,
    )  # fmt: skip


class _Partials:
    """Buffers of partial results: one a reduction, rows x blocks (x columns) elements."""

    def __init__(
        self, emitter: _Emitter, count: int, new_temporary: Callable[[int, dtype], int]
    ) -> None:
        self.reduced: list[tuple[GroupValue, Expression, int]] = []
        for value in emitter.group.values:
            if value.reduction is None:
                continue
            leaf = value.expression
            while leaf.word != "reduced":
                leaf = leaf.arguments[0]
            self.reduced.append((value, leaf, new_temporary(count, leaf.dtype)))

    def stores(self, first_access: int) -> tuple[Store, ...]:
        """Stores of the partial values, through accesses numbered from first_access."""
        return tuple(
            Store(first_access + n, leaf) for n, (_, leaf, _) in enumerate(self.reduced)
        )

    def folds(self) -> tuple[Reduce, ...]:
        """Reductions over the partials, numbered as the originals."""
        return tuple(
            Reduce(
                leaf.value,
                {"sum": "tree_sum", "prod": "tree_prod"}.get(
                    value.reduction_kind, value.reduction_kind
                ),
                expression("load", (), leaf.dtype, n),
            )
            for n, (value, leaf, _) in enumerate(self.reduced)
        )


def _fold_accesses(
    emitter: _Emitter, partials: _Partials
) -> tuple[list[int], dict[int, int], tuple[Store, ...]]:
    """Row-level accesses the fold needs, their new numbers, and the row stores rewritten."""
    first = len(partials.reduced)
    stores = [store for phase in emitter.phases() for store in phase.row]
    used: list[int] = []
    stack = [store.value for store in stores]
    for store in stores:
        used.append(store.access)
    while stack:
        body = stack.pop()
        if body.word == "load" and body.value not in used:
            used.append(body.value)
        stack.extend(body.arguments)
    used.sort()
    numbering = {old: first + new for new, old in enumerate(used)}
    rewritten = tuple(
        Store(numbering[store.access], _renumbered(store.value, numbering)) for store in stores
    )
    return used, numbering, rewritten


def _renumbered(body: Expression, numbering: dict[int, int]) -> Expression:
    if body.word == "load":
        return expression("load", (), body.dtype, numbering[body.value])
    if not body.arguments:
        return body
    arguments = tuple(_renumbered(each, numbering) for each in body.arguments)
    return expression(body.word, arguments, body.dtype, body.value)


def _block_kernels(
    emitter: _Emitter, new_temporary: Callable[[int, dtype], int]
) -> list[Kernel]:
    """Few long rows: partial values of blocks of 1024, then one fold a row."""
    group = emitter.group
    inner, rows = emitter.sizes[-1], _rows_of(emitter)
    blocks = -(-inner // loops.BLOCK)
    partials = _Partials(emitter, rows * blocks, new_temporary)
    # Row-level stores move to the fold; element stores stay with the loop.
    row_accesses = {store.access for phase in emitter.phases() for store in phase.row}
    kept = [n for n in range(len(emitter.accesses)) if n not in row_accesses]
    numbering = {old: new for new, old in enumerate(kept)}
    loop = emitter.phases()[0].loop
    body = _with_accesses(loop, numbering)
    accesses = [_renumber_index(emitter.access_of(n), numbering) for n in kept]
    first = len(accesses)
    accesses += [Access(leaf.dtype, "unit", True) for _, leaf, _ in partials.reduced]
    numbers = emitter.number_dtypes()
    nest = Nest(
        "blocks", emitter.n_outer, tuple(accesses), (Phase(body, partials.stores(first)),), numbers
    )
    words: list[Word] = [inner, loops.BLOCK, *emitter.sizes[: emitter.n_outer]]
    for old in kept:
        emitter.access_words(words, old, emitter.access_of(old), False)
    for _, leaf, slot in partials.reduced:
        size = leaf.dtype.itemsize
        words.append(Pointer(slot, 0))
        words.extend(s * size for s in _outer_strides(emitter, blocks))
        words.append(size)
    words.extend(_number_word(n) for n in group.numbers)
    element_ns, n_bytes = _element_ns(emitter)
    blocks_kernel = Kernel(
        nest, words, rows * blocks, element_ns * loops.BLOCK + 10, 0,
        n_bytes * rows * inner,
    )  # fmt: skip
    return [blocks_kernel, _row_fold(emitter, partials, blocks)]


def _outer_strides(emitter: _Emitter, innermost: int) -> list[int]:
    """Row-major strides over the outer dimensions, in units of `innermost` elements."""
    strides = []
    step = innermost
    for size in reversed(emitter.sizes[: emitter.n_outer]):
        strides.append(step)
        step *= size
    return strides[::-1]


def _with_accesses(
    loop: tuple[loops.Statement, ...], numbering: dict[int, int]
) -> tuple[loops.Statement, ...]:
    made: list[loops.Statement] = []
    for statement in loop:
        value = _renumbered(statement.value, numbering)
        if isinstance(statement, Store):
            made.append(Store(numbering[statement.access], value))
        elif isinstance(statement, Keep):
            made.append(Keep(statement.scratch, value))
        else:
            made.append(Reduce(statement.number, statement.kind, value))
    return tuple(made)


def _renumber_index(access: Access, numbering: dict[int, int]) -> Access:
    if access.index is None:
        return access
    return Access(
        access.dtype, access.inner, access.row_level, _renumbered(access.index, numbering)
    )


def _row_fold(emitter: _Emitter, partials: _Partials, blocks: int) -> Kernel:
    used, _, stores = _fold_accesses(emitter, partials)
    accesses = [Access(leaf.dtype, "unit") for _, leaf, _ in partials.reduced]
    accesses += [emitter.access_of(n) for n in used]
    numbers = emitter.number_dtypes()
    # A fold of partials is alone in its phase.
    folds = partials.folds()
    phases = [Phase((fold,)) for fold in folds[:-1]] + [Phase((folds[-1],), stores)]
    nest = Nest("rows", emitter.n_outer, tuple(accesses), tuple(phases), numbers)
    words: list[Word] = [blocks, blocks, *emitter.sizes[: emitter.n_outer]]
    for _, leaf, slot in partials.reduced:
        size = leaf.dtype.itemsize
        words.append(Pointer(slot, 0))
        words.extend(s * size for s in _outer_strides(emitter, blocks))
    for old in used:
        emitter.access_words(words, old, emitter.access_of(old), False)
    words.extend(_number_word(n) for n in emitter.group.numbers)
    return Kernel(nest, words, _rows_of(emitter), blocks * 0.2 + 10, 0, 0)


def _column_kernels(
    emitter: _Emitter, new_temporary: Callable[[int, dtype], int]
) -> list[Kernel]:
    """Reduction over other axes: one kernel, or partials of 128 rows and a fold."""
    group = emitter.group
    reduced, inner = emitter.sizes[-2], emitter.sizes[-1]
    rows = _rows_of(emitter)
    element_ns, n_bytes = _element_ns(emitter)
    block = min(inner, COLUMN_BLOCK) or 1
    column_blocks = -(-inner // block)
    row_blocks = -(-reduced // loops.ROW_BLOCK)
    kinds = [v.reduction_kind for v in group.values if v.reduction is not None]
    # Columns have one phase, and a fold of partials is alone in it.
    foldable = len(kinds) == 1 and "arg" not in kinds[0]
    total_ns = rows * reduced * inner * element_ns
    if foldable and row_blocks > 1 and rows * column_blocks < FEW_ROWS and total_ns > 2 * CHUNK_NS:
        return _column_block_kernels(emitter, new_temporary, block, row_blocks)
    nest = _nest(emitter, "columns", emitter.phases())
    words = emitter.words(nest, [inner, block, reduced])
    return [
        Kernel(
            nest, words, rows * column_blocks, element_ns * block * reduced + 10, 0,
            n_bytes * rows * reduced * inner,
        )
    ]  # fmt: skip


def _column_block_kernels(
    emitter: _Emitter,
    new_temporary: Callable[[int, dtype], int],
    block: int,
    row_blocks: int,
) -> list[Kernel]:
    group = emitter.group
    reduced, inner = emitter.sizes[-2], emitter.sizes[-1]
    rows = _rows_of(emitter)
    partials = _Partials(emitter, rows * row_blocks * inner, new_temporary)
    row_accesses = {store.access for phase in emitter.phases() for store in phase.row}
    kept = [n for n in range(len(emitter.accesses)) if n not in row_accesses]
    numbering = {old: new for new, old in enumerate(kept)}
    body = _with_accesses(emitter.phases()[0].loop, numbering)
    accesses = [_renumber_index(emitter.access_of(n), numbering) for n in kept]
    first = len(accesses)
    accesses += [Access(leaf.dtype, "unit") for _, leaf, _ in partials.reduced]
    numbers = emitter.number_dtypes()
    nest = Nest(
        "column_blocks", emitter.n_outer, tuple(accesses),
        (Phase(body, partials.stores(first)),), numbers,
    )  # fmt: skip
    words: list[Word] = [inner, block, reduced, *emitter.sizes[: emitter.n_outer]]
    for old in kept:
        emitter.access_words(words, old, emitter.access_of(old), True)
    for _, leaf, slot in partials.reduced:
        size = leaf.dtype.itemsize
        words.append(Pointer(slot, 0))
        words.extend(s * size for s in _outer_strides(emitter, row_blocks * inner))
        words += [inner * size, 0]  # stride of a block, stride of a reduced row
    words.extend(_number_word(n) for n in group.numbers)
    element_ns, n_bytes = _element_ns(emitter)
    column_blocks = -(-inner // block)
    blocks_kernel = Kernel(
        nest, words, rows * column_blocks * row_blocks,
        element_ns * block * loops.ROW_BLOCK + 10, 0, n_bytes * rows * reduced * inner,
    )  # fmt: skip
    return [blocks_kernel, _column_fold(emitter, partials, block, row_blocks)]


def _column_fold(
    emitter: _Emitter, partials: _Partials, block: int, row_blocks: int
) -> Kernel:
    inner, rows = emitter.sizes[-1], _rows_of(emitter)
    used, _, stores = _fold_accesses(emitter, partials)
    accesses = [Access(leaf.dtype, "unit") for _, leaf, _ in partials.reduced]
    accesses += [emitter.access_of(n) for n in used]
    numbers = emitter.number_dtypes()
    nest = Nest(
        "columns", emitter.n_outer, tuple(accesses), (Phase(partials.folds(), stores),), numbers
    )
    words: list[Word] = [inner, block, row_blocks, *emitter.sizes[: emitter.n_outer]]
    for _, leaf, slot in partials.reduced:
        size = leaf.dtype.itemsize
        words.append(Pointer(slot, 0))
        words.extend(s * size for s in _outer_strides(emitter, row_blocks * inner))
        words.append(inner * size)
    for old in used:
        emitter.access_words(words, old, emitter.access_of(old), True)
    words.extend(_number_word(n) for n in emitter.group.numbers)
    units = rows * -(-inner // block)
    return Kernel(nest, words, units, block * row_blocks * 0.2 + 10, 0, 0)
