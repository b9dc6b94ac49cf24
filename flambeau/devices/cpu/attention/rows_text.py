"""Rows of scores to weights, as LLVM text: largest, exponentials and their sum, in place.

Keeps     a sum has 32 virtual lanes, lane l takes elements l, l + 32, ... in order from +0; lanes
          fold by halves. Past its end a row holds -inf up to the next multiple of 32, which adds
          nothing: so the bits depend neither on vectors nor on where a row's block of keys ends.
Touches   codegen.llvm_reader, writer.
Not here  products (forward_text.py, backward_text.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from flambeau.base.dtypes import dtype
from flambeau.codegen.llvm_reader import LlvmReader, Module, Operand, literal
from flambeau.devices.cpu.gemm.elements import Element, element_of
from flambeau.devices.cpu.tiles import TileShape
from flambeau.devices.cpu.writer import Writer

LANES: Final = 32  # virtual lanes of a row's sum
# Names of the formulas' values: far from those a Writer counts up.
_FIRST_NAME: Final = 1_000_000
NO_SCORE: Final = "0xFFF0000000000000"  # -inf
ZERO: Final = "0.0"


@dataclass(frozen=True)
class AttentionClass:
    """What a kernel's text depends on.

    mask        "": none, "bool": attended where True, "float": added to the scores
    has_drop    weights are dropped by a mask of bools
    n_batch     dimensions before rows and columns
    rows        rows of a register tile; blocks of queries are a multiple
    vectors     vectors of a tile
    """

    dtype: dtype
    vector_bits: int
    mask: str
    has_drop: bool
    n_batch: int
    rows: int
    vectors: int

    @property
    def element(self) -> Element:
        """How the dtype is computed with."""
        return element_of(self.dtype, self.vector_bits)

    @property
    def tile(self) -> TileShape:
        """The register tile."""
        return TileShape(self.element, self.rows, 0, self.vectors)


class RowsText:
    """Writes the work on rows of scores for one class."""

    def __init__(self, w: Writer, kind: AttentionClass) -> None:
        self.w = w
        self.kind = kind
        self.element = kind.element
        self.scalar = self.element.stored
        self.size = self.element.n_bytes
        # Two machine vectors at a time; so many times make the 32 lanes.
        self.lanes = min(LANES, 2 * self.element.lanes)
        self.n_turns = LANES // self.lanes
        self.module = Module(has_avx512=kind.vector_bits == 512)
        self.module.n_names = _FIRST_NAME

    @cached_property
    def vector(self) -> str:
        """Type of what is loaded at a time."""
        return f"<{self.lanes} x {self.scalar}>"

    def formula(self, body: Callable[..., Any], *texts: str, lanes: int = 0) -> str:
        """The value of a formula of the vocabulary on values of the class's dtype."""
        reader = LlvmReader(lanes or self.lanes, self.module)
        made = body(reader, *[Operand(text, self.kind.dtype) for text in texts])
        self.w.text += reader.lines
        for line in self.module.declares.values():
            self.w.declarations.add(line)
        return made.text  # type: ignore[no-any-return]

    def splat(self, value: str) -> str:
        """A scalar in all lanes."""
        start = self.w.let(f"insertelement {self.vector} poison, {self.scalar} {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.w.let(f"shufflevector {self.vector} {start}, {self.vector} poison, {zeros}")

    def constant(self, value: float) -> str:
        """A literal in all lanes."""
        return f"splat ({self.scalar} {self.constant_scalar(value)})"

    def constant_scalar(self, value: float) -> str:
        """A literal."""
        return literal(value, self.kind.dtype)

    def load(self, row: str, position: str) -> str:
        """Elements of a row from a position on."""
        return self.w.load(self.vector, self.w.at(self.scalar, row, position), self.size)

    def store(self, value: str, row: str, position: str) -> None:
        """Elements of a row from a position on."""
        self.w.store(self.vector, value, self.w.at(self.scalar, row, position), self.size)

    def turns(self, position: str) -> list[str]:
        """Positions of the vectors of one step of 32 elements."""
        w = self.w
        return [position] + [w.add(position, t * self.lanes) for t in range(1, self.n_turns)]

    def folded(self, states: Sequence[str], body: Callable[..., Any]) -> str:
        """One value of all lanes: halves onto halves."""
        w, lanes = self.w, self.lanes
        states = list(states)
        while len(states) > 1:
            half = len(states) // 2
            states = [self.formula(body, states[i], states[i + half]) for i in range(half)]
        value = states[0]
        while lanes > 1:
            whole, half = f"<{lanes} x {self.scalar}>", lanes // 2
            parts = []
            for first in (0, half):
                chosen = ", ".join(f"i32 {first + lane}" for lane in range(half))
                parts.append(
                    w.let(
                        f"shufflevector {whole} {value}, {whole} poison, <{half} x i32> <{chosen}>"
                    )
                )
            if half == 1:
                kind = f"<1 x {self.scalar}>"
                parts = [w.let(f"extractelement {kind} {part}, i64 0") for part in parts]
            value = self.formula(body, *parts, lanes=half)
            lanes = half
        return value

    def folded_rows(self, states: Sequence[str], body: Callable[..., Any]) -> list[str]:
        """One value for each row, whose states follow each other."""
        n = self.n_turns
        return [self.folded(states[i : i + n], body) for i in range(0, len(states), n)]

    def masked(self, row: str, length: str, mask: str) -> None:
        """Adds the mask to a row of scores, or makes -inf where it is False."""
        with self.w.loop("0", length, step=LANES) as loop:
            for at in self.turns(loop.index):
                score = self.load(row, at)
                if self.kind.mask == "bool":
                    allowed = self.booleans(mask, at)
                    least = self.constant(float("-inf"))
                    score = self.select(allowed, score, least)
                else:
                    score = self.w.let(f"fadd {self.vector} {score}, {self.load(mask, at)}")
                self.store(score, row, at)

    def booleans(self, mask: str, position: str) -> str:
        """Bytes of a mask as i1."""
        w, full = self.w, f"<{self.lanes} x i8>"
        read = w.load(full, w.at("i8", mask, position), 1)
        return w.let(f"icmp ne {full} {read}, zeroinitializer")

    def select(self, allowed: str, yes: str, no: str) -> str:
        """yes where allowed, no elsewhere."""
        choice = f"<{self.lanes} x i1> {allowed}"
        return self.w.let(f"select {choice}, {self.vector} {yes}, {self.vector} {no}")

    def ended(self, row: str, length: str, value: str = NO_SCORE) -> None:
        """-inf (or another value) for a step past the end of a row."""
        full = f"<{LANES} x {self.scalar}>"
        end = self.w.at(self.scalar, row, length)
        self.w.store(full, f"splat ({self.scalar} {value})", end, self.size)

    def largest(self, rows: Sequence[str], length: str) -> list[str]:
        """The largest score of each row, 0 where all are -inf; a NaN may be passed over: the sum
        has it."""
        w = self.w
        start = [(self.vector, self.constant(float("-inf")))] * (len(rows) * self.n_turns)
        with w.loop("0", length, start, step=LANES) as loop:
            turns = self.turns(loop.index)
            places = [(row, at) for row in rows for at in turns]
            loop.next = [
                self.formula(_larger, self.load(row, at), state)
                for (row, at), state in zip(places, loop.carried, strict=True)
            ]
        values = self.folded_rows(loop.results, _larger)
        return [
            self.formula(lambda k, m: k.select(k.eq(m, float("-inf")), 0.0, m), value, lanes=1)
            for value in values
        ]

    def exponentials(
        self, rows: Sequence[str], length: str, largest: Sequence[str], drops: Sequence[str] = ()
    ) -> list[str]:
        """e to what each score is above its row's largest, in place, dropped ones 0; the sums of
        all."""
        w = self.w
        shifts = [self.splat(each) for each in largest]
        start = [(self.vector, "zeroinitializer")] * (len(rows) * self.n_turns)
        with w.loop("0", length, start, step=LANES) as loop:
            turns = self.turns(loop.index)
            states = iter(loop.carried)
            loop.next = []
            for number, (row, shift) in enumerate(zip(rows, shifts, strict=True)):
                for at in turns:
                    score = self.load(row, at)
                    value = self.formula(lambda k, s, m: k.exp(k.sub(s, m)), score, shift)
                    loop.next.append(w.let(f"fadd {self.vector} {next(states)}, {value}"))
                    if drops:
                        kept = self.booleans(drops[number], at)
                        value = self.select(kept, value, "zeroinitializer")
                    self.store(value, row, at)
        return self.folded_rows(loop.results, lambda k, a, b: k.add(a, b))

    def weights_again(self, row: str, length: str, largest: str, share: str) -> None:
        """The weights of a row of scores, in place."""
        shift, factor = self.splat(largest), self.splat(share)
        with self.w.loop("0", length, step=LANES) as loop:
            for at in self.turns(loop.index):
                value = self.formula(
                    lambda k, s, m, f: k.mul(k.exp(k.sub(s, m)), f),
                    self.load(row, at), shift, factor,
                )  # fmt: skip
                self.store(value, row, at)

    def dropped(self, row: str, length: str, drop: str, keep: str) -> None:
        """A row divided by `keep` where the mask has kept it, 0 elsewhere, in place."""
        w, divisor = self.w, self.splat(keep)
        with w.loop("0", length, step=LANES) as loop:
            for at in self.turns(loop.index):
                value = w.let(f"fdiv {self.vector} {self.load(row, at)}, {divisor}")
                value = self.select(self.booleans(drop, at), value, "zeroinitializer")
                self.store(value, row, at)

    def softmax_gradient(self, weights: str, row: str, length: str) -> None:
        """weights * (row - sum(weights * row)) in place of `row`."""
        w = self.w
        start = [(self.vector, "zeroinitializer")] * self.n_turns
        with w.loop("0", length, start, step=LANES) as loop:
            loop.next = [
                self.formula(
                    lambda k, g, p, t: k.add(t, k.mul(g, p)),
                    self.load(row, at), self.load(weights, at), state,
                )
                for at, state in zip(self.turns(loop.index), loop.carried, strict=True)
            ]  # fmt: skip
        total = self.splat(self.folded(loop.results, lambda k, a, b: k.add(a, b)))
        with w.loop("0", length, step=LANES) as loop:
            for at in self.turns(loop.index):
                value = self.formula(
                    lambda k, g, p, t: k.mul(k.sub(g, t), p),
                    self.load(row, at), self.load(weights, at), total,
                )  # fmt: skip
                self.store(value, row, at)

    def zeros(self, row: str, first: str, end: str) -> None:
        """0 from the step after `first` up to `end`, or further."""
        w = self.w
        start = w.let(f"and i64 {w.add(first, LANES - 1)}, {-LANES}")
        full = f"<{LANES} x {self.scalar}>"
        with w.loop(start, end, step=LANES) as loop:
            w.store(full, "zeroinitializer", w.at(self.scalar, row, loop.index), self.size)

    def scaled_row(self, source: str, target: str, factor: str, length: str) -> None:
        """source * factor to a row that ends where it ends."""
        w, vector = self.w, self.element.vector
        lanes, scalar = self.element.lanes, self.scalar
        whole = w.let(f"and i64 {length}, {-lanes}")
        start = w.let(f"insertelement {vector} poison, {scalar} {factor}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        wide = w.let(f"shufflevector {vector} {start}, {vector} poison, {zeros}")
        with w.loop("0", whole, step=lanes) as loop:
            read = w.load(vector, w.at(scalar, source, loop.index), self.size)
            made = w.let(f"fmul {vector} {read}, {wide}")
            w.store(vector, made, w.at(scalar, target, loop.index), self.size)
        with w.loop(whole, length) as loop:
            read = w.load(scalar, w.at(scalar, source, loop.index))
            made = w.let(f"fmul {scalar} {read}, {factor}")
            w.store(scalar, made, w.at(scalar, target, loop.index))


def _larger(k: Any, new: Any, old: Any) -> Any:
    return k.select(k.gt(new, old), new, old)
