"""Text of kinds "rows" and "blocks": phases over the inner dimension of each row.

Keeps     one basic block does the loads and the arithmetic of a vector; its end branches to the
          stores of a whole vector or to those of a partial one, which ends the loop.
Touches   the other nest_text files.
Not here  reductions over other dimensions than the inner one (columns.py).
"""

from __future__ import annotations

from flambeau.codegen.llvm_reader import Operand
from flambeau.codegen.loops import BLOCK, Keep, Phase, Reduce, Store
from flambeau.codegen.nest_text.begun_rows import can_begin_next, may_begin_next, next_row_scope
from flambeau.codegen.nest_text.frame import Code, Frame, memory_type, reader_into, to_memory
from flambeau.codegen.nest_text.next_row import NextRow
from flambeau.codegen.nest_text.reduce import (
    Counter,
    Reducer,
    State,
    held_state,
    hold,
)
from flambeau.codegen.nest_text.scopes import Levels, RowScope
from flambeau.codegen.nest_text.stores import (
    VectorStore,
    past_caches,
    sorted_out,
    store_by_lane,
    store_part,
    store_past_caches,
    store_whole,
)
from flambeau.codegen.nest_text.vectors import VectorScope, valid_lanes

Turns = list[State]  # accumulators of one reduction, the next one to be used first


