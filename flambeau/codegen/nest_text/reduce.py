"""Reductions in text: what starts them, how two values fold, lanes, and the binary counter.

Keeps     the order of the numeric contract (loops.Reduce); kinds that do not depend on order
          (max, min, any, all, argmax, argmin) fold any way.
Touches   llvm_reader, frame, scopes.
Not here  the loops that feed them (rows.py, columns.py).

A reduction's state is a tuple of operands: (value,), or (value, position) for argmax and argmin.
The largest position stands for "no element yet".
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.llvm_reader import SCALAR_TYPES, LlvmReader, Operand
from flambeau.codegen.loops import LANES, Reduce
from flambeau.codegen.nest_text.frame import (
    Code,
    Frame,
    from_memory,
    memory_type,
    reader_into,
    to_memory,
)
from flambeau.codegen.nest_text.scopes import broadcast

State = tuple[Operand, ...]

ORDERED: Final = ("sum", "prod", "tree_sum", "tree_prod")
NO_POSITION: Final = 2**63 - 1
N_LEVELS: Final = 40  # of a counter: as many as bits in a block number


class Reducer:
    """How one Reduce statement folds."""

    def __init__(self, statement: Reduce, lanes: int) -> None:
        self.statement = statement
        self.kind = statement.kind.removeprefix("tree_")
        self.ordered = statement.kind in ORDERED
        self.positional = self.kind in ("argmax", "argmin")
        of = statement.value.dtype
        self.dtypes: tuple[dtype, ...] = (of, dtypes.int64) if self.positional else (of,)
        self.result = dtypes.int64 if self.positional else of
        # The largest is the negative of the smallest negative: two instructions less a step than
        # `max`, and half the time from one step to the next.
        self.negated = self.kind == "max" and of.is_floating_point
        # Accumulators taken in turn, so that additions need not wait for one another; with those
        # of one vector they are the contract's lanes. any and all are cheap, positions many.
        self.n_turns = LANES // lanes if lanes < LANES else 1
        if self.positional or self.kind in ("any", "all"):
            self.n_turns = 1
        elif not self.ordered:
            self.n_turns = 2

    def identity(self, reader: LlvmReader) -> State:
        """State before any element."""
        kind = "min" if self.negated else self.kind
        first = reader.constant(_identity(kind, self.dtypes[0]), self.dtypes[0])
        if self.positional:
            return (first, reader.constant(NO_POSITION, dtypes.int64))
        return (first,)

    def masked(self, reader: LlvmReader, valid: str, element: State) -> State:
        """An element whose lanes that are not valid change no state."""
        mask = Operand(valid, dtypes.bool_)
        neutral = reader.constant(_identity(self.kind, self.dtypes[0]), self.dtypes[0])
        return (reader.select(mask, element[0], neutral), *element[1:])

    def take(self, reader: LlvmReader, state: State, element: State) -> State:
        """Folds elements that come after everything in `state`."""
        if not self.positional:
            entering = reader.neg(element[0]) if self.negated else element[0]
            return (self._fold(reader, state[0], entering),)
        better = self._better(reader, element[0], state[0])
        return (
            reader.select(better, element[0], state[0]),
            reader.select(better, element[1], state[1]),
        )

    def merge(self, reader: LlvmReader, left: State, right: State) -> State:
        """Folds two states over any elements; for ordered kinds, left first."""
        if not self.positional:
            return (self._fold(reader, left[0], right[0]),)
        better = self._better(reader, right[0], left[0])
        worse = self._better(reader, left[0], right[0])
        earlier = reader.lt(right[1], left[1])
        chosen = reader.or_(better, reader.and_(reader.not_(worse), earlier))
        return (
            reader.select(chosen, right[0], left[0]),
            reader.select(chosen, right[1], left[1]),
        )

    def finished(self, reader: LlvmReader, state: State, start: str) -> Operand:
        """The result; `start` is the first position, right where every element is the identity."""
        if not self.positional:
            return reader.neg(state[0]) if self.negated else state[0]
        none = reader.eq(state[1], NO_POSITION)
        if reader.lanes > 1:
            start = broadcast(reader, start, "i64", reader.lanes)
        first = Operand(start, dtypes.int64)
        return reader.select(none, first, state[1])

    def _fold(self, k: LlvmReader, left: Operand, right: Operand) -> Operand:
        kind = "min" if self.negated else self.kind
        word = {"sum": "add", "prod": "mul", "any": "or_", "all": "and_"}.get(kind, kind)
        return getattr(k, word)(left, right)

    def _better(self, k: LlvmReader, new: Operand, old: Operand) -> Any:
        """new beats old strictly: NaN beats all numbers, no NaN is beaten."""
        if self.kind == "argmin":
            if new.dtype.is_floating_point:
                return k.and_(k.not_(k.ge(new, old)), k.eq(old, old))
            return k.lt(new, old)
        if new.dtype.is_floating_point:
            return k.and_(k.not_(k.le(new, old)), k.eq(old, old))
        return k.gt(new, old)

    def fold_lanes(self, frame: Frame, lines: list[str], turns: list[State]) -> State:
        """Scalar state of all accumulators: halves onto halves, which is the contract's order."""
        wide = reader_into(frame, lines, frame.lanes)
        while len(turns) > 1:
            half = len(turns) // 2
            turns = [self.merge(wide, turns[i], turns[i + half]) for i in range(half)]
        state = turns[0]
        if self.kind in ("any", "all"):
            return (self._fold_bools(wide, state[0]),)
        width = frame.lanes
        while width > 1:
            half = width // 2
            narrow = reader_into(frame, lines, half)
            halves = []
            for start in (0, half):
                part = [_lanes(narrow, each, width, start, half) for each in state]
                halves.append(tuple(part))
            state = self.merge(narrow, halves[0], halves[1])
            width = half
        return state

    def _fold_bools(self, reader: LlvmReader, operand: Operand) -> Operand:
        lanes = reader.lanes
        bits = reader.emit(f"bitcast {reader.type_of('i1')} {operand.text} to i{lanes}")
        predicate, other = ("ne", "0") if self.kind == "any" else ("eq", "-1")
        return reader.operand(f"icmp {predicate} i{lanes} {bits}, {other}", dtypes.bool_)


