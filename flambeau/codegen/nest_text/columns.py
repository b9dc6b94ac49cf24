"""Text of kinds "columns" and "column_blocks": reductions over the dimension before the inner one.

Keeps     every column adds its rows in order, in blocks of 128, whichever columns share a vector.
Touches   the other nest_text files.
Not here  reductions along the inner dimension (rows.py); tiles of many columns
          (tiles.py), which hold their accumulators in memory.

While many columns remain, tiles of them are reduced row by row, so that memory is read in the
order it lies in. Few columns (or the last of many) are reduced one vector at a time, with the
accumulators in registers.
"""

from __future__ import annotations

from typing import Final

from flambeau.base import dtypes
from flambeau.codegen.llvm_reader import Operand
from flambeau.codegen.loops import LANES, ROW_BLOCK, Reduce, Statement, Store
from flambeau.codegen.nest_text.frame import Code, Frame, from_memory, reader_into, to_memory
from flambeau.codegen.nest_text.reduce import (
    Counter,
    Reducer,
    State,
    held_state,
    hold,
)
from flambeau.codegen.nest_text.scopes import Levels, RowScope, StepScope, broadcast
from flambeau.codegen.nest_text.stores import (
    VectorStore,
    sorted_out,
    store_by_lane,
    store_part,
    store_whole,
)
from flambeau.codegen.nest_text.vectors import VectorScope

# Bytes of a tile's accumulators, of two reductions say. Rows of a tile shorter than a page halve
# the bandwidth: the prefetcher starts anew at every page.
TILE_BYTES: Final = 8192


