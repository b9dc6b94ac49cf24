"""Text of a tile of columns: up to 1024 columns reduced together, row after row.

Keeps     the order within a column is that of columns.py, so the bits are the same.
Touches   the other nest_text files.
Not here  single vectors of columns (columns.py).

The accumulators of a tile lie on the stack, in the first-level cache, while rows stream past.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from flambeau.codegen.cost_reader import cost
from flambeau.codegen.nest_text.frame import Code, from_memory, memory_type, reader_into, to_memory
from flambeau.codegen.nest_text.reduce import Counter, State
from flambeau.codegen.nest_text.scopes import StepScope

# Rows taken at a time where little is done with an element, which else waits for accumulators.
ROWS_AT_ONCE: Final = 4
LIGHT: Final = 4

if TYPE_CHECKING:
    from flambeau.codegen.nest_text.columns import ColumnsText


def write_tile(
    columns: ColumnsText, code: Code, column: str, width: str, first: str, until: str
) -> None:
    """Reduces columns [column, column + width) over positions [first, until)."""
    _Tile(columns, column, width).write(code, first, until)


class _Tile:
    def __init__(self, columns: ColumnsText, column: str, width: str) -> None:
        self.columns = columns
        self.frame = columns.frame
        self.lanes = columns.lanes
        self.column = column
        self.width = width
        self.tile = columns.tile
        statements = columns.statements
        is_light = cost(*[each.value for each in statements]).operations <= LIGHT
        only_reduces = len(columns.reducers) == len(statements)
        self.at_once = ROWS_AT_ONCE if is_light and only_reduces else 1
        # One accumulator of every column for each part of each reduction's state.
        self.buffers = [
            [self.frame.slot(memory_type(of), self.tile) for of in each.dtypes]
            for each in columns.reducers
        ]

    def write(self, code: Code, first: str, until: str) -> None:
        """All blocks, then phase.row."""
        columns = self.columns
        stop = code.value(f"add i64 {self.column}, {self.width}")
        self._each(code, "0", self.width, self.lanes, self._reset)
        if columns.is_blocked:
            self._blocks(code, stop, until)
        else:
            self._rows(code, stop, first, until)

        def finish(inner: Code, offset: str) -> None:
            position = inner.value(f"add i64 {self.column}, {offset}")
            columns.finish(inner, position, stop, self._load(inner, offset), first)

        self._each(code, "0", self.width, self.lanes, finish)

    def _each(
        self, code: Code, first: str, stop: str, step: int, body: Callable[[Code, str], None]
    ) -> None:
        """body(code, position) for positions first, first + step ... below stop; at least one."""
        fresh = self.frame.module.fresh
        before, loop, done = code.block, fresh("each"), fresh("done")
        position, following = "%" + fresh("at"), "%" + fresh("at")
        code.jump(loop)
        code.label(loop)
        mark = len(code.lines)
        body(code, position)
        code.do(f"{following} = add i64 {position}, {step}")
        phi = f"  {position} = phi i64 [{first}, %{before}], [{following}, %{code.block}]"
        code.lines.insert(mark, phi)
        code.branch(code.value(f"icmp slt i64 {following}, {stop}"), loop, done)
        code.label(done)

    def _load(self, code: Code, offset: str) -> list[State]:
        reader = reader_into(self.frame, code.lines, self.lanes)
        states = []
        for reducer, buffers in zip(self.columns.reducers, self.buffers, strict=True):
            state = []
            for of, buffer in zip(reducer.dtypes, buffers, strict=True):
                scalar = memory_type(of)
                address = code.value(f"getelementptr {scalar}, ptr {buffer}, i64 {offset}")
                full = reader.type_of(scalar)
                text = code.value(f"load {full}, ptr {address}, align {of.itemsize}")
                state.append(from_memory(reader, text, of))
            states.append(tuple(state))
        return states

    def _save(self, code: Code, offset: str, states: list[State]) -> None:
        reader = reader_into(self.frame, code.lines, self.lanes)
        for state, buffers in zip(states, self.buffers, strict=True):
            for operand, buffer in zip(state, buffers, strict=True):
                scalar = memory_type(operand.dtype)
                text = to_memory(reader, operand)
                address = code.value(f"getelementptr {scalar}, ptr {buffer}, i64 {offset}")
                size = operand.dtype.itemsize
                code.do(f"store {reader.type_of(scalar)} {text}, ptr {address}, align {size}")

    def _reset(self, code: Code, offset: str) -> None:
        self._save(code, offset, self.columns.identities())

    def _rows(self, code: Code, stop: str, first: str, until: str) -> None:
        """Takes reduced positions [first, until) into the accumulators."""
        if self.at_once > 1:
            count = code.value(f"sub i64 {until}, {first}")
            whole = code.value(f"and i64 {count}, {-self.at_once}")
            middle = code.value(f"add i64 {first}, {whole}")
            self._some_rows(code, stop, first, middle, self.at_once)
            first = middle
        self._some_rows(code, stop, first, until, 1)

    def _some_rows(self, code: Code, stop: str, first: str, until: str, at_once: int) -> None:
        """Takes rows in order, so many each time that an accumulator is loaded."""
        fresh = self.frame.module.fresh
        some, none = fresh("rows"), fresh("none")
        code.branch(code.value(f"icmp slt i64 {first}, {until}"), some, none)
        code.label(some)

        def rows(outer: Code, reduced: str) -> None:
            each = [reduced, *[outer.value(f"add i64 {reduced}, {n}") for n in range(1, at_once)]]
            steps = [StepScope(self.columns.row, one) for one in each]
            region = Code(self.frame.module)
            start = fresh("row")
            region.label(start)

            def vector(inner: Code, offset: str) -> None:
                position = inner.value(f"add i64 {self.column}, {offset}")
                states = self._load(inner, offset)
                for step in steps:
                    states = self.columns.take(inner, step, position, stop, states)
                self._save(inner, offset, states)

            self._each(region, "0", self.width, self.lanes, vector)
            for step in steps:
                outer.absorb(step.reader.lines)
            outer.jump(start)
            outer.append(region)

        self._each(code, first, until, at_once, rows)
        code.jump(none)
        code.label(none)

    def _blocks(self, code: Code, stop: str, until: str) -> None:
        """Blocks of the reduced dimension, folded by one binary counter for all columns."""
        frame, reducers = self.frame, self.columns.reducers
        ordered = [r for r, each in enumerate(reducers) if each.ordered]
        counter = Counter(frame, [reducers[r] for r in ordered], self.lanes, self.tile)
        counter.reset(code)
        at = frame.slot("i64")
        code.do(f"store i64 0, ptr {at}")
        block, total = frame.module.fresh("block"), frame.module.fresh("total")
        code.jump(block)
        code.label(block)
        first = code.value(f"load i64, ptr {at}")
        end = code.smaller(code.value(f"add i64 {first}, {self.columns.block}"), until)
        code.do(f"store i64 {end}, ptr {at}")
        self._rows(code, stop, first, end)
        is_last = code.value(f"icmp sge i64 {end}, {until}")
        counter.next_block(code, is_last)

        def fold(inner: Code, offset: str) -> None:
            """The accumulators hold the total after the last block, the identity before others."""
            states = self._load(inner, offset)
            reader = reader_into(frame, inner.lines, self.lanes)
            values = [to_memory(reader, states[r][0]) for r in ordered]
            values = counter.fold(inner, values, offset)
            reader = reader_into(frame, inner.lines, self.lanes)
            identities = self.columns.identities()
            for r, text in zip(ordered, values, strict=True):
                of = reader.type_of(reducers[r].result)
                kept = f"select i1 {is_last}, {of} {text}, {of} {identities[r][0].text}"
                states[r] = (reader.operand(kept, reducers[r].result),)
            self._save(inner, offset, states)

        self._each(code, "0", self.width, self.lanes, fold)
        code.branch(is_last, total, block)
        code.label(total)