def _lanes(reader: LlvmReader, operand: Operand, width: int, start: int, count: int) -> Operand:
    scalar = SCALAR_TYPES[operand.dtype]
    full = f"<{width} x {scalar}>"
    if count == 1:
        text = f"extractelement {full} {operand.text}, i64 {start}"
    else:
        chosen = ", ".join(f"i32 {lane}" for lane in range(start, start + count))
        text = f"shufflevector {full} {operand.text}, {full} poison, <{count} x i32> <{chosen}>"
    return reader.operand(text, operand.dtype)


def _identity(kind: str, of: dtype) -> Any:
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    largest = kind in ("min", "argmin")
    if of is dtypes.bool_:
        return largest
    if of.is_floating_point:
        return float("inf") if largest else float("-inf")
    low = -(1 << (of.n_bits - 1)) if of.is_signed else 0
    return (1 << (of.n_bits - of.is_signed)) - 1 if largest else low


def hold(frame: Frame, code: Code, state: State, slots: list[str] | None = None) -> list[str]:
    """Puts a vector state into stack slots, made when none are given."""
    reader = reader_into(frame, code.lines, frame.lanes)
    types = [reader.type_of(memory_type(each.dtype)) for each in state]
    if slots is None:
        slots = [frame.slot(of) for of in types]
    for slot, of, operand in zip(slots, types, state, strict=True):
        code.do(f"store {of} {to_memory(reader, operand)}, ptr {slot}")
    return slots


def held_state(frame: Frame, code: Code, slots: list[str], like: State) -> State:
    """A vector state back from its slots."""
    reader = reader_into(frame, code.lines, frame.lanes)
    loaded = []
    for slot, each in zip(slots, like, strict=True):
        of = reader.type_of(memory_type(each.dtype))
        loaded.append(from_memory(reader, code.value(f"load {of}, ptr {slot}"), each.dtype))
    return tuple(loaded)


