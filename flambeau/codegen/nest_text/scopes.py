"""Where a value of a nest is computed: once per call, per row, per reduced position, per vector.

Keeps     a value is written once in the outermost scope it can live in, and broadcast from there;
          loads may read past the end of a row, no garbage lane is ever used as an address.
Touches   frame, llvm_reader.
Not here  loops and stores (rows.py, columns.py, stores.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import present
from flambeau.codegen.llvm_reader import SCALAR_TYPES, LlvmReader, Operand
from flambeau.codegen.loops import Nest
from flambeau.codegen.nest_text.frame import COLUMN_KINDS, Frame, from_memory, memory_type
from flambeau.codegen.nest_text.quotients import quotient
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
            return reader.constant(operand.value, operand.dtype)  # type: ignore[no-any-return]
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


class VectorScope(Scope):
    """One vector along inner.

    position   name of the first lane's position along inner
    stop       name of the end of the range; lanes from there on are garbage
    reduced    operands of reductions, for what runs after the loop (columns kinds)
    """

    level = VECTOR

    def __init__(
        self,
        outer: RowScope | StepScope,
        position: str,
        stop: str,
        reduced: Callable[[int, dtype], Operand] | None = None,
    ) -> None:
        frame = outer.frame
        super().__init__(frame, outer.levels, LlvmReader(frame.lanes, frame.module), outer)
        self.position = position
        self.stop = stop
        self._reduced = reduced
        self._left = ""
        self._positions: Operand | None = None
        self._pairs: dict[int, str] = {}  # access -> elements of whole pairs, loaded

    def left(self) -> str:
        """Number of valid lanes, or more."""
        if not self._left:
            self._left = self.reader.emit(f"sub i64 {self.stop}, {self.position}")
        return self._left

    def applied(self, expression: Expression) -> Operand:
        if expression.word == "div" and isinstance(self.outer, RowScope):
            divisor = expression.arguments[1]
            if divisor.word != "constant" and self.levels.of(divisor) < VECTOR:
                return quotient(self, expression)
        return super().applied(expression)

    def valid(self) -> str:
        """Which lanes are valid, as <lanes x i1>."""
        return valid_lanes(self.reader, self.left())

    def positions(self) -> Operand:
        """int64 position of every lane along inner."""
        if self._positions is None:
            lanes = self.reader.lanes
            first = broadcast(self.reader, self.position, "i64", lanes)
            full = self.reader.type_of("i64")
            self._positions = self.reader.operand(
                f"add {full} {first}, {iota('i64', lanes)}", dtypes.int64
            )
        return self._positions

    def leaf(self, leaf: Expression) -> Operand:
        reader, frame = self.reader, self.frame
        if leaf.word == "index":
            return self.positions()
        if leaf.word == "reduced":
            return present(self._reduced, "a reduced value")(leaf.value, leaf.dtype)
        if leaf.word == "kept":
            of = frame.nest.scratch[leaf.value]
            start = frame.scratch_row(leaf.value)
            return self._load_unit(start, of)
        access = frame.nest.accesses[leaf.value]
        if self.levels.of_index(leaf.value) == VECTOR:
            addresses = self.gather_addresses(leaf.value)
        else:
            start = present(self.outer, "the row of a vector").pointer(leaf.value)
            if access.inner == "unit":
                return self._load_unit(start, access.dtype)
            if access.half is not None:
                return self._load_half(leaf.value, access.half)
            addresses = self._strided_addresses(leaf.value, start)
        scalar = memory_type(access.dtype)
        full = reader.type_of(scalar)
        text = "poison"
        for lane, address in enumerate(addresses):
            one = reader.emit(f"load {scalar}, ptr {address}, align 1")
            text = reader.emit(f"insertelement {full} {text}, {scalar} {one}, i64 {lane}")
        return from_memory(reader, text, access.dtype)

    def _load_half(self, number: int, half: tuple[int, int]) -> Operand:
        """Every second element of twice the lanes; both halves of pairs come of one load."""
        reader, nest = self.reader, self.frame.nest
        pair, part = half
        accesses = nest.accesses
        first = next((n for n, one in enumerate(accesses) if one.half == (pair, 1)), number)
        scalar = memory_type(accesses[number].dtype)
        both = self._pairs.get(first)
        whole = f"<{2 * reader.lanes} x {scalar}>"
        if both is None:
            start = present(self.outer, "the row of a vector").pointer(first)
            element = reader.emit(f"shl i64 {self.position}, 1")
            address = reader.emit(f"getelementptr {scalar}, ptr {start}, i64 {element}")
            both = self._pairs[first] = reader.emit(f"load {whole}, ptr {address}, align 1")
        place = part - 1 if first != number or part == 1 else 0
        chosen = ", ".join(f"i32 {2 * lane + place}" for lane in range(reader.lanes))
        text = reader.emit(
            f"shufflevector {whole} {both}, {whole} poison, <{reader.lanes} x i32> <{chosen}>"
        )
        return from_memory(reader, text, accesses[number].dtype)

    def _load_unit(self, start: str, of: dtype) -> Operand:
        reader, scalar = self.reader, memory_type(of)
        address = reader.emit(f"getelementptr {scalar}, ptr {start}, i64 {self.position}")
        text = reader.emit(f"load {reader.type_of(scalar)}, ptr {address}, align 1")
        return from_memory(reader, text, of)

    def _strided_addresses(self, number: int, start: str) -> list[str]:
        """Addresses of the lanes; those past the row's end are that of its last element."""
        reader, frame = self.reader, self.frame
        stride = frame.word(f"inner_stride.{number}")
        first = reader.emit(f"mul i64 {self.position}, {stride}")
        start = reader.emit(f"getelementptr i8, ptr {start}, i64 {first}")
        until = reader.emit(f"sub i64 {frame.last()}, {self.position}")
        limit = reader.emit(f"mul i64 {until}, {stride}")
        addresses = [start]
        for lane, offset in enumerate(frame.lane_strides(number)):
            if lane:
                inside = reader.emit(f"icmp sge i64 {until}, {lane}")
                offset = reader.emit(f"select i1 {inside}, i64 {offset}, i64 {limit}")
                addresses.append(reader.emit(f"getelementptr i8, ptr {start}, i64 {offset}"))
        return addresses

    def gather_addresses(self, number: int) -> list[str]:
        """Addresses of the lanes of a gather whose index differs from lane to lane."""
        reader, frame = self.reader, self.frame
        access = frame.nest.accesses[number]
        start = present(self.outer, "the row of a vector").pointer(number)
        safe = self.checked_indices(number)
        longs = reader.type_of("i64")
        stride = frame.word(f"index_stride.{number}")
        inner = "zero" if access.row_level else access.inner
        if inner == "strided":
            starts = self._strided_addresses(number, start)
        elif inner == "unit":
            scalar = memory_type(access.dtype)
            start = reader.emit(f"getelementptr {scalar}, ptr {start}, i64 {self.position}")
            starts = [
                reader.emit(f"getelementptr {scalar}, ptr {start}, i64 {lane}")
                for lane in range(reader.lanes)
            ]
        else:
            starts = [start] * reader.lanes
        addresses = []
        for lane in range(reader.lanes):
            index = reader.emit(f"extractelement {longs} {safe}, i64 {lane}")
            moved = reader.emit(f"mul i64 {index}, {stride}")
            addresses.append(reader.emit(f"getelementptr i8, ptr {starts[lane]}, i64 {moved}"))
        return addresses

    def checked_indices(self, number: int, otherwise: int = 0) -> str:
        """Indices of a gather, `otherwise` where out of range; the error word tells of valid
        lanes."""
        reader, frame = self.reader, self.frame
        index = present(frame.nest.accesses[number].index, "the index of a gather")
        indices = self.value(index).text
        longs, bools = reader.type_of("i64"), reader.type_of("i1")
        bound = frame.word(f"index_bound.{number}")
        bounds = broadcast(frame.entry, bound, "i64", reader.lanes)
        bad = reader.emit(f"icmp uge {longs} {indices}, {bounds}")
        told = reader.emit(f"and {bools} {bad}, {self.valid()}")
        mask = reader.emit(f"bitcast {bools} {told} to i{reader.lanes}")
        some = reader.emit(f"icmp ne i{reader.lanes} {mask}, 0")
        tell_error(frame, reader, number, some)
        instead = reader.splat(str(otherwise), "i64")
        return reader.emit(f"select {bools} {bad}, {longs} {instead}, {longs} {indices}")


def iota(scalar: str, lanes: int) -> str:
    """The constant vector 0, 1, 2 ..."""
    return "<" + ", ".join(f"{scalar} {lane}" for lane in range(lanes)) + ">"


def valid_lanes(reader: LlvmReader, left: str) -> str:
    """Lanes below `left` (an i64 that may exceed the lanes), as <lanes x i1>."""
    few = reader.emit(f"icmp slt i64 {left}, {reader.lanes}")
    few = reader.emit(f"select i1 {few}, i64 {left}, i64 {reader.lanes}")
    few = reader.emit(f"trunc i64 {few} to i32")
    counts = broadcast(reader, few, "i32", reader.lanes)
    return reader.emit(f"icmp slt {reader.type_of('i32')} {iota('i32', reader.lanes)}, {counts}")
