"""From a finished group to kernels: loop IR and what its run-time words are bound to.

Keeps     everything that depends on a size, a stride or an address is a bound word, never part of
          the Nest. How a reduction is cut into units (rows, blocks, column blocks) changes no bit.
Touches   base.dtypes, codegen.loops, group.
Not here  memory and program words (plan.py), the decision what is stored (plan.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.codegen import loops
from flambeau.codegen.loops import Access, Keep, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import Expression, expression
from flambeau.engine.planning.alignment import GroupValue
from flambeau.engine.planning.emitter import (
    CHUNK_NS,
    Emitter,
    Kernel,
    Pointer,
    Word,
    number_word,
)
from flambeau.engine.planning.group import Group
from flambeau.engine.planning.joining import FEW_ROWS, LONG_ROW

# Elements of a map's row handled as one unit of work.
MAP_BLOCK: Final = 8192
# Columns handled as one unit of a reduction over other axes: as many as stream from memory.
COLUMN_BLOCK: Final = 1024
# Rough nanoseconds per element: one word of arithmetic, one byte moved.
OPERATION_NS: Final = 0.12
BYTE_NS: Final = 0.05


def kernels_of(
    group: Group,
    is_stored: Callable[[GroupValue], bool],
    new_temporary: Callable[[int, dtype], int],
) -> list[Kernel]:
    """The kernels that do a group's work, in order.

    new_temporary(elements, dtype) gives the slot of fresh memory for partial results.
    """
    emitter = Emitter(group, is_stored)
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


def _nest(emitter: Emitter, kind: str, phases: tuple[Phase, ...]) -> Nest:
    accesses = tuple(emitter.access_of(n) for n in range(len(emitter.accesses)))
    numbers = emitter.number_dtypes()
    return Nest(kind, emitter.n_outer, accesses, phases, numbers, tuple(emitter.group.scratch))


def _element_ns(emitter: Emitter) -> tuple[float, int]:
    """Rough cost of one iteration, and bytes it moves."""
    n_bytes = 0
    for number, access in enumerate(emitter.accesses):
        if emitter.part_strides[number][-1] != 0:
            n_bytes += access.dtype.itemsize
    return emitter.group.operations * OPERATION_NS + n_bytes * BYTE_NS + 0.05, n_bytes


def _rows_of(emitter: Emitter) -> int:
    count = 1
    for size in emitter.sizes[: emitter.n_outer]:
        count *= size
    return count


def _row_kernel(emitter: Emitter) -> Kernel:
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
        self, emitter: Emitter, count: int, new_temporary: Callable[[int, dtype], int]
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
        return tuple(Store(first_access + n, leaf) for n, (_, leaf, _) in enumerate(self.reduced))

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
    emitter: Emitter, partials: _Partials
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


def _block_kernels(emitter: Emitter, new_temporary: Callable[[int, dtype], int]) -> list[Kernel]:
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
    words.extend(number_word(n) for n in group.numbers)
    element_ns, n_bytes = _element_ns(emitter)
    blocks_kernel = Kernel(
        nest, words, rows * blocks, element_ns * loops.BLOCK + 10, 0,
        n_bytes * rows * inner,
    )  # fmt: skip
    return [blocks_kernel, _row_fold(emitter, partials, blocks)]


def _outer_strides(emitter: Emitter, innermost: int) -> list[int]:
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


def _row_fold(emitter: Emitter, partials: _Partials, blocks: int) -> Kernel:
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
    words.extend(number_word(n) for n in emitter.group.numbers)
    return Kernel(nest, words, _rows_of(emitter), blocks * 0.2 + 10, 0, 0)


def _column_kernels(emitter: Emitter, new_temporary: Callable[[int, dtype], int]) -> list[Kernel]:
    """Reduction over other axes: one kernel, or partials of 128 rows and a fold."""
    group = emitter.group
    reduced, inner = emitter.sizes[-2], emitter.sizes[-1]
    rows = _rows_of(emitter)
    element_ns, n_bytes = _element_ns(emitter)
    block = min(inner, COLUMN_BLOCK) or 1
    column_blocks = -(-inner // block)
    row_blocks = -(-reduced // loops.ROW_BLOCK)
    kinds = [v.reduction_kind for v in group.values if v.reduction is not None]
    # Columns have one phase, and folds by the counter are alone in it.
    are_sums = all(kind in ("sum", "prod") for kind in kinds)
    foldable = are_sums or (len(kinds) == 1 and "arg" not in kinds[0])
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
    emitter: Emitter,
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
    words.extend(number_word(n) for n in group.numbers)
    element_ns, n_bytes = _element_ns(emitter)
    column_blocks = -(-inner // block)
    blocks_kernel = Kernel(
        nest, words, rows * column_blocks * row_blocks,
        element_ns * block * loops.ROW_BLOCK + 10, 0, n_bytes * rows * reduced * inner,
    )  # fmt: skip
    return [blocks_kernel, _column_fold(emitter, partials, block, row_blocks)]


def _column_fold(emitter: Emitter, partials: _Partials, block: int, row_blocks: int) -> Kernel:
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
    words.extend(number_word(n) for n in emitter.group.numbers)
    units = rows * -(-inner // block)
    return Kernel(nest, words, units, block * row_blocks * 0.2 + 10, 0, 0)
