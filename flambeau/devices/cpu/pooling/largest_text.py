"""The largest element of windows and where it is, as LLVM text, and the gradient.

Keeps     the first of equal elements is taken, the last NaN of several, as torch does; a gradient's
          sums are over outputs in row-major order.
Touches   windows_text, writer.
Not here  sizes (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.pooling.windows_text import (
    SIZES,
    PoolClass,
    Span,
    clear,
    flat,
    span,
    volume,
)
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is a plane.
WORDS: Final = ("plane_at", "out_at", "index_at", *SIZES)


@lru_cache(maxsize=64)
def largest_kernel(kind: PoolClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    stored = kind.stored
    w = Writer()
    words = w.words(WORDS)
    count, places = volume(w, words, "out"), volume(w, words, "in")
    first, end = _inner(w, words) if kind.step else ("0", "0")
    with w.loop("%begin", "%end") as unit:
        plane = w.at(stored, words["plane_at"], w.mul(unit.index, places))
        out = w.at(stored, words["out_at"], w.mul(unit.index, count))
        index = w.at("i64", words["index_at"], w.mul(unit.index, count))
        with w.loop("0", words["out_d"]) as depth, w.loop("0", words["out_h"]) as line:
            deep = span(w, kind, words, "d", depth.index)
            tall = span(w, kind, words, "h", line.index)
            row = w.mul(w.add(w.mul(depth.index, words["out_h"]), line.index), words["out_w"])
            out_row, index_row = w.at(stored, out, row), w.at("i64", index, row)

            def single(
                at: str, spans: tuple[Span, Span] = (deep, tall), out_row: str = out_row,
                index_row: str = index_row, plane: str = plane,
            ) -> None:  # fmt: skip
                wide = span(w, kind, words, "w", at)
                value, place = _one(w, kind, words, plane, (*spans, wide))
                w.store(stored, value, w.at(stored, out_row, at))
                w.store("i64", place, w.at("i64", index_row, at))

            with w.loop("0", first) as loop:
                single(loop.index)
            if kind.step:
                # The last vector starts early; what it shares with the one before is the same.
                latest = w.sub(end, kind.lanes)
                fits = w.compare("sge", latest, first)
                stop = w.let(f"select i1 {fits}, i64 {end}, i64 {first}")
                with w.loop(first, stop, step=kind.lanes) as loop:
                    at = w.smaller(loop.index, latest)
                    _several(w, kind, words, plane, (deep, tall), at, out_row, index_row)
            else:
                stop = "0"
            with w.loop(stop, words["out_w"]) as loop:
                single(loop.index)
    w.put("ret void")
    return kernel_of(f"pool_largest_{kind.dtype.short_name}", w)


def _inner(w: Writer, words: dict[str, str]) -> tuple[str, str]:
    """Outputs [first, end) of a row whose windows lie inside the plane; first <= end."""
    step, pad = words["step_w"], words["pad_w"]
    reach = w.mul(w.sub(words["kernel_w"], 1), words["far_w"])
    first, _ = w.divide(w.add(pad, w.sub(step, 1)), step)
    first = w.smaller(first, words["out_w"])
    room = w.sub(w.add(words["in_w"], pad), reach)  # windows begin before this
    is_some = w.compare("sgt", room, 0)
    room = w.let(f"select i1 {is_some}, i64 {room}, i64 0")
    end, _ = w.divide(w.add(room, w.sub(step, 1)), step)
    end = w.smaller(end, words["out_w"])
    is_less = w.compare("slt", end, first)
    return first, w.let(f"select i1 {is_less}, i64 {first}, i64 {end}")


def _lowest(kind: PoolClass) -> str:
    return {
        "float": "0xFFF0000000000000", "double": "0xFFF0000000000000",
        "i32": str(-(2**31)), "i64": str(-(2**63)),
    }[kind.stored]  # fmt: skip


def _one(
    w: Writer, kind: PoolClass, words: dict[str, str], plane: str, spans: tuple[Span, Span, Span]
) -> tuple[str, str]:
    """(largest, its place) of a window."""
    stored = kind.stored
    deep, tall, wide = spans
    start = flat(w, words, "in", [deep.low, tall.low, wide.low])
    carried = [(stored, _lowest(kind)), ("i64", start)]
    with w.loop(deep.low, deep.high, carried, step=words["far_d"]) as depth:
        given = list(zip((stored, "i64"), depth.carried, strict=True))
        with w.loop(tall.low, tall.high, given, step=words["far_h"]) as line:
            given = list(zip((stored, "i64"), line.carried, strict=True))
            with w.loop(wide.low, wide.high, given, step=words["far_w"]) as loop:
                best, place = loop.carried
                here = flat(w, words, "in", [depth.index, line.index, loop.index])
                value = w.load(stored, w.at(stored, plane, here))
                takes = _takes(w, kind, stored, value, best, "i1")
                loop.next = [
                    w.let(f"select i1 {takes}, {stored} {value}, {stored} {best}"),
                    w.let(f"select i1 {takes}, i64 {here}, i64 {place}"),
                ]
            line.next = loop.results
        depth.next = line.results
    return depth.results[0], depth.results[1]


def _takes(w: Writer, kind: PoolClass, shape: str, value: str, best: str, mask: str) -> str:
    """Whether `value` replaces `best`: larger, or NaN."""
    if not kind.dtype.is_floating_point:
        return w.let(f"icmp sgt {shape} {value}, {best}")
    larger = w.let(f"fcmp ogt {shape} {value}, {best}")
    is_nan = w.let(f"fcmp uno {shape} {value}, {value}")
    return w.let(f"or {mask} {larger}, {is_nan}")


def _several(
    w: Writer, kind: PoolClass, words: dict[str, str], plane: str, spans: tuple[Span, Span],
    at: str, out_row: str, index_row: str,
) -> None:  # fmt: skip
    """As _one for neighbouring outputs whose windows lie inside the row."""
    stored, lanes, size = kind.stored, kind.lanes, kind.dtype.itemsize
    vector, places, mask = f"<{lanes} x {stored}>", f"<{lanes} x i64>", f"<{lanes} x i1>"
    deep, tall = spans
    left = w.sub(w.mul(at, words["step_w"]), words["pad_w"])
    numbers = ", ".join(f"i64 {lane * kind.step}" for lane in range(lanes))
    offsets = f"<{numbers}>"

    def spread(word: str) -> str:
        one = w.let(f"insertelement {places} poison, i64 {word}, i64 0")
        same = w.let(
            f"shufflevector {places} {one}, {places} poison, <{lanes} x i32> zeroinitializer"
        )
        return w.let(f"add {places} {same}, {offsets}")

    start = spread(flat(w, words, "in", [deep.low, tall.low, left]))
    lowest = f"splat ({stored} {_lowest(kind)})"
    kinds = (vector, places)
    with w.loop(deep.low, deep.high, [(vector, lowest), (places, start)], step=words["far_d"]
                ) as depth:  # fmt: skip
        given = list(zip(kinds, depth.carried, strict=True))
        with w.loop(tall.low, tall.high, given, step=words["far_h"]) as line:
            given = list(zip(kinds, line.carried, strict=True))
            here = flat(w, words, "in", [depth.index, line.index, left])
            with w.loop("0", words["kernel_w"], given) as loop:
                best, place = loop.carried
                number = w.add(here, w.mul(loop.index, words["far_w"]))
                value = _load(w, kind, w.at(stored, plane, number), vector, size)
                takes = _takes(w, kind, vector, value, best, mask)
                new = spread(number)
                loop.next = [
                    w.let(f"select {mask} {takes}, {vector} {value}, {vector} {best}"),
                    w.let(f"select {mask} {takes}, {places} {new}, {places} {place}"),
                ]
            line.next = loop.results
        depth.next = line.results
    value, place = depth.results
    w.store(vector, value, w.at(stored, out_row, at), size)
    w.store(places, place, w.at("i64", index_row, at), 8)


def _load(w: Writer, kind: PoolClass, pointer: str, vector: str, size: int) -> str:
    low = w.load(vector, pointer, size)
    if kind.step == 1:
        return low
    high = w.load(vector, w.at(kind.stored, pointer, kind.lanes), size)
    evens = ", ".join(f"i32 {2 * lane}" for lane in range(kind.lanes))
    return w.let(f"shufflevector {vector} {low}, {vector} {high}, <{kind.lanes} x i32> <{evens}>")


GRADIENT_WORDS: Final = ("grad_at", "index_at", "plane_at", "places", "outputs")


@lru_cache(maxsize=64)
def largest_gradient_kernel(kind: PoolClass) -> tuple[str, str]:
    """plane[index] += grad over the outputs of a plane, a unit."""
    stored = kind.stored
    w = Writer()
    words = w.words(GRADIENT_WORDS)
    word = "fadd" if kind.dtype.is_floating_point else "add"
    with w.loop("%begin", "%end") as unit:
        plane = w.at(stored, words["plane_at"], w.mul(unit.index, words["places"]))
        first = w.mul(unit.index, words["outputs"])
        grad, index = w.at(stored, words["grad_at"], first), w.at("i64", words["index_at"], first)
        clear(w, kind, plane, words["places"])
        with w.loop("0", words["outputs"]) as loop:
            place = w.at(stored, plane, w.load("i64", w.at("i64", index, loop.index)))
            value = w.load(stored, w.at(stored, grad, loop.index))
            w.store(stored, w.let(f"{word} {stored} {w.load(stored, place)}, {value}"), place)
    w.put("ret void")
    return kernel_of(f"pool_largest_gradient_{kind.dtype.short_name}", w)
