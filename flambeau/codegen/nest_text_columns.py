"""Text of kinds "columns" and "column_blocks": reductions over the dimension before the inner one.

Keeps     every column adds its rows in order, in blocks of 128, whichever columns share a vector.
Touches   the other nest_text files.
Not here  reductions along the inner dimension (nest_text_rows.py).

Columns are taken several vectors at a time while that many remain, then one vector at a time,
whose last is partial.
"""

from __future__ import annotations

from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.codegen.llvm_reader import Operand
from flambeau.codegen.loops import ROW_BLOCK, Reduce, Statement, Store
from flambeau.codegen.nest_text_frame import Code, Frame, from_memory, to_memory
from flambeau.codegen.nest_text_reduce import (
    Counter,
    Reducer,
    State,
    held_state,
    hold,
    reader_into,
)
from flambeau.codegen.nest_text_scopes import (
    Levels,
    RowScope,
    StepScope,
    VectorScope,
    broadcast,
)
from flambeau.codegen.nest_text_stores import (
    VectorStore,
    store_by_lane,
    store_part,
    store_whole,
)
from flambeau.codegen.vocabulary import MATH_WORDS, Expression

_CHEAP_WORDS: Final = 8  # values of more words keep the units busy with one vector of columns
_ACCUMULATOR_VECTORS: Final = 4  # machine vectors per lane vector (2) x column vectors


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
        self.block = 1 if any(trees) else ROW_BLOCK

    def write(self, code: Code) -> None:
        """The whole function body."""
        self.frame.write_rows(code, self._row)

    def _row(self, code: Code, first: str, stop: str, part: str) -> None:
        self.row.part = part
        fresh = self.frame.module.fresh
        region = Code(self.frame.module)
        start, done = fresh("columns"), fresh("done")
        region.label(start)
        at = self.frame.slot("i64")
        region.do(f"store i64 {first}, ptr {at}")
        for width in sorted({self._width(), 1}, reverse=True):
            head, body, after = fresh("chunk"), fresh("chunk"), fresh("chunk")
            region.jump(head)
            region.label(head)
            column = region.value(f"load i64, ptr {at}")
            following = region.value(f"add i64 {column}, {width * self.lanes}")
            if width > 1:
                fits = region.value(f"icmp sle i64 {following}, {stop}")
            else:
                fits = region.value(f"icmp slt i64 {column}, {stop}")
            region.branch(fits, body, after)
            region.label(body)
            self._chunk(region, column, stop, width, part)
            region.do(f"store i64 {following}, ptr {at}")
            region.jump(head)
            region.label(after)
        region.jump(done)
        region.label(done)
        code.absorb(self.row.reader.lines)
        code.jump(start)
        code.append(region)

    def _width(self) -> int:
        """How many lane vectors of columns are reduced at a time."""
        n_bytes = sum(of.itemsize for each in self.reducers for of in each.dtypes)
        words: set[Expression] = set()
        stack = [each.value for each in self.statements]
        while stack:
            top = stack.pop()
            if top.arguments and top not in words:
                words.add(top)
                stack += top.arguments
        if len(words) > _CHEAP_WORDS or any(each.word in MATH_WORDS for each in words):
            return 1
        return max(1, min(4, 4 * _ACCUMULATOR_VECTORS // max(4, n_bytes)))

    # ---- one chunk of columns

    def _chunk(self, code: Code, column: str, stop: str, width: int, part: str) -> None:
        """Reduces `width` vectors of columns from `column` on and runs the code after them."""
        positions = [column]
        for u in range(1, width):
            positions.append(code.value(f"add i64 {column}, {u * self.lanes}"))
        size = self.frame.word("reduced_size")
        if part:
            first = code.value(f"mul i64 {part}, {ROW_BLOCK}")
            until = code.smaller(code.value(f"add i64 {first}, {ROW_BLOCK}"), size)
        else:
            first, until = "0", size
        if not part and any(each.ordered for each in self.reducers):
            states = self._blocked(code, positions, stop, until)
        else:
            states = self._loop(code, positions, stop, first, until, self._identities(width))
        results: list[dict[int, Operand]] = []
        for u in range(width):
            reader = reader_into(self.frame, code.lines, self.lanes)
            results.append(
                {
                    each.statement.number: each.finished(reader, state, first)
                    for each, state in zip(self.reducers, states[u], strict=True)
                }
            )
        for position, found in zip(positions, results, strict=True):
            self._after(code, position, stop, found, whole=width > 1)

    def _identities(self, width: int) -> list[list[State]]:
        reader = reader_into(self.frame, [], self.lanes)
        return [[each.identity(reader) for each in self.reducers] for _ in range(width)]

    def _after(
        self, code: Code, position: str, stop: str, results: dict[int, Operand], whole: bool
    ) -> None:
        """phase.row for one vector of columns."""

        def reduced(number: int, _of: dtype) -> Operand:
            return results[number]

        step = StepScope(self.row, "")
        scope = VectorScope(step, position, stop, reduced)
        operands = [scope.value(each.value) for each in self.phase.row]
        stores = [
            VectorStore(scope, each.access, operand)
            for each, operand in zip(self.phase.row, operands, strict=True)
        ]
        code.absorb(step.reader.lines)
        code.absorb(scope.reader.lines)
        self._store(code, stores, position, stop, whole)

    def _store(
        self, code: Code, stores: list[VectorStore], position: str, stop: str, whole: bool
    ) -> None:
        if not stores:
            return
        frame = self.frame
        left = code.value(f"sub i64 {stop}, {position}")
        store_by_lane(code, frame, [each for each in stores if each.by_lane], left)
        stores = [each for each in stores if not each.by_lane]
        if whole or not stores:
            store_whole(code, stores)
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

    # ---- the loop over the reduced dimension

    def _loop(
        self,
        code: Code,
        positions: list[str],
        stop: str,
        first: str,
        until: str,
        initial: list[list[State]],
    ) -> list[list[State]]:
        """Folds reduced positions [first, until) in order; states by vector and reduction."""
        frame = self.frame
        fresh = frame.module.fresh
        loop, done = fresh("loop"), fresh("done")
        before = code.block
        code.branch(code.value(f"icmp slt i64 {first}, {until}"), loop, done)
        code.label(loop)
        mark = len(code.lines)
        reduced, following = "%" + fresh("at"), "%" + fresh("at")
        current = [[self._names(state) for state in states] for states in initial]
        step = StepScope(self.row, reduced)
        after: list[list[State]] = []
        lines: list[str] = []
        stores: list[list[VectorStore]] = []
        for position, states in zip(positions, current, strict=True):
            scope = VectorScope(step, position, stop)
            after.append([])
            stores.append([])
            remaining = iter(zip(self.reducers, states, strict=True))
            operands = [scope.value(each.value) for each in self.statements]
            for statement, operand in zip(self.statements, operands, strict=True):
                if isinstance(statement, Store):
                    stores[-1].append(VectorStore(scope, statement.access, operand))
                    continue
                reducer, state = next(remaining)
                element: State = (operand,)
                if reducer.positional:
                    element = (operand, self._reduced_position(step, reduced))
                after[-1].append(reducer.take(scope.reader, state, element))
            lines += scope.reader.lines
        code.absorb(step.reader.lines)
        code.absorb(lines)
        for position, listed in zip(positions, stores, strict=True):
            self._store(code, listed, position, stop, whole=len(positions) > 1)
        code.do(f"{following} = add i64 {reduced}, 1")
        end = code.block
        code.branch(code.value(f"icmp slt i64 {following}, {until}"), loop, done)
        phis = [f"  {reduced} = phi i64 [{first}, %{before}], [{following}, %{end}]"]
        phis += self._phis(current, (initial, before), (after, end))
        code.lines[mark:mark] = phis
        code.label(done)
        final = [[self._names(state) for state in states] for states in initial]
        code.lines += self._phis(final, (initial, before), (after, end))
        return final

    def _reduced_position(self, step: StepScope, reduced: str) -> Operand:
        from flambeau.base import dtypes

        text = broadcast(step.reader, reduced, "i64", self.lanes)
        return Operand(text, dtypes.int64)

    def _names(self, state: State) -> State:
        fresh = self.frame.module.fresh
        return tuple(Operand("%" + fresh("acc"), each.dtype) for each in state)

    def _phis(self, names: list[list[State]], *sources: tuple[list[list[State]], str]) -> list[str]:
        type_of = reader_into(self.frame, [], self.lanes).type_of
        lines = []
        for u, states in enumerate(names):
            for r, state in enumerate(states):
                for c, name in enumerate(state):
                    listed = ", ".join(
                        f"[{values[u][r][c].text}, %{block}]" for values, block in sources
                    )
                    lines.append(f"  {name.text} = phi {type_of(name.dtype)} {listed}")
        return lines

    def _blocked(
        self, code: Code, positions: list[str], stop: str, until: str
    ) -> list[list[State]]:
        """Blocks of the reduced dimension, whose values the binary counter folds."""
        frame, lanes = self.frame, self.lanes
        fresh = frame.module.fresh
        pairs = [(u, r) for u in range(len(positions)) for r in range(len(self.reducers))]
        ordered = [(u, r) for u, r in pairs if self.reducers[r].ordered]
        free = [(u, r) for u, r in pairs if not self.reducers[r].ordered]
        counter = Counter(frame, [self.reducers[r] for _, r in ordered], lanes)
        counter.reset(code)
        states = self._identities(len(positions))
        held = {(u, r): hold(frame, code, states[u][r]) for u, r in free}
        at = frame.slot("i64")
        code.do(f"store i64 0, ptr {at}")
        block, total = fresh("block"), fresh("total")
        code.jump(block)
        code.label(block)
        first = code.value(f"load i64, ptr {at}")
        end = code.smaller(code.value(f"add i64 {first}, {self.block}"), until)
        code.do(f"store i64 {end}, ptr {at}")
        for u, r in free:
            states[u][r] = held_state(frame, code, held[u, r], states[u][r])
        states = self._loop(code, positions, stop, first, end, states)
        for u, r in free:
            hold(frame, code, states[u][r], held[u, r])
        reader = reader_into(frame, code.lines, lanes)
        is_last = code.value(f"icmp sge i64 {end}, {until}")
        values = [to_memory(reader, states[u][r][0]) for u, r in ordered]
        values = counter.add(code, values, is_last)
        code.branch(is_last, total, block)
        code.label(total)
        for (u, r), text in zip(ordered, values, strict=True):
            states[u][r] = (from_memory(reader, text, self.reducers[r].result),)
        return states
