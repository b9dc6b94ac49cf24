"""Gradient of the weights of one output a group, as LLVM text: windows times cotangents, lane by
lane.

Keeps     a sum has as many lanes as 64 bytes hold, whatever vectors the CPU has: within an image a
          lane is one chain over rows and places a vector apart; images in order; lanes by halves.
Touches   windows_text, masks, writer.
Not here  more outputs (weight_text.py), adding up the parts (ops.convolution)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.convolution.masks import load_where, mask_of
from flambeau.devices.cpu.convolution.windows_text import (
    GEOMETRY,
    ConvolutionClass,
    copy_run,
    tabulate_columns,
)
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is a part (a range of images) and a group. Windows that are not side by side are copied
# to `copies`, a row for each column.
WORDS: Final = (
    "image_at", "grad_at", "out_at", "images", "part_images", "groups", "channels", "columns",
    "out_rows", "image_n", "image_g", "grad_n", "grad_g", "out_part", "out_g", "table", "totals",
    "copies", "copies_row", *GEOMETRY,
)  # fmt: skip
_VECTOR_BYTES: Final = 64


@lru_cache(maxsize=64)
def dots_kernel(kind: ConvolutionClass) -> tuple[str, str]:
    """Name and text of a kernel; `rows` columns are added up at a time, `edge` at the end."""
    size = kind.element.n_bytes
    lanes = _VECTOR_BYTES // size
    w = Writer()
    words = w.words(WORDS)
    vector = f"<{lanes} x {kind.element.stored}>"
    table, totals = (w.moved("%scratch", words[name]) for name in ("table", "totals"))
    tabulate_columns(w, words, words["channels"], table)
    whole = w.let(f"and i64 {words['out_w']}, {-lanes}")
    mask = mask_of(w, lanes, w.sub(words["out_w"], whole))
    with w.loop("%begin", "%end") as unit:
        part, group = w.divide(unit.index, words["groups"])
        first = w.mul(part, words["part_images"])
        images = w.smaller(w.sub(words["images"], first), words["part_images"])
        image = w.moved(words["image_at"], w.mul(first, words["image_n"]))
        image = w.moved(image, w.mul(group, words["image_g"]))
        grad = w.moved(words["grad_at"], w.mul(first, words["grad_n"]))
        grad = w.moved(grad, w.mul(group, words["grad_g"]))
        with w.loop("0", words["columns"], [("ptr", totals)]) as each:
            w.store(vector, "zeroinitializer", each.carried[0], size)
            each.next = [w.moved(each.carried[0], _VECTOR_BYTES)]
        with w.loop("0", images, [("ptr", image), ("ptr", grad)]) as one:
            image, grad = one.carried
            tiles = w.sub(words["columns"], kind.edge)
            start = [("ptr", table), ("ptr", totals)]
            with w.loop("0", tiles, start, step=kind.rows) as tile:
                at, to = tile.carried
                _add_columns(w, kind, words, kind.rows, (image, grad), (at, to), (whole, mask))
                tile.next = [w.moved(at, 8 * kind.rows), w.moved(to, _VECTOR_BYTES * kind.rows)]
            if kind.edge:
                at, to = tile.results
                _add_columns(w, kind, words, kind.edge, (image, grad), (at, to), (whole, mask))
            one.next = [w.moved(image, words["image_n"]), w.moved(grad, words["grad_n"])]
        out = w.moved(words["out_at"], w.mul(part, words["out_part"]))
        out = w.moved(out, w.mul(group, words["out_g"]))
        with w.loop("0", words["columns"], [("ptr", totals), ("ptr", out)]) as each:
            at, to = each.carried
            w.store(kind.element.stored, _folded(w, kind, w.load(vector, at, size), lanes), to)
            each.next = [w.moved(at, _VECTOR_BYTES), w.moved(to, size)]
    w.put("ret void")
    return kernel_of(f"convolution_dots_{kind.dtype.short_name}", w)


def _add_columns(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], count: int, pair: tuple[str, str],
    places: tuple[str, str], end: tuple[str, str],
) -> None:  # fmt: skip
    """Add what an image and its cotangent give to the totals of `count` columns."""
    stored, size = kind.element.stored, kind.element.n_bytes
    lanes = _VECTOR_BYTES // size
    vector = f"<{lanes} x {stored}>"
    (image, grad), (table, totals), (whole, mask) = pair, places, end
    sources = [w.moved(image, w.load("i64", w.at("i64", table, n))) for n in range(count)]
    copies = w.moved("%scratch", words["copies"])
    targets = [w.moved(copies, w.mul(words["copies_row"], n)) for n in range(count)]
    zeros = [(vector, "zeroinitializer")] * count
    has_rest = w.compare("slt", whole, words["out_w"])
    line_bytes = w.mul(words["out_w"], size)
    with w.loop("0", words["out_rows"], [("i64", "0"), ("ptr", grad), *zeros]) as row:
        far, line, *sums = row.carried
        rows = [w.moved(source, far) for source in sources]
        if kind.step != 1:
            for source, target in zip(rows, targets, strict=True):
                copy_run(w, kind, source, target, words)
            rows = targets

        def added(index: str, sums: list[str], is_last: bool, line: str, rows: list[str]
                  ) -> list[str]:  # fmt: skip
            def load(start: str) -> str:
                place = w.at(stored, start, index)
                if is_last:
                    return load_where(w, lanes, stored, place, mask)
                return w.load(vector, place, size)

            right = load(line)
            return [
                _multiply_add(w, kind, vector, lanes, load(start), right, total)
                for start, total in zip(rows, sums, strict=True)
            ]

        with w.loop("0", whole, [(vector, each) for each in sums], step=lanes) as loop:
            loop.next = added(loop.index, loop.carried, False, line, rows)
        choice = w.choice(has_rest, [vector] * count)
        choice.otherwise(added(whole, loop.results, True, line, rows))
        choice.end(loop.results)
        row.next = [w.add(far, words["step_h"]), w.moved(line, line_bytes), *choice.results]
    for n, total in enumerate(row.results[2:]):
        place = w.moved(totals, _VECTOR_BYTES * n)
        before = w.load(vector, place, size)
        w.store(vector, w.let(f"{kind.add} {vector} {before}, {total}"), place, size)


def _multiply_add(
    w: Writer, kind: ConvolutionClass, vector: str, lanes: int, left: str, right: str, total: str
) -> str:
    """total + left * right, rounded once (floats) or wrapped (integers)."""
    if not kind.element.is_float:
        return w.let(f"add {vector} {total}, {w.let(f'mul {vector} {left}, {right}')}")
    name = f"@llvm.fma.v{lanes}f{8 * kind.element.n_bytes}"
    w.declare(f"{vector} {name}({vector}, {vector}, {vector})")
    return w.let(f"call {vector} {name}({vector} {left}, {vector} {right}, {vector} {total})")


def _folded(w: Writer, kind: ConvolutionClass, total: str, lanes: int) -> str:
    """The sum of a vector's lanes, by halves."""
    stored = kind.element.stored
    while lanes > 1:
        whole, lanes = f"<{lanes} x {stored}>", lanes // 2
        parts = []
        for start in (0, lanes):
            numbers = ", ".join(f"i32 {start + n}" for n in range(lanes))
            parts.append(
                w.let(f"shufflevector {whole} {total}, {whole} poison, <{lanes} x i32> <{numbers}>")
            )
        total = w.let(f"{kind.add} <{lanes} x {stored}> {parts[0]}, {parts[1]}")
    return w.let(f"extractelement <1 x {stored}> {total}, i64 0")
