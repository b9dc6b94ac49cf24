"""Where a value of a nest is computed: once per call, per row, per reduced position.

Keeps     a value is written once in the outermost scope it can live in, and broadcast from there;
          loads may read past the end of a row, no garbage lane is ever used as an address.
Touches   frame, llvm_reader.
Not here  values of every lane (vectors.py), loops and stores (rows.py, columns.py, stores.py).
"""

from __future__ import annotations

from typing import Final

from flambeau.base import dtypes
from flambeau.base.errors import present
from flambeau.codegen.llvm_reader import SCALAR_TYPES, LlvmReader, Operand
from flambeau.codegen.loops import Nest
from flambeau.codegen.nest_text.frame import COLUMN_KINDS, Frame, from_memory, memory_type
from flambeau.codegen.vocabulary import Expression

CALL, ROW, STEP, VECTOR = range(4)
LEAVES: Final = ("number", "load", "index", "reduced", "kept")


class Levels:
    """Outermost scope in which each expression of a nest can be computed."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.columns = nest.kind in COLUMN_KINDS
        self._known: dict[Expression, int] = {}

    def of(self, expression: Expression) -> int:
        """CALL, ROW, STEP or VECTOR."""
        known = self._known
        stack = [expression]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            missing = [each for each in top.arguments if each not in known]
            if missing:
                stack += missing
                continue
            if top.word in LEAVES:
                known[top] = self._leaf(top)
            else:
                known[top] = max((known[each] for each in top.arguments), default=CALL)
            stack.pop()
        return known[expression]

    def of_access(self, number: int) -> int:
        """Outermost scope in which access `number` can be loaded."""
        access = self.nest.accesses[number]
        level = VECTOR
        if access.row_level:
            level = ROW
        elif access.inner == "zero":
            level = STEP if self.columns else ROW
        return max(level, self.of_index(number))

    def of_index(self, number: int) -> int:
        """Outermost scope in which the address of a gather is known, apart from inner."""
        index = self.nest.accesses[number].index
        return ROW if index is None else max(ROW, self.of(index))

    def _leaf(self, leaf: Expression) -> int:
        if leaf.word == "number":
            return CALL
        if leaf.word == "load":
            return self.of_access(leaf.value)
        if leaf.word == "index":
            if leaf.value < self.nest.n_outer:
                return ROW
            return STEP if self.columns and leaf.value == self.nest.n_outer else VECTOR
        if leaf.word == "reduced" and not self.columns:
            return ROW
        return VECTOR


class Scope:
    """Values of one level, and the reader that writes them."""

    level = CALL

    def __init__(self, frame: Frame, levels: Levels, reader: LlvmReader, outer: Scope | None):
        self.frame = frame
        self.levels = levels
        self.reader = reader
        self.outer = outer
        self.values: dict[Expression, Operand] = {}
        self._broadcasts: dict[tuple[Operand, int], Operand] = {}

    def value(self, expression: Expression) -> Operand:
        """Operand of an expression in this scope; written here or further out, once."""
        values = self.values
        stack = [expression]
        while stack:
            top = stack[-1]
            if top in values:
                stack.pop()
                continue
            if top.word == "constant":
                operand = self.reader.constant(top.value, top.dtype)
            elif self.levels.of(top) < self.level and self.outer is not None:
                operand = self.outer.lifted(top, self.reader)
            elif top.word in LEAVES:
                operand = self.leaf(top)
            else:
                missing = [each for each in top.arguments if each not in values]
                if missing:
                    stack += missing
                    continue
                operand = self.applied(top)
            values[top] = operand
            stack.pop()
        return values[expression]

    def applied(self, expression: Expression) -> Operand:
        """A word, of arguments that are there."""
        arguments = tuple(self.values[each] for each in expression.arguments)
        return self.reader.apply(expression.word, arguments, expression.dtype, expression.value)

    def lifted(self, expression: Expression, reader: LlvmReader) -> Operand:
        """The value of an expression of this scope or one further out, for an inner reader."""
        if self.levels.of(expression) < self.level and self.outer is not None:
            return self.outer.lifted(expression, reader)
        operand = self.value(expression)
        if reader.lanes == self.reader.lanes:
            return operand
        if operand.value is not None:
            return reader.constant(operand.value, operand.dtype)
        key = (operand, reader.lanes)
        found = self._broadcasts.get(key)
        if found is None:
            scalar = SCALAR_TYPES[operand.dtype]
            text = broadcast(self.reader, operand.text, scalar, reader.lanes)
            found = self._broadcasts[key] = Operand(text, operand.dtype)
        return found

    def leaf(self, leaf: Expression) -> Operand:
        """A run-time number, in the outermost scope."""
        of = leaf.dtype
        reader = self.reader
        address = self.frame.word_address(f"number.{leaf.value}")
        if of is dtypes.bool_:
            text = reader.emit(f"load i64, ptr {address}")
            return reader.operand(f"icmp ne i64 {text}, 0", of)
        # The low bytes of the word, whatever its dtype.
        return reader.operand(f"load {SCALAR_TYPES[of]}, ptr {address}", of)

    def base(self, number: int) -> str:
        """Address of access `number` at the start of what this scope covers, neither inner nor
        the index of a gather counted."""
        raise NotImplementedError

    def pointer(self, number: int) -> str:
        """As base, and with the index of a gather where this scope knows it."""
        raise NotImplementedError


def broadcast(reader: LlvmReader, text: str, scalar: str, lanes: int) -> str:
    """A scalar in every lane, written by `reader` whatever its own lanes."""
    full = f"<{lanes} x {scalar}>"
    one = reader.emit(f"insertelement {full} poison, {scalar} {text}, i64 0")
    return reader.emit(
        f"shufflevector {full} {one}, {full} poison, <{lanes} x i32> zeroinitializer"
    )


def checked_index(scope: Scope, number: int) -> tuple[str, str]:
    """Scalar index of a gather, 0 where it is out of range, which the error word then tells;
    and the i1 that says so."""
    frame, reader = scope.frame, scope.reader
    index = present(frame.nest.accesses[number].index, "the index of a gather")
    text = scope.value(index).text
    bad = reader.emit(f"icmp uge i64 {text}, {frame.word(f'index_bound.{number}')}")
    tell_error(frame, reader, number, bad)
    return reader.emit(f"select i1 {bad}, i64 0, i64 {text}"), bad


def tell_error(frame: Frame, reader: LlvmReader, number: int, bad: str) -> None:
    """Sets the error word of a gather when the i1 `bad` holds; a select, so no block ends."""
    where = reader.emit(f"select i1 {bad}, ptr {frame.word(f'error.{number}')}, ptr {frame.sink()}")
    reader.lines.append(f"  store i64 {number + 1}, ptr {where}")


class RowScope(Scope):
    """Scalars of the current row. Its lines are placed before the loop that first needs them."""

    level = ROW

    def __init__(self, frame: Frame, levels: Levels) -> None:
        call = Scope(frame, levels, frame.entry, None)
        super().__init__(frame, levels, LlvmReader(1, frame.module), call)
        self._pointers: dict[int, str] = {}
        self._starts: dict[int, str] = {}
        self.reduced: dict[int, tuple[str, str]] = {}  # reduction -> slot, type in memory
        self._loaded: dict[int, str] = {}  # reduction -> what was in the slot
        self.part = ""  # number of the block, in blocks kinds

    def load_reduced(self) -> None:
        """Reads all slots, which may be written to from here on."""
        for number, (slot, of) in self.reduced.items():
            self._loaded[number] = self.reader.emit(f"load {of}, ptr {slot}")

    def start(self, number: int) -> str:
        """Address of an access in this row, without gather or block offsets."""
        slots = self.frame.pointer_slots
        if not slots:
            return self.frame.word(f"pointer.{number}")
        found = self._starts.get(number)
        if found is None:
            found = self._starts[number] = self.reader.emit(f"load ptr, ptr {slots[number]}")
        return found

    def moved(self, strides: list[str]) -> RowScope:
        """Scope of another row, each access moved by a stride in bytes."""
        made = RowScope(self.frame, self.levels)
        made.outer = self.outer
        for number, stride in enumerate(strides):
            start = self.start(number)
            made._starts[number] = made.reader.emit(f"getelementptr i8, ptr {start}, i64 {stride}")
        return made

    def base(self, number: int) -> str:
        found = self.start(number)
        if number in self.frame.nest.row_stores and self.part:
            stride = self.frame.word(f"block_stride.{number}")
            moved = self.reader.emit(f"mul i64 {self.part}, {stride}")
            found = self.reader.emit(f"getelementptr i8, ptr {found}, i64 {moved}")
        return found

    def pointer(self, number: int) -> str:
        found = self._pointers.get(number)
        if found is None:
            frame = self.frame
            found = self.base(number)
            index = frame.nest.accesses[number].index
            if index is not None and self.levels.of(index) <= ROW:
                moved, bad = checked_index(self, number)
                moved = self.reader.emit(f"mul i64 {moved}, {frame.word(f'index_stride.{number}')}")
                found = self.reader.emit(f"getelementptr i8, ptr {found}, i64 {moved}")
                if number in frame.nest.row_stores:
                    found = self.reader.emit(f"select i1 {bad}, ptr {frame.sink()}, ptr {found}")
            self._pointers[number] = found
        return found

    def leaf(self, leaf: Expression) -> Operand:
        if leaf.word == "index":
            slot = self.frame.index_slots[leaf.value]
            return self.reader.operand(f"load i64, ptr {slot}", dtypes.int64)
        if leaf.word == "reduced":
            text = self._loaded.get(leaf.value, "")
            if not text:
                slot, of = self.reduced[leaf.value]
                text = self.reader.emit(f"load {of}, ptr {slot}")
            return from_memory(self.reader, text, leaf.dtype)
        return load_scalar(self, leaf.value)


class StepScope(Scope):
    """Scalars of one position of the reduced dimension (columns kinds).

    position   name of the position, or "" after the loop, where it counts as 0
    """

    level = STEP

    def __init__(self, row: RowScope, position: str) -> None:
        super().__init__(row.frame, row.levels, LlvmReader(1, row.frame.module), row)
        self.row = row
        self.position = position
        self._pointers: dict[int, str] = {}

    def base(self, number: int) -> str:
        return self._moved(number, self.row.base(number))

    def pointer(self, number: int) -> str:
        found = self._pointers.get(number)
        if found is None:
            found = self._moved(number, self.row.pointer(number))
            index = self.frame.nest.accesses[number].index
            if index is not None and self.levels.of(index) == STEP:
                where, _ = checked_index(self, number)
                stride = self.frame.word(f"index_stride.{number}")
                moved = self.reader.emit(f"mul i64 {where}, {stride}")
                found = self.reader.emit(f"getelementptr i8, ptr {found}, i64 {moved}")
            self._pointers[number] = found
        return found

    def _moved(self, number: int, start: str) -> str:
        """An address moved to this position of the reduced dimension."""
        if not self.position or self.frame.nest.accesses[number].row_level:
            return start
        stride = self.frame.word(f"reduced_stride.{number}")
        moved = self.reader.emit(f"mul i64 {self.position}, {stride}")
        return self.reader.emit(f"getelementptr i8, ptr {start}, i64 {moved}")

    def leaf(self, leaf: Expression) -> Operand:
        if leaf.word == "index":
            return Operand(self.position or "0", dtypes.int64)
        return load_scalar(self, leaf.value)


def load_scalar(scope: Scope, number: int) -> Operand:
    """One element through an access that does not depend on inner."""
    of = scope.frame.nest.accesses[number].dtype
    pointer = scope.pointer(number)
    text = scope.reader.emit(f"load {memory_type(of)}, ptr {pointer}, align 1")
    return from_memory(scope.reader, text, of)