class RowsText:
    """Writes the work of one row."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.lanes = frame.lanes
        self.ahead: RowScope | None = None  # row whose first phase the loop being written does
        self.row = RowScope(frame, Levels(frame.nest))
        self.coming = NextRow(self.row)
        self.results: dict[int, str] = {}  # reduction -> slot
        # Slot that says whether the row before did this row's first phase; "": it never does.
        self.is_begun = frame.slot("i64") if can_begin_next(frame) else ""

    def write(self, code: Code) -> None:
        """The whole function body."""
        if self.is_begun:
            code.do(f"store i64 0, ptr {self.is_begun}")
        self.frame.write_rows(code, self._row)

    def _row(self, code: Code, first: str, stop: str, part: str) -> None:
        self.row.part = part
        phases = self.frame.nest.phases
        if self.is_begun:
            self._first_two(code, first, stop)
            phases = phases[2:]
        for phase in phases:
            if phase.loop:
                start, region = self._region(phase, first, stop)
                code.absorb(self.row.reader.lines)
                code.jump(start)
                code.append(region)
            self._row_stores(code, phase)

    def _region(
        self, phase: Phase, first: str, stop: str, ahead: RowScope | None = None
    ) -> tuple[str, Code]:
        """A phase's loop, and the label it begins with. Scalars of the row that the loop turns
        out to need are to be written before it."""
        region = Code(self.frame.module)
        start = self.frame.module.fresh("phase")
        region.label(start)
        self._loop(region, phase, first, stop, ahead)
        return start, region

    def _first_two(self, code: Code, first: str, stop: str) -> None:
        """The first phase, where the row before has not done it; then the second, which does the
        next row's first where `may_begin_next` says so. What it reduces is waited for no more."""
        frame, row = self.frame, self.row
        fresh = frame.module.fresh
        before, phase = frame.nest.phases[:2]
        start, region = self._region(before, first, stop)
        code.absorb(row.reader.lines)
        known, both_done = fresh("known"), fresh("both")
        is_begun = code.value(f"load i64, ptr {self.is_begun}")
        code.branch(code.value(f"icmp ne i64 {is_begun}, 0"), known, start)
        code.append(region)
        code.jump(known)
        code.label(known)
        row.load_reduced()
        following = next_row_scope(row)
        both_start, both = self._region(phase, first, stop, following)
        one_start, one = self._region(phase, first, stop)
        code.absorb(row.reader.lines)
        code.absorb(following.reader.lines)
        begins = may_begin_next(frame, code)
        code.do(f"store i64 {code.value(f'zext i1 {begins} to i64')}, ptr {self.is_begun}")
        code.branch(begins, both_start, one_start)
        for each in (both, one):
            code.append(each)
            code.jump(both_done)
        code.label(both_done)
        self._row_stores(code, phase)

    def _row_stores(self, code: Code, phase: Phase) -> None:
        row = self.row
        values = [(each.access, row.value(each.value)) for each in phase.row]
        for access, operand in values:
            pointer = row.pointer(access)
            text = to_memory(row.reader, operand)
            row.reader.lines.append(
                f"  store {memory_type(operand.dtype)} {text}, ptr {pointer}, align 1"
            )
        code.absorb(row.reader.lines)

    def _loop(
        self, code: Code, phase: Phase, first: str, stop: str, ahead: RowScope | None = None
    ) -> None:
        """The loop of a phase; of the first phase, too, for the row `ahead`."""
        self.ahead = ahead
        statements = phase.loop if ahead is None else (*phase.loop, *self.frame.nest.phases[0].loop)
        reducers = [Reducer(s, self.lanes) for s in statements if isinstance(s, Reduce)]
        for each in reducers:
            if each.statement.number not in self.results:
                self.results[each.statement.number] = self.frame.slot(memory_type(each.result))
        results = [self.results[each.statement.number] for each in reducers]
        if any(each.statement.kind.startswith("tree_") for each in reducers):
            self._tree_loop(code, phase, reducers, results, stop)
        elif self.frame.nest.kind == "rows" and any(each.ordered for each in reducers):
            self._blocked_loop(code, phase, reducers, results, stop)
        else:
            states = self._vector_loop(code, phase, reducers, None, first, stop)
            for reducer, turns, slot in zip(reducers, states, results, strict=True):
                self._store_result(code, reducer, turns, slot, first)
        for reducer, slot in zip(reducers, results, strict=True):
            self.row.reduced[reducer.statement.number] = slot, memory_type(reducer.result)

    def _store_result(
        self, code: Code, reducer: Reducer, turns: Turns, slot: str, first: str
    ) -> None:
        """Folds the lanes of a reduction into its result's slot."""
        state = reducer.fold_lanes(self.frame, code.lines, turns)
        scalar = reader_into(self.frame, code.lines, 1)
        text = to_memory(scalar, reducer.finished(scalar, state, first))
        code.do(f"store {memory_type(reducer.result)} {text}, ptr {slot}")

    # ---- the vector loop

    def _vector_loop(
        self,
        code: Code,
        phase: Phase,
        reducers: list[Reducer],
        initial: list[Turns] | None,
        first: str,
        stop: str,
    ) -> list[Turns]:
        """Runs the statements over [first, stop); accumulators of every reduction after it."""
        frame, lanes = self.frame, self.lanes
        fresh = frame.module.fresh
        # Blocks begin at whole lines of the cache.
        aligned = first if initial is None else "0"
        if initial is None:
            initial = [self._identities(each) for each in reducers]
        loop, whole, partial, done = fresh("loop"), fresh("whole"), fresh("part"), fresh("done")
        before = code.block
        code.branch(code.value(f"icmp slt i64 {first}, {stop}"), loop, done)
        code.label(loop)
        mark = len(code.lines)
        position, following = "%" + fresh("at"), "%" + fresh("at")
        elements, stores = self._vector(code, phase, position, stop)
        code.do(f"{following} = add i64 {position}, {lanes}")
        left = code.value(f"sub i64 {stop}, {position}")
        units, pairs, others = sorted_out(frame, stores)
        store_by_lane(code, frame, others, left)
        stores = units + pairs
        code.branch(code.value(f"icmp sle i64 {following}, {stop}"), whole, partial)

        current = [self._phi_names(turns) for turns in initial]
        code.label(whole)
        self._store(code, phase, stores, position, aligned)
        after_whole = self._take(code, reducers, current, elements, "")
        whole_end = code.block
        code.branch(code.value(f"icmp slt i64 {following}, {stop}"), loop, done)

        code.label(partial)
        after_partial = self._take(code, reducers, current, elements, left)
        store_part(code, frame, stores, left)
        partial_end = code.block
        code.jump(done)

        phis = [f"  {position} = phi i64 [{first}, %{before}], [{following}, %{whole_end}]"]
        phis += self._phis(current, (initial, before), (after_whole, whole_end))
        code.lines[mark:mark] = phis
        code.label(done)
        final = [self._phi_names(turns) for turns in initial]
        code.lines += self._phis(
            final, (initial, before), (after_whole, whole_end), (after_partial, partial_end)
        )
        return final

    def _vector(
        self, code: Code, phase: Phase, position: str, stop: str
    ) -> tuple[list[State], list[VectorStore]]:
        """What the vector at a position adds to each reduction, and what is to be stored."""
        scope = VectorScope(self.row, position, stop)
        elements, stores = self._statements(phase, scope)
        code.absorb(scope.reader.lines)
        if self.ahead is not None:
            beyond = VectorScope(self.ahead, position, stop)
            elements += self._statements(self.frame.nest.phases[0], beyond)[0]
            code.absorb(beyond.reader.lines)
        self.coming.fetch(code, phase, position, self.ahead)
        return elements, stores

    def _store(
        self, code: Code, phase: Phase, stores: list[VectorStore], position: str, aligned: str
    ) -> None:
        """Whole vectors; no row is begun where results pass the caches."""
        holds = "" if self.ahead else past_caches(self.frame, self.row, stores, aligned)
        if holds:
            store_past_caches(
                code, stores, holds, lambda past: self.coming.fetch_beside(past, phase, position)
            )
        else:
            store_whole(code, stores)

    def _statements(
        self, phase: Phase, scope: VectorScope
    ) -> tuple[list[State], list[VectorStore]]:
        """Values of a vector's statements; every load comes before the first store."""
        operands = [scope.value(each.value) for each in phase.loop]
        elements: list[State] = []
        stores = []
        for statement, operand in zip(phase.loop, operands, strict=True):
            if isinstance(statement, Store):
                stores.append(VectorStore(scope, statement.access, operand))
            elif isinstance(statement, Keep):
                self._keep(scope, statement.scratch, operand)
            elif statement.kind in ("argmax", "argmin"):
                elements.append((operand, scope.positions()))
            else:
                elements.append((operand,))
        return elements, stores

    def _keep(self, scope: VectorScope, scratch: int, operand: Operand) -> None:
        """Whole vectors always: scratch rows have room for the garbage lanes."""
        reader, scalar = scope.reader, memory_type(operand.dtype)
        text = to_memory(reader, operand)
        start = self.frame.scratch_row(scratch)
        address = reader.emit(f"getelementptr {scalar}, ptr {start}, i64 {scope.position}")
        reader.lines.append(f"  store {reader.type_of(scalar)} {text}, ptr {address}, align 1")

    def _take(
        self,
        code: Code,
        reducers: list[Reducer],
        current: list[Turns],
        elements: list[State],
        left: str,
    ) -> list[Turns]:
        """Accumulators after this vector, of whose lanes the first `left` count ("": all)."""
        reader = reader_into(self.frame, code.lines, self.lanes)
        valid = valid_lanes(reader, left) if left and reducers else ""
        after = []
        for reducer, turns, element in zip(reducers, current, elements, strict=True):
            if valid:
                element = reducer.masked(reader, valid, element)
            after.append([*turns[1:], reducer.take(reader, turns[0], element)])
        return after

    def _identities(self, reducer: Reducer) -> Turns:
        reader = reader_into(self.frame, [], self.lanes)
        return [reducer.identity(reader) for _ in range(reducer.n_turns)]

    def _phi_names(self, turns: Turns) -> Turns:
        fresh = self.frame.module.fresh
        return [tuple(Operand("%" + fresh("acc"), each.dtype) for each in state) for state in turns]

    def _phis(self, names: list[Turns], *sources: tuple[list[Turns], str]) -> list[str]:
        type_of = reader_into(self.frame, [], self.lanes).type_of
        lines = []
        for r, turns in enumerate(names):
            for t, state in enumerate(turns):
                for c, name in enumerate(state):
                    listed = ", ".join(
                        f"[{values[r][t][c].text}, %{block}]" for values, block in sources
                    )
                    lines.append(f"  {name.text} = phi {type_of(name.dtype)} {listed}")
        return lines

    # ---- sums of long rows

    def _blocked_loop(
        self, code: Code, phase: Phase, reducers: list[Reducer], results: list[str], stop: str
    ) -> None:
        """Blocks of 1024 whose values the binary counter folds."""
        frame = self.frame
        fresh = frame.module.fresh
        ordered = [i for i, each in enumerate(reducers) if each.ordered]
        free = [i for i, each in enumerate(reducers) if not each.ordered]
        counter = Counter(frame, [reducers[i] for i in ordered], 1, 1)
        counter.reset(code)
        initial = [self._identities(each) for each in reducers]
        held = {i: [hold(frame, code, state) for state in initial[i]] for i in free}
        at = frame.slot("i64")
        code.do(f"store i64 0, ptr {at}")
        block, total = fresh("block"), fresh("total")
        code.jump(block)
        code.label(block)
        first = code.value(f"load i64, ptr {at}")
        until = code.smaller(code.value(f"add i64 {first}, {BLOCK}"), stop)
        code.do(f"store i64 {until}, ptr {at}")
        for i in free:
            initial[i] = self._held(code, held[i], initial[i])
        states = self._vector_loop(code, phase, reducers, initial, first, until)
        values = []
        for i in ordered:
            state = reducers[i].fold_lanes(frame, code.lines, states[i])
            values.append(to_memory(reader_into(frame, code.lines, 1), state[0]))
        for i in free:
            for state, slots in zip(states[i], held[i], strict=True):
                hold(frame, code, state, slots)
        is_last = code.value(f"icmp sge i64 {until}, {stop}")
        counter.next_block(code, is_last)
        values = counter.fold(code, values)
        code.branch(is_last, total, block)
        code.label(total)
        for i, text in zip(ordered, values, strict=True):
            code.do(f"store {memory_type(reducers[i].result)} {text}, ptr {results[i]}")
        for i in free:
            turns = self._held(code, held[i], initial[i])
            self._store_result(code, reducers[i], turns, results[i], "0")

    def _held(self, code: Code, slots: list[list[str]], like: Turns) -> Turns:
        pairs = zip(slots, like, strict=True)
        return [held_state(self.frame, code, each, state) for each, state in pairs]

    # ---- folding the partials of other kernels

    def _tree_loop(
        self, code: Code, phase: Phase, reducers: list[Reducer], results: list[str], stop: str
    ) -> None:
        """Every element is the value of one block; few of them, so one at a time."""
        if any(not each.ordered for each in reducers) or len(reducers) != len(phase.loop):
            raise ValueError("a phase that folds partials does nothing else")
        frame = self.frame
        fresh = frame.module.fresh
        counter = Counter(frame, reducers, 1, 1)
        counter.reset(code)
        scalar = reader_into(frame, code.lines, 1)
        types = [memory_type(each.result) for each in reducers]
        for reducer, of, slot in zip(reducers, types, results, strict=True):
            code.do(f"store {of} {to_memory(scalar, reducer.identity(scalar)[0])}, ptr {slot}")
        at, lane_slot = frame.slot("i64"), frame.slot("i64")
        code.do(f"store i64 0, ptr {at}")
        loop, lanes, more, done = fresh("loop"), fresh("lanes"), fresh("more"), fresh("done")
        code.branch(code.value(f"icmp slt i64 0, {stop}"), loop, done)
        code.label(loop)
        position = code.value(f"load i64, ptr {at}")
        scope = VectorScope(self.row, position, stop)
        texts = [to_memory(scope.reader, scope.value(each.value)) for each in phase.loop]
        code.absorb(scope.reader.lines)
        spilled = []
        for of, text in zip(types, texts, strict=True):
            spilled.append(frame.slot(scope.reader.type_of(of)))
            code.do(f"store {scope.reader.type_of(of)} {text}, ptr {spilled[-1]}")
        count = code.smaller(code.value(f"sub i64 {stop}, {position}"), str(self.lanes))
        code.do(f"store i64 0, ptr {lane_slot}")
        code.jump(lanes)
        code.label(lanes)
        lane = code.value(f"load i64, ptr {lane_slot}")
        values = []
        for of, slot in zip(types, spilled, strict=True):
            where = code.value(f"getelementptr {of}, ptr {slot}, i64 {lane}")
            values.append(code.value(f"load {of}, ptr {where}, align 1"))
        following = code.value(f"add i64 {lane}, 1")
        reached = code.value(f"add i64 {position}, {following}")
        is_last = code.value(f"icmp sge i64 {reached}, {stop}")
        counter.next_block(code, is_last)
        for of, text, slot in zip(types, counter.fold(code, values), results, strict=True):
            code.do(f"store {of} {text}, ptr {slot}")
        code.do(f"store i64 {following}, ptr {lane_slot}")
        code.branch(code.value(f"icmp slt i64 {following}, {count}"), lanes, more)
        code.label(more)
        next_at = code.value(f"add i64 {position}, {self.lanes}")
        code.do(f"store i64 {next_at}, ptr {at}")
        code.branch(code.value(f"icmp slt i64 {next_at}, {stop}"), loop, done)
        code.label(done)
