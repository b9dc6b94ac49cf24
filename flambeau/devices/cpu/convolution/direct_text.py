"""Convolution of windows that lie side by side as LLVM text: rows of images, times the weights.

Keeps     an output is one product over channels and places of the kernel in order (contract of
          gemm.tile_text), so that its bits are those of forward_text.
Touches   forward_text, masks, tiles, writer.
Not here  padding (pad_text.py), who takes this way (plan.py).

Where windows are one element apart, a row of columns is a part of an image: it is read where it
lies, by a table of how far apart the rows of columns begin. Either vectors run on from row to row
over the padding between, and rows are cut out of what they made, or vectors fit into rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.convolution.forward_text import add_bias
from flambeau.devices.cpu.convolution.masks import mask_of, store_where
from flambeau.devices.cpu.convolution.windows_text import (
    ConvolutionClass,
    tabulate_columns,
    unit_of,
)
from flambeau.devices.cpu.tiles import context_of, set_context, tile_functions, tiles
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is an image, a group and a block of output rows. Of `wide`: scratch for a row of results of
# each output, where vectors run on; from a row of an image to the next, in elements.
WORDS: Final = (
    "image_at", "weight_at", "bias_at", "out_at", "n_blocks", "groups", "block_rows", "out_rows",
    "channels", "outputs", "k", "image_n", "image_g", "image_row", "weight_g", "weight_row",
    "out_n", "out_g", "out_row", "out_w", "table", "panel_bytes", "vector_bytes", "wide",
    "wide_bytes", "wide_row", "channel", "kernel_d", "kernel_h", "kernel_w", "far_d", "far_h",
    "far_w",
)  # fmt: skip


@lru_cache(maxsize=256)
def direct_kernel(kind: ConvolutionClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    element = kind.element
    size = element.n_bytes
    w = Writer()
    words = w.words(WORDS)
    table = w.moved("%scratch", words["table"])
    wide = w.moved("%scratch", words["wide"])
    c_row = words["wide_bytes"] if kind.is_wide else words["out_row"]
    context = context_of(
        w, a_row=words["weight_row"], a_column=size, c_row=c_row, c_column=size,
        k_length=words["k"], is_first=1, is_last=1, b_table_at=table,
        b_vector=words["vector_bytes"],
    )  # fmt: skip
    tabulate_columns(w, words, words["channels"], table)
    with w.loop("%begin", "%end") as unit:
        n, group, row, rows = unit_of(w, words, unit.index, "block_rows", "out_rows")
        image = w.moved(words["image_at"], w.mul(n, words["image_n"]))
        image = w.moved(image, w.mul(group, words["image_g"]))
        image = w.moved(image, w.mul(row, words["image_row"]))
        weight = w.moved(words["weight_at"], w.mul(group, words["weight_g"]))
        out = w.moved(words["out_at"], w.mul(n, words["out_n"]))
        out = w.moved(out, w.mul(group, words["out_g"]))
        out = w.moved(out, w.mul(w.mul(row, words["out_w"]), size))
        bias = w.at(element.stored, words["bias_at"], w.mul(group, words["outputs"]))
        places = w.mul(rows, words["out_w"])
        if kind.is_wide:
            last = w.mul(w.sub(rows, 1), words["wide_row"])
            reach = w.add(w.add(last, words["out_w"]), kind.width - 1)
            places = w.mul(w.let(f"udiv i64 {reach}, {kind.width}"), kind.width)
        set_context(w, context)
        tiles(
            w, kind.tile, context, weight, image, wide if kind.is_wide else out, words["outputs"],
            places, words["weight_row"], c_row, "%scratch", 0, panel_bytes=words["panel_bytes"],
        )  # fmt: skip
        if kind.is_wide:
            _cut_rows(w, kind, words, wide, out, rows, bias)
        elif kind.has_bias:
            add_bias(w, kind, bias, out, words["outputs"], places, words["out_row"])
    w.put("ret void")
    return kernel_of(f"convolution_direct_{kind.dtype.short_name}", w, tile_functions([kind.tile]))


def _cut_rows(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], wide: str, out: str, rows: str,
    bias: str,
) -> None:  # fmt: skip
    """Rows of results to memory without what lies between them, the bias added."""
    element = kind.element
    stored, lanes, size = element.stored, element.lanes, element.n_bytes
    vector = element.vector
    whole = w.let(f"and i64 {words['out_w']}, {-lanes}")
    rest = w.sub(words["out_w"], whole)
    mask = mask_of(w, lanes, rest)
    has_rest = w.compare("ne", rest, 0)
    wide_line = w.mul(words["wide_row"], size)
    line = w.mul(words["out_w"], size)
    with w.loop("0", words["outputs"], [("ptr", wide), ("ptr", out)]) as output:
        start, to_start = output.carried
        each = ""
        if kind.has_bias:
            one = w.load(stored, w.at(stored, bias, output.index))
            first = w.let(f"insertelement {vector} poison, {stored} {one}, i64 0")
            each = w.let(
                f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
            )

        def value_at(source: str, index: str, each: str = each) -> str:
            value = w.load(vector, w.at(stored, source, index), size)
            return w.let(f"{kind.add} {vector} {value}, {each}") if each else value

        with w.loop("0", rows, [("ptr", start), ("ptr", to_start)]) as row:
            at, to = row.carried
            with w.loop("0", whole, step=lanes) as loop:
                w.store(vector, value_at(at, loop.index), w.at(stored, to, loop.index), size)
            with w.when(has_rest):
                store_where(w, lanes, stored, value_at(at, whole), w.at(stored, to, whole), mask)
            row.next = [w.moved(at, wide_line), w.moved(to, line)]
        output.next = [w.moved(start, words["wide_bytes"]), w.moved(to_start, words["out_row"])]
