"""Beginning the next row in the second phase of the current one.

Keeps     the order within every row; a row's reductions are read before those of the next one are
          written in their place.
Touches   frame, scopes, loops.
Not here  the loops that do it (rows.py), asking memory for rows (next_row.py).

What a phase reduces, the next one waits for: lanes are folded, the result goes to all of them, and
meanwhile nothing is computed. With the first phase of the next row beside the second of this one,
that wait is gone, and one loop of each row. The text has the second phase twice, with and without.
"""

from __future__ import annotations

from typing import Final

from flambeau.codegen.loops import Reduce
from flambeau.codegen.nest_text.frame import Code, Frame
from flambeau.codegen.nest_text.next_row import loads_of
from flambeau.codegen.nest_text.scopes import RowScope
from flambeau.codegen.nest_text.stores import may_pass_caches

# Elements of the longest row that is begun early: three rows are to share the first cache.
SHORT: Final = 1024


def can_begin_next(frame: Frame) -> bool:
    """Whether the second phase may do the first one's work for the next row: that work is to
    reduce what depends on nothing but the row's own elements."""
    nest = frame.nest
    if nest.kind != "rows" or not nest.n_outer or not nest.phases[1:]:
        return False
    first, second = nest.phases[:2]
    statements = [*first.loop, *second.loop]
    if not first.loop or not second.loop or first.row:
        return False
    if any(isinstance(each, Reduce) and each.kind.startswith("tree_") for each in statements):
        return False
    if any(not isinstance(each, Reduce) or each.value.uses_index for each in first.loop):
        return False
    return all(nest.accesses[each].index is None for each in loads_of(first))


def may_begin_next(frame: Frame, code: Code) -> str:
    """i1: there is a next row of the same last dimension, short enough to share the first cache,
    and no results pass the caches, beside which reading takes longer than waiting."""
    nest, entry = frame.nest, frame.entry
    holds = code.value(f"icmp sle i64 {frame.word('inner_size')}, {SHORT}")
    holds = code.value(f"and i1 {holds}, {frame.has_next(code)}")
    for phase in nest.phases[1:]:
        stores = may_pass_caches(nest, phase)
        if stores:
            small = entry.emit(f"xor i1 {frame.is_large(stores)}, true")
            holds = code.value(f"and i1 {holds}, {small}")
    return holds


def next_row_scope(row: RowScope) -> RowScope:
    """The scope of the row after `row` in the last outer dimension; its lines belong after that
    one's."""
    frame = row.frame
    strides = [
        frame.word(f"stride.{number}.{frame.nest.n_outer - 1}")
        for number in range(len(frame.nest.accesses))
    ]
    return row.moved(strides)
