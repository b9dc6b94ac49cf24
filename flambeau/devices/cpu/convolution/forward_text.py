"""Convolution as LLVM text: windows of a block of output rows, times the weights.

Keeps     an output is one product over channels and places of the kernel in order (contract of
          gemm.tile_text); the block it is computed in cannot show.
Touches   windows_text, writer.
Not here  padding (pad_text.py), sizes of blocks (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.convolution.windows_text import (
    GEOMETRY,
    ConvolutionClass,
    first_row,
    gather_columns,
    unit_of,
)
from flambeau.devices.cpu.tiles import context_of, set_context, tile_functions, tiles
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is an image, a group and a block of output rows.
WORDS: Final = (
    "image_at", "weight_at", "bias_at", "out_at", "n_blocks", "groups", "block_rows", "out_rows",
    "channels", "k", "outputs", "image_n", "image_g", "weight_g", "weight_row", "out_n", "out_g",
    "out_row", "columns_row", "columns", *GEOMETRY,
)  # fmt: skip


@lru_cache(maxsize=256)
def forward_kernel(kind: ConvolutionClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    element = kind.element
    size = element.n_bytes
    w = Writer()
    words = w.words(WORDS)
    context = context_of(
        w, a_row=words["weight_row"], a_column=size, b_row=words["columns_row"],
        c_row=words["out_row"], c_column=size, k_length=words["k"], is_first=1, is_last=1,
    )  # fmt: skip
    columns = w.moved("%scratch", words["columns"])
    with w.loop("%begin", "%end") as unit:
        n, group, row, rows = unit_of(w, words, unit.index, "block_rows", "out_rows")
        image = w.moved(words["image_at"], w.mul(n, words["image_n"]))
        image = w.moved(image, w.mul(group, words["image_g"]))
        gather_columns(
            w, kind, words, words["channels"], image, first_row(w, words, row), rows, columns,
            words["columns_row"],
        )  # fmt: skip
        weight = w.moved(words["weight_at"], w.mul(group, words["weight_g"]))
        out = w.moved(words["out_at"], w.mul(n, words["out_n"]))
        out = w.moved(out, w.mul(group, words["out_g"]))
        out = w.moved(out, w.mul(w.mul(row, words["out_w"]), size))
        places = w.mul(rows, words["out_w"])
        set_context(w, context)
        tiles(
            w, kind.tile, context, weight, columns, out, words["outputs"], places,
            words["weight_row"], words["out_row"], "%scratch", 0,
        )  # fmt: skip
        if kind.has_bias:
            first = w.mul(group, words["outputs"])
            bias = w.at(element.stored, words["bias_at"], first)
            add_bias(w, kind, bias, out, words["outputs"], places, words["out_row"])
    w.put("ret void")
    return kernel_of(f"convolution_{kind.dtype.short_name}", w, tile_functions([kind.tile]))


def add_bias(
    w: Writer, kind: ConvolutionClass, bias: str, out: str, rows: str, n: str, row_bytes: str
) -> None:
    """out[row][:n] += bias[row] for a block that is still in the cache."""
    element = kind.element
    stored, lanes, size = element.stored, element.lanes, element.n_bytes
    vector = element.vector
    whole = w.let(f"and i64 {n}, {-lanes}")
    with w.loop("0", rows, [("ptr", out)]) as row:
        one = w.load(stored, w.at(stored, bias, row.index))
        start = w.let(f"insertelement {vector} poison, {stored} {one}, i64 0")
        each = w.let(
            f"shufflevector {vector} {start}, {vector} poison, <{lanes} x i32> zeroinitializer"
        )
        at = row.carried[0]
        with w.loop("0", whole, step=lanes) as loop:
            place = w.at(stored, at, loop.index)
            total = w.let(f"{kind.add} {vector} {w.load(vector, place, size)}, {each}")
            w.store(vector, total, place, size)
        with w.loop(whole, n) as loop:
            place = w.at(stored, at, loop.index)
            w.store(stored, w.let(f"{kind.add} {stored} {w.load(stored, place)}, {one}"), place)
        row.next = [w.moved(at, row_bytes)]