class ColumnsText:
    """Writes the work of one row of a columns nest."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.lanes = frame.lanes
        self.row = RowScope(frame, Levels(frame.nest))
        (phase,) = frame.nest.phases
        self.phase = phase
        if not all(isinstance(each, (Reduce, Store)) for each in phase.loop):
            raise ValueError("a columns nest keeps no scratch rows")
        self.statements: tuple[Statement, ...] = phase.loop
        self.reducers = [Reducer(s, self.lanes) for s in phase.loop if isinstance(s, Reduce)]
        trees = [each.statement.kind.startswith("tree_") for each in self.reducers]
        if any(trees) and not all(trees):
            raise ValueError("a phase that folds partials does nothing else")
        n_bytes = sum(of.itemsize for each in self.reducers for of in each.dtypes)
        self.tile = max(256, TILE_BYTES // max(4, n_bytes) // LANES * LANES)  # columns
        self.block = 1 if any(trees) else ROW_BLOCK
        self.is_blocked = frame.nest.kind == "columns" and any(r.ordered for r in self.reducers)

    def write(self, code: Code) -> None:
        """The whole function body."""
        self.frame.write_rows(code, self._row)

    def _row(self, code: Code, first: str, stop: str, part: str) -> None:
        from flambeau.codegen.nest_text.tiles import write_tile

        self.row.part = part
        fresh = self.frame.module.fresh
        region = Code(self.frame.module)
        start, tiles, tile, vectors, vector, done = (
            fresh("columns"), fresh("tiles"), fresh("tile"), fresh("vectors"), fresh("vector"),
            fresh("done"),
        )  # fmt: skip
        region.label(start)
        at = self.frame.slot("i64")
        region.do(f"store i64 {first}, ptr {at}")
        from_, until = self._range(region, part)
        region.jump(tiles)

        region.label(tiles)
        column = region.value(f"load i64, ptr {at}")
        left = region.value(f"sub i64 {stop}, {column}")
        many = region.value(f"icmp sge i64 {left}, {2 * self.lanes}")
        region.branch(many, tile, vectors)
        region.label(tile)
        width = region.smaller(left, str(self.tile))
        write_tile(self, region, column, width, from_, until)
        region.do(f"store i64 {region.value(f'add i64 {column}, {width}')}, ptr {at}")
        region.jump(tiles)

        region.label(vectors)
        column = region.value(f"load i64, ptr {at}")
        region.branch(region.value(f"icmp slt i64 {column}, {stop}"), vector, done)
        region.label(vector)
        self._vector(region, column, stop, from_, until)
        region.do(f"store i64 {region.value(f'add i64 {column}, {self.lanes}')}, ptr {at}")
        region.jump(vectors)

        region.label(done)
        code.absorb(self.row.reader.lines)
        code.jump(start)
        code.append(region)

    def _range(self, code: Code, part: str) -> tuple[str, str]:
        """Positions of the reduced dimension that belong to the unit."""
        size = self.frame.word("reduced_size")
        if not part:
            return "0", size
        first = code.value(f"mul i64 {part}, {ROW_BLOCK}")
        return first, code.smaller(code.value(f"add i64 {first}, {ROW_BLOCK}"), size)

    # ---- what one vector of columns does, in a tile or alone

    def take(
        self, code: Code, step: StepScope, position: str, stop: str, states: list[State]
    ) -> list[State]:
        """States after one position of the reduced dimension; the loop's stores are done."""
        scope = VectorScope(step, position, stop)
        after: list[State] = []
        stores = []
        remaining = iter(zip(self.reducers, states, strict=True))
        operands = [scope.value(each.value) for each in self.statements]
        for statement, operand in zip(self.statements, operands, strict=True):
            if isinstance(statement, Store):
                stores.append(VectorStore(scope, statement.access, operand))
                continue
            reducer, state = next(remaining)
            element: State = (operand,)
            if reducer.positional:
                text = broadcast(step.reader, step.position, "i64", self.lanes)
                element = (operand, Operand(text, dtypes.int64))
            after.append(reducer.take(scope.reader, state, element))
        code.absorb(scope.reader.lines)
        self._store(code, stores, position, stop)
        return after

    def finish(self, code: Code, position: str, stop: str, states: list[State], first: str) -> None:
        """phase.row."""
        reader = reader_into(self.frame, code.lines, self.lanes)
        results = {
            each.statement.number: each.finished(reader, state, first)
            for each, state in zip(self.reducers, states, strict=True)
        }
        step = StepScope(self.row, "")
        scope = VectorScope(step, position, stop, lambda number, _of: results[number])
        operands = [scope.value(each.value) for each in self.phase.row]
        stores = [
            VectorStore(scope, each.access, operand)
            for each, operand in zip(self.phase.row, operands, strict=True)
        ]
        code.absorb(step.reader.lines)
        code.absorb(scope.reader.lines)
        self._store(code, stores, position, stop)

    def _store(self, code: Code, stores: list[VectorStore], position: str, stop: str) -> None:
        if not stores:
            return
        frame = self.frame
        left = code.value(f"sub i64 {stop}, {position}")
        units, pairs, others = sorted_out(frame, stores)
        store_by_lane(code, frame, others, left)
        stores = units + pairs
        if not stores:
            return
        fresh = frame.module.fresh
        full, partial, done = fresh("whole"), fresh("part"), fresh("stored")
        code.branch(code.value(f"icmp sge i64 {left}, {self.lanes}"), full, partial)
        code.label(full)
        store_whole(code, stores)
        code.jump(done)
        code.label(partial)
        store_part(code, frame, stores, left)
        code.jump(done)
        code.label(done)

    def identities(self) -> list[State]:
        """States before any element."""
        reader = reader_into(self.frame, [], self.lanes)
        return [each.identity(reader) for each in self.reducers]

    # ---- one vector of columns, accumulators in registers

    def _vector(self, code: Code, column: str, stop: str, first: str, until: str) -> None:
        if self.is_blocked:
            states = self._blocked(code, column, stop, until)
        else:
            states = self._loop(code, column, stop, first, until, self.identities())
        self.finish(code, column, stop, states, first)

    def _loop(
        self, code: Code, column: str, stop: str, first: str, until: str, initial: list[State]
    ) -> list[State]:
        """Folds reduced positions [first, until) in order."""
        fresh = self.frame.module.fresh
        loop, done = fresh("loop"), fresh("done")
        before = code.block
        code.branch(code.value(f"icmp slt i64 {first}, {until}"), loop, done)
        code.label(loop)
        mark = len(code.lines)
        reduced, following = "%" + fresh("at"), "%" + fresh("at")
        current = [self._names(state) for state in initial]
        step = StepScope(self.row, reduced)
        here = len(code.lines)
        after = self.take(code, step, column, stop, current)
        code.lines[here:here] = step.reader.lines
        code.do(f"{following} = add i64 {reduced}, 1")
        end = code.block
        code.branch(code.value(f"icmp slt i64 {following}, {until}"), loop, done)
        phis = [f"  {reduced} = phi i64 [{first}, %{before}], [{following}, %{end}]"]
        phis += self._phis(current, (initial, before), (after, end))
        code.lines[mark:mark] = phis
        code.label(done)
        final = [self._names(state) for state in initial]
        code.lines += self._phis(final, (initial, before), (after, end))
        return final

    def _names(self, state: State) -> State:
        fresh = self.frame.module.fresh
        return tuple(Operand("%" + fresh("acc"), each.dtype) for each in state)

    def _phis(self, names: list[State], *sources: tuple[list[State], str]) -> list[str]:
        type_of = reader_into(self.frame, [], self.lanes).type_of
        lines = []
        for r, state in enumerate(names):
            for c, name in enumerate(state):
                listed = ", ".join(f"[{values[r][c].text}, %{block}]" for values, block in sources)
                lines.append(f"  {name.text} = phi {type_of(name.dtype)} {listed}")
        return lines

    def _blocked(self, code: Code, column: str, stop: str, until: str) -> list[State]:
        """Blocks of the reduced dimension, whose values the binary counter folds."""
        frame, lanes = self.frame, self.lanes
        fresh = frame.module.fresh
        ordered = [r for r, each in enumerate(self.reducers) if each.ordered]
        free = [r for r, each in enumerate(self.reducers) if not each.ordered]
        counter = Counter(frame, [self.reducers[r] for r in ordered], lanes, lanes)
        counter.reset(code)
        states = self.identities()
        held = {r: hold(frame, code, states[r]) for r in free}
        at = frame.slot("i64")
        code.do(f"store i64 0, ptr {at}")
        block, total = fresh("block"), fresh("total")
        code.jump(block)
        code.label(block)
        first = code.value(f"load i64, ptr {at}")
        end = code.smaller(code.value(f"add i64 {first}, {self.block}"), until)
        code.do(f"store i64 {end}, ptr {at}")
        for r in free:
            states[r] = held_state(frame, code, held[r], states[r])
        states = self._loop(code, column, stop, first, end, states)
        for r in free:
            hold(frame, code, states[r], held[r])
        reader = reader_into(frame, code.lines, lanes)
        values = [to_memory(reader, states[r][0]) for r in ordered]
        is_last = code.value(f"icmp sge i64 {end}, {until}")
        counter.next_block(code, is_last)
        values = counter.fold(code, values)
        code.branch(is_last, total, block)
        code.label(total)
        for r, text in zip(ordered, values, strict=True):
            states[r] = (from_memory(reader, text, self.reducers[r].result),)
        return states