class Counter:
    """Folds block values as a binary counter does; loops.Reduce tells the order.

    Values are scalars or vectors (`lanes`); several reductions share one counter, and so do the
    columns of a tile, `stride` elements for each level.
    """

    def __init__(self, frame: Frame, reducers: list[Reducer], lanes: int, stride: int) -> None:
        self.frame = frame
        self.reducers = reducers
        self.lanes = lanes
        self.stride = stride
        self.count = frame.slot("i64")
        self.top = self.n_merges = ""
        self.scalars = [memory_type(each.result) for each in reducers]
        self.types = [of if lanes == 1 else f"<{lanes} x {of}>" for of in self.scalars]
        self.stacks = [frame.slot(of, N_LEVELS * stride) for of in self.scalars]

    def reset(self, code: Code) -> None:
        """Before the first block."""
        code.do(f"store i64 0, ptr {self.count}")

    def next_block(self, code: Code, is_last: str) -> None:
        """Counts one more block, the last of all where the i1 `is_last` holds."""
        count = code.value(f"load i64, ptr {self.count}")
        one_more = code.value(f"add i64 {count}, 1")
        code.do(f"store i64 {one_more}, ptr {self.count}")
        self.top = self._bits(code, "ctpop", f"i64 {count}")
        completed = self._bits(code, "cttz", f"i64 {one_more}", "i1 true")
        self.n_merges = code.value(f"select i1 {is_last}, i64 {self.top}, i64 {completed}")

    def fold(self, code: Code, current: list[str], column: str = "0") -> list[str]:
        """The block's values (in the form that memory holds) folded with the partials they
        complete, or after the last block with all that are left: then, the total."""
        values = self._loop(code, current, column)
        level = code.value(f"sub i64 {self.top}, {self.n_merges}")
        addresses = self._addresses(code, level, column)
        for reducer, of, address, text in zip(
            self.reducers, self.types, addresses, values, strict=True
        ):
            size = reducer.result.itemsize
            code.do(f"store {of} {text}, ptr {address}, align {size}")
        return values

    def _bits(self, code: Code, intrinsic: str, *operands: str) -> str:
        name = f"@llvm.{intrinsic}.i64"
        listed = "i64, i1" if len(operands) > 1 else "i64"
        self.frame.module.declares[name] = f"declare i64 {name}({listed})"
        return code.value(f"call i64 {name}({', '.join(operands)})")

    def _addresses(self, code: Code, level: str, column: str) -> list[str]:
        element = level
        if self.stride > 1:
            element = code.value(f"mul i64 {level}, {self.stride}")
            element = code.value(f"add i64 {element}, {column}")
        return [
            code.value(f"getelementptr {scalar}, ptr {stack}, i64 {element}")
            for scalar, stack in zip(self.scalars, self.stacks, strict=True)
        ]

    def _loop(self, code: Code, current: list[str], column: str) -> list[str]:
        """Takes the partials below the top, most recent first, which is the later operand."""
        fresh = self.frame.module.fresh
        before, head, body, after = code.block, fresh("fold"), fresh("merge"), fresh("folded")
        code.jump(head)
        code.label(head)
        turn, following = "%" + fresh("n"), "%" + fresh("n")
        values = ["%" + fresh("n") for _ in current]
        mark = len(code.lines)
        code.branch(code.value(f"icmp slt i64 {turn}, {self.n_merges}"), body, after)
        code.label(body)
        code.do(f"{following} = add i64 {turn}, 1")
        level = code.value(f"sub i64 {self.top}, {following}")
        merged = self._merge(code, self._addresses(code, level, column), values)
        phis = [f"  {turn} = phi i64 [0, %{before}], [{following}, %{code.block}]"]
        for name, of, first, then in zip(values, self.types, current, merged, strict=True):
            phis.append(f"  {name} = phi {of} [{first}, %{before}], [{then}, %{code.block}]")
        code.lines[mark:mark] = phis
        code.jump(head)
        code.label(after)
        return values

    def _merge(self, code: Code, addresses: list[str], current: list[str]) -> list[str]:
        reader = reader_into(self.frame, code.lines, self.lanes)
        merged = []
        for reducer, of, address, text in zip(
            self.reducers, self.types, addresses, current, strict=True
        ):
            size = reducer.result.itemsize
            older = code.value(f"load {of}, ptr {address}, align {size}")
            first = from_memory(reader, older, reducer.result)
            second = from_memory(reader, text, reducer.result)
            merged.append(to_memory(reader, reducer.merge(reader, (first,), (second,))[0]))
        return merged
