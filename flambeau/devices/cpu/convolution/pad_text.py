"""Zeros around the images of a convolution, as LLVM text.

Keeps     a unit writes one plane, whole.
Touches   writer, masks.
Not here  padding that users ask for (ops.indexing.joins)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.convolution.masks import load_where, mask_of, store_where
from flambeau.devices.cpu.writer import Writer, kernel_of

WORDS: Final = (
    "source_at", "target_at", "channels", "depth", "height", "width", "source_n", "source_c",
    "source_d", "source_h", "source_w", "plane", "target_d", "target_h", "first",
)  # fmt: skip


@lru_cache(maxsize=64)
def pad_kernel(n_bytes: int) -> tuple[str, str]:
    """Units are planes; strides in bytes, `plane` and `first` (of the first element) too."""
    kind = f"i{8 * n_bytes}"
    lanes = 32 // n_bytes
    vector = f"<{lanes} x {kind}>"
    w = Writer()
    words = w.words(WORDS)
    is_run = w.compare("eq", words["source_w"], n_bytes)
    whole = w.let(f"and i64 {words['width']}, {-lanes}")
    vectors = w.let(f"select i1 {is_run}, i64 {whole}, i64 0")
    has_rest = w.let(f"and i1 {is_run}, {w.compare('slt', whole, words['width'])}")
    rest = mask_of(w, lanes, w.sub(words["width"], whole))
    done = w.let(f"select i1 {is_run}, i64 {words['width']}, i64 0")
    fill = w.let(f"and i64 {words['plane']}, -32")
    fill_rest = mask_of(w, lanes, w.let(f"udiv i64 {w.sub(words['plane'], fill)}, {n_bytes}"))
    with w.loop("%begin", "%end") as unit:
        n, c = w.divide(unit.index, words["channels"])
        source = w.moved(words["source_at"], w.mul(n, words["source_n"]))
        source = w.moved(source, w.mul(c, words["source_c"]))
        target = w.moved(words["target_at"], w.mul(unit.index, words["plane"]))
        with w.loop("0", fill, step=32) as loop:
            w.store(vector, "zeroinitializer", w.moved(target, loop.index), n_bytes)
        store_where(w, lanes, kind, "zeroinitializer", w.moved(target, fill), fill_rest)
        start = [("ptr", source), ("ptr", w.moved(target, words["first"]))]
        with w.loop("0", words["depth"], start) as depth:
            with w.loop("0", words["height"], [("ptr", x) for x in depth.carried]) as line:
                at, to = line.carried
                with w.loop("0", vectors, step=lanes) as loop:
                    value = w.load(vector, w.at(kind, at, loop.index), n_bytes)
                    w.store(vector, value, w.at(kind, to, loop.index), n_bytes)
                with w.when(has_rest):
                    value = load_where(w, lanes, kind, w.at(kind, at, whole), rest)
                    store_where(w, lanes, kind, value, w.at(kind, to, whole), rest)
                with w.loop(done, words["width"]) as loop:
                    value = w.load(kind, w.moved(at, w.mul(loop.index, words["source_w"])))
                    w.store(kind, value, w.at(kind, to, loop.index))
                line.next = [w.moved(at, words["source_h"]), w.moved(to, words["target_h"])]
            depth.next = [
                w.moved(depth.carried[0], words["source_d"]),
                w.moved(depth.carried[1], words["target_d"]),
            ]
    w.put("ret void")
    return kernel_of(f"pad_{kind}", w)
