"""Means of windows as LLVM text, and their gradient.

Keeps     a sum is over the places of the window in row-major order; a gradient's over outputs.
Touches   windows_text, writer.
Not here  sizes (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.pooling.windows_text import (
    AXES,
    SIZES,
    PoolClass,
    Span,
    clear,
    flat,
    outputs,
    span,
    volume,
)
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is a plane. divisor: instead of the number of places, where it is not 0;
# counts_padding: 1 where padding counts as places.
WORDS: Final = ("plane_at", "out_at", "divisor", "counts_padding", *SIZES)


def _divisor(w: Writer, kind: PoolClass, words: dict[str, str], spans: list[Span]) -> str:
    """What the sum of a window is divided by, as an element."""
    counts_padding = w.compare("ne", words["counts_padding"], 0)
    total = "1"
    for each in spans:
        inside = w.sub(each.high, each.low)
        count = w.let(f"select i1 {counts_padding}, i64 {each.counted}, i64 {inside}")
        total = w.mul(total, count)
    is_given = w.compare("ne", words["divisor"], 0)
    total = w.let(f"select i1 {is_given}, i64 {words['divisor']}, i64 {total}")
    if not kind.dtype.is_floating_point:
        return total
    return w.let(f"sitofp i64 {total} to {kind.stored}")


@lru_cache(maxsize=64)
def average_kernel(kind: PoolClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    stored = kind.stored
    add, divide = ("fadd", "fdiv") if kind.dtype.is_floating_point else ("add", "sdiv")
    zero = "0.0" if kind.dtype.is_floating_point else "0"
    w = Writer()
    words = w.words(WORDS)
    count, places = volume(w, words, "out"), volume(w, words, "in")
    with w.loop("%begin", "%end") as unit:
        plane = w.at(stored, words["plane_at"], w.mul(unit.index, places))
        out = w.at(stored, words["out_at"], w.mul(unit.index, count))
        with outputs(w, words) as at:
            spans = [span(w, kind, words, axis, each) for axis, each in zip(AXES, at, strict=True)]
            deep, tall, wide = spans
            with w.loop(deep.low, deep.high, [(stored, zero)]) as depth:
                with w.loop(tall.low, tall.high, [(stored, depth.carried[0])]) as line:
                    row = flat(w, words, "in", [depth.index, line.index, "0"])
                    start = w.at(stored, plane, row)
                    with w.loop(wide.low, wide.high, [(stored, line.carried[0])]) as loop:
                        value = w.load(stored, w.at(stored, start, loop.index))
                        loop.next = [w.let(f"{add} {stored} {loop.carried[0]}, {value}")]
                    line.next = loop.results
                depth.next = line.results
            divisor = _divisor(w, kind, words, spans)
            mean = w.let(f"{divide} {stored} {depth.results[0]}, {divisor}")
            w.store(stored, mean, w.at(stored, out, flat(w, words, "out", at)))
    w.put("ret void")
    return kernel_of(f"pool_average_{kind.dtype.short_name}", w)


@lru_cache(maxsize=64)
def average_gradient_kernel(kind: PoolClass) -> tuple[str, str]:
    """out_at holds the cotangents; plane_at is written."""
    stored = kind.stored
    w = Writer()
    words = w.words(WORDS)
    count, places = volume(w, words, "out"), volume(w, words, "in")
    with w.loop("%begin", "%end") as unit:
        plane = w.at(stored, words["plane_at"], w.mul(unit.index, places))
        grad = w.at(stored, words["out_at"], w.mul(unit.index, count))
        clear(w, kind, plane, places)
        with outputs(w, words) as at:
            spans = [span(w, kind, words, axis, each) for axis, each in zip(AXES, at, strict=True)]
            deep, tall, wide = spans
            value = w.load(stored, w.at(stored, grad, flat(w, words, "out", at)))
            share = w.let(f"fdiv {stored} {value}, {_divisor(w, kind, words, spans)}")
            with w.loop(deep.low, deep.high) as depth, w.loop(tall.low, tall.high) as line:
                start = w.at(stored, plane, flat(w, words, "in", [depth.index, line.index, "0"]))
                with w.loop(wide.low, wide.high) as loop:
                    place = w.at(stored, start, loop.index)
                    total = w.let(f"fadd {stored} {w.load(stored, place)}, {share}")
                    w.store(stored, total, place)
    w.put("ret void")
    return kernel_of(f"pool_average_gradient_{kind.dtype.short_name}", w)
