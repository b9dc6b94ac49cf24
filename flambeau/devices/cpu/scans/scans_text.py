"""LLVM text of running sums and products.

Keeps     along the dimension, blocks of 4096: a block's fold starts from the fold of the blocks
          before, each folded from its first element. So the bits do not depend on threads or on
          which kernel runs. float32 carries float64, 16-bit floats float32, integers 64 bits; each
          result is rounded once.
Touches   stored, writer.
Not here  which kernel runs (plan.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.stored import compute_type, narrow, shaped, stored_type, widen
from flambeau.devices.cpu.writer import Writer, kernel_of

BLOCK: Final = 4096
# Streams folded side by side: an addition's latency is that of four.
STREAMS: Final = 4
# Strides in bytes; carries: a carried value for each block of each stream.
WORDS: Final = (
    "source_at", "target_at", "carries_at", "n", "source_step", "target_step", "n_blocks",
    "n_streams", "columns", "n_column_blocks", "column_block",
)  # fmt: skip


@dataclass(frozen=True)
class ScanClass:
    """What a kernel's text depends on: outer dimensions are (size, source, target stride)."""

    element: dtype
    is_product: bool
    outer: int

    @property
    def carried(self) -> str:
        """LLVM type of the carried fold."""
        kind = compute_type(self.element)
        if kind == "float":
            return "double" if self.element.itemsize == 4 else "float"
        return kind if kind == "double" else "i64"

    @property
    def identity(self) -> str:
        """Fold of nothing."""
        one = "1" if self.is_product else "0"
        return one if self.carried == "i64" else one + ".0"

    def start(self, lanes: int = 0) -> str:
        """Fold of nothing in every lane."""
        return f"splat ({self.carried} {self.identity})" if lanes else self.identity

    def fold(self, w: Writer, total: str, value: str, lanes: int = 0) -> str:
        """total + value or total * value."""
        word = "mul" if self.is_product else "add"
        word = word if self.carried == "i64" else "f" + word
        return w.let(f"{word} {shaped(self.carried, lanes)} {total}, {value}")

    def load(self, w: Writer, pointer: str, lanes: int = 0) -> str:
        """An element as carried."""
        stored = shaped(stored_type(self.element), lanes)
        value = w.load(stored, pointer, self.element.itemsize)
        value = widen(w, self.element, value, lanes)
        kind, result = shaped(compute_type(self.element), lanes), shaped(self.carried, lanes)
        if kind == result:
            return value
        if self.carried == "double":
            return w.let(f"fpext {kind} {value} to {result}")
        word = "sext" if self.element.is_signed else "zext"
        return w.let(f"{word} {kind} {value} to {result}")

    def store(self, w: Writer, value: str, pointer: str, lanes: int = 0) -> None:
        """A carried value, rounded or cut."""
        kind, result = shaped(self.carried, lanes), shaped(compute_type(self.element), lanes)
        if kind != result:
            word = "fptrunc" if self.carried == "double" else "trunc"
            value = w.let(f"{word} {kind} {value} to {result}")
        value = narrow(w, self.element, value, lanes)
        w.store(shaped(stored_type(self.element), lanes), value, pointer, self.element.itemsize)


def _named(kind: ScanClass, what: str) -> str:
    return f"scan_{'product' if kind.is_product else 'sum'}_{what}_{kind.element.short_name}"


def _outer(w: Writer, kind: ScanClass, rest: str, source: str, target: str) -> tuple[str, str]:
    """Pointers of number `rest` of the outer dimensions."""
    for d in reversed(range(kind.outer)):
        place = w.at("i64", "%args", len(WORDS) + 3 * d)
        dim = w.words(("size", "source", "target"), place)
        rest, at = w.divide(rest, dim["size"])
        source = w.moved(source, w.mul(at, dim["source"]))
        target = w.moved(target, w.mul(at, dim["target"]))
    return source, target


@lru_cache(maxsize=256)
def stream_kernel(kind: ScanClass, writes: bool) -> tuple[str, str]:
    """A unit is four streams, each a block of a row: folds into carries, or results from them."""
    w = Writer()
    words = w.words(WORDS)
    with w.loop("%begin", "%end") as unit:
        streams = [
            _stream(w, kind, words, w.add(w.mul(unit.index, STREAMS), number), writes)
            for number in range(STREAMS)
        ]
        shortest = streams[0]["n"]
        for stream in streams[1:]:
            shortest = w.smaller(shortest, stream["n"])
        start = [(kind.carried, stream["fold"]) for stream in streams]
        with w.loop("0", shortest, start) as loop:
            loop.next = [
                _step(w, kind, words, stream, loop.index, fold, writes)
                for stream, fold in zip(streams, loop.carried, strict=True)
            ]
        for stream, fold in zip(streams, loop.results, strict=True):
            with w.loop(shortest, stream["n"], [(kind.carried, fold)]) as rest:
                rest.next = [_step(w, kind, words, stream, rest.index, rest.carried[0], writes)]
            if not writes:
                with w.when(w.compare("sgt", stream["n"], 0)):
                    w.store(kind.carried, rest.results[0], stream["carry"])
    w.put("ret void")
    return kernel_of(_named(kind, "write" if writes else "fold"), w)


