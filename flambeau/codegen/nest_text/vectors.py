"""Values of a nest that are computed for every lane of a vector along inner.

Keeps     loads may read past the end of a row, no garbage lane is ever used as an address.
Touches   scopes, frame, quotients, llvm_reader.
Not here  values of a row or a call (scopes.py), stores (stores.py)."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import present
from flambeau.codegen.llvm_reader import LlvmReader, Operand
from flambeau.codegen.nest_text.frame import from_memory, memory_type
from flambeau.codegen.nest_text.quotients import quotient
from flambeau.codegen.nest_text.scopes import (
    VECTOR,
    RowScope,
    Scope,
    StepScope,
    broadcast,
    tell_error,
)
from flambeau.codegen.vocabulary import Expression


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