def _stream(
    w: Writer, kind: ScanClass, words: dict[str, str], number: str, writes: bool
) -> dict[str, str]:
    """Pointers, length and first fold of a stream; of length 0 if there is no such stream."""
    there = w.compare("slt", number, words["n_streams"])
    number = w.let(f"select i1 {there}, i64 {number}, i64 0")
    row, block = w.divide(number, words["n_blocks"])
    source, target = _outer(w, kind, row, words["source_at"], words["target_at"])
    first = w.mul(block, BLOCK)
    n = w.smaller(w.sub(words["n"], first), BLOCK)
    carry = w.at(kind.carried, words["carries_at"], number)
    fold = kind.identity
    if writes:
        # The first block starts from nothing, and has no carry where it is the only one.
        is_first = w.compare("eq", block, "0")
        choice = w.choice(is_first, [kind.carried])
        choice.otherwise([kind.identity])
        choice.end([w.load(kind.carried, carry)])
        fold = choice.results[0]
    return {
        "n": w.let(f"select i1 {there}, i64 {n}, i64 0"),
        "source": w.moved(source, w.mul(first, words["source_step"])),
        "target": w.moved(target, w.mul(first, words["target_step"])),
        "carry": carry,
        "fold": fold,
    }


def _step(
    w: Writer, kind: ScanClass, words: dict[str, str], stream: dict[str, str], index: str,
    fold: str, writes: bool,
) -> str:  # fmt: skip
    value = kind.load(w, w.moved(stream["source"], w.mul(index, words["source_step"])))
    fold = kind.fold(w, fold, value)
    if writes:
        kind.store(w, fold, w.moved(stream["target"], w.mul(index, words["target_step"])))
    return fold


@lru_cache(maxsize=64)
def carry_kernel(kind: ScanClass) -> tuple[str, str]:
    """A unit is a row: folds of blocks become folds of all blocks before."""
    w = Writer()
    words = w.words(WORDS)
    with w.loop("%begin", "%end") as unit:
        row = w.at(kind.carried, words["carries_at"], w.mul(unit.index, words["n_blocks"]))
        with w.loop("0", words["n_blocks"], [(kind.carried, kind.identity)]) as loop:
            at = w.at(kind.carried, row, loop.index)
            own = w.load(kind.carried, at)
            w.store(kind.carried, loop.carried[0], at)
            loop.next = [kind.fold(w, loop.carried[0], own)]
    w.put("ret void")
    return kernel_of(_named(kind, "carry"), w)


@lru_cache(maxsize=128)
def column_kernel(kind: ScanClass, is_blocked: bool) -> tuple[str, str]:
    """A unit is a block of columns next to each other, folded downwards in vectors.

    is_blocked  whether there is more than one block of 4096 downwards"""
    w = Writer()
    words = w.words(WORDS)
    size = kind.element.itemsize
    with w.loop("%begin", "%end") as unit:
        row, block = w.divide(unit.index, words["n_column_blocks"])
        source, target = _outer(w, kind, row, words["source_at"], words["target_at"])
        first = w.mul(block, words["column_block"])
        end = w.smaller(w.add(first, words["column_block"]), words["columns"])
        for lanes in (64 // max(size, 4), 4, 0):
            step = lanes or 1
            whole = w.let(f"and i64 {w.sub(end, first)}, {-step}")
            stop = w.add(first, whole)
            with w.loop(first, stop, step=step) as loop:
                offset = w.mul(loop.index, size)
                _columns(
                    w, kind, words, w.moved(source, offset), w.moved(target, offset), lanes,
                    is_blocked,
                )  # fmt: skip
            first = stop
    w.put("ret void")
    return kernel_of(_named(kind, "columns"), w)


def _columns(
    w: Writer, kind: ScanClass, words: dict[str, str], source: str, target: str, lanes: int,
    is_blocked: bool,
) -> None:  # fmt: skip
    vector, start = shaped(kind.carried, lanes), kind.start(lanes)

    def rows(first: str, end: str, fold: str, own: str) -> tuple[str, str]:
        carried = [(vector, fold), (vector, own)] if is_blocked else [(vector, fold)]
        with w.loop(first, end, carried) as loop:
            value = kind.load(w, w.moved(source, w.mul(loop.index, words["source_step"])), lanes)
            loop.next = [kind.fold(w, each, value, lanes) for each in loop.carried]
            place = w.moved(target, w.mul(loop.index, words["target_step"]))
            kind.store(w, loop.next[0], place, lanes)
        return loop.results[0], loop.results[-1]

    if not is_blocked:
        rows("0", words["n"], start, start)
        return
    with w.loop("0", words["n"], [(vector, start)], BLOCK) as blocks:
        end = w.smaller(w.add(blocks.index, BLOCK), words["n"])
        _, own = rows(blocks.index, end, blocks.carried[0], start)
        blocks.next = [kind.fold(w, blocks.carried[0], own, lanes)]
