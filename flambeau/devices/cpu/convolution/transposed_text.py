"""Transposed convolution as LLVM text: weights times places, added up where windows overlap.

Keeps     a sum at a place of the image is over blocks of rows, then places of the kernel, in order;
          the blocks follow from sizes alone.
Touches   windows_text, masks, writer.
Not here  sizes of blocks (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.convolution.masks import mask_of
from flambeau.devices.cpu.convolution.windows_text import (
    GEOMETRY,
    ConvolutionClass,
    each_column,
    each_row,
    first_row,
    unit_of,
)
from flambeau.devices.cpu.tiles import context_of, tile_functions, tiles
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is an image, a group and a block of its channels. `places` are what windows stand for.
WORDS: Final = (
    "places_at", "weight_at", "bias_at", "out_at", "n_blocks", "groups", "block_channels",
    "channels", "kernel", "inputs", "out_rows", "block_rows", "places_n", "places_g", "places_row",
    "weight_g", "weight_row", "out_n", "out_g", "out_c", "out_d", "out_line", "depth", "height",
    "width", "image_bytes", "image_first", "image_d", "image_h", "packed_row", "columns_row",
    "packed", "columns", "image", *GEOMETRY,
)  # fmt: skip


@lru_cache(maxsize=256)
def transposed_kernel(kind: ConvolutionClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    element = kind.element
    size = element.n_bytes
    w = Writer()
    words = w.words(WORDS)
    context = context_of(
        w, a_row=words["weight_row"], a_column=size, b_row=words["packed_row"],
        c_row=words["columns_row"], c_column=size, k_length=words["inputs"], is_first=1, is_last=1,
    )  # fmt: skip
    packed, columns, image = (
        w.moved("%scratch", words[name]) for name in ("packed", "columns", "image")
    )
    with w.loop("%begin", "%end") as unit:
        n, group, channel, channels = unit_of(w, words, unit.index, "block_channels", "channels")
        rows_of_weight = w.mul(channels, words["kernel"])
        places = w.moved(words["places_at"], w.mul(n, words["places_n"]))
        places = w.moved(places, w.mul(group, words["places_g"]))
        weight = w.moved(words["weight_at"], w.mul(group, words["weight_g"]))
        skipped = w.mul(channel, words["kernel"])
        weight = w.moved(weight, w.mul(skipped, words["weight_row"]))
        _clear(w, kind, image, w.mul(channels, words["channel"]))
        with w.loop("0", words["out_rows"], step=words["block_rows"]) as block_of_rows:
            row = block_of_rows.index
            rows = w.smaller(w.sub(words["out_rows"], row), words["block_rows"])
            count = w.mul(rows, words["out_w"])
            start = w.moved(places, w.mul(w.mul(row, words["out_w"]), size))
            pack_rows(w, kind, start, packed, words, count)
            tiles(
                w, kind.tile, context, weight, packed, columns, rows_of_weight, count,
                words["weight_row"], words["columns_row"], "%scratch", 0,
            )  # fmt: skip
            first = first_row(w, words, row)

            def column(
                place: str, source: str, first: tuple[str, str] = first, rows: str = rows
            ) -> None:
                each_row(
                    w, kind, words, first, rows, place, source,
                    lambda target, run: _add_run(w, kind, run, target, words),
                )  # fmt: skip

            each_column(w, words, channels, image, columns, words["columns_row"], column)
        out = w.moved(words["out_at"], w.mul(n, words["out_n"]))
        out = w.moved(out, w.mul(group, words["out_g"]))
        out = w.moved(out, w.mul(channel, words["out_c"]))
        place = w.add(w.mul(group, words["channels"]), channel)
        _crop(w, kind, words, image, out, channels, place)
    w.put("ret void")
    return kernel_of(
        f"convolution_transposed_{kind.dtype.short_name}", w, tile_functions([kind.tile])
    )


def _clear(w: Writer, kind: ConvolutionClass, image: str, n_bytes: str) -> None:
    """Zeros, whole vectors: scratch has room behind the image."""
    vector = kind.element.vector
    with w.loop("0", n_bytes, step=kind.vector_bits // 8) as loop:
        w.store(vector, "zeroinitializer", w.moved(image, loop.index), kind.element.n_bytes)


def pack_rows(
    w: Writer, kind: ConvolutionClass, source: str, target: str, words: dict[str, str], count: str
) -> None:
    """Rows of places, one a channel, to scratch."""
    element = kind.element
    stored, size = element.stored, element.n_bytes
    with w.loop("0", words["inputs"], [("ptr", source), ("ptr", target)]) as row:
        at, to = row.carried
        with w.loop("0", count, step=element.lanes) as loop:
            value = w.load(element.vector, w.at(stored, at, loop.index), size)
            w.store(element.vector, value, w.at(stored, to, loop.index), size)
        row.next = [w.moved(at, words["places_row"]), w.moved(to, words["packed_row"])]


def _add_run(
    w: Writer, kind: ConvolutionClass, source: str, target: str, words: dict[str, str]
) -> None:
    """Add a row of places to the image; lanes past its end and between places add zero."""
    element = kind.element
    stored, lanes, size = element.stored, kind.run, element.n_bytes
    vector = f"<{lanes} x {stored}>"
    if kind.step not in (1, 2):
        with w.loop("0", words["out_w"], [("ptr", target)]) as loop:
            at = loop.carried[0]
            one = w.load(stored, w.at(stored, source, loop.index))
            w.store(stored, w.let(f"{kind.add} {stored} {w.load(stored, at)}, {one}"), at)
            loop.next = [w.moved(at, words["step_w"])]
        return
    whole = w.let(f"and i64 {words['out_w']}, {-lanes}")

    def add(index: str, mask: str = "") -> None:
        value = w.load(vector, w.at(stored, source, index), size)
        if mask:
            value = w.let(
                f"select <{lanes} x i1> {mask}, {vector} {value}, {vector} zeroinitializer"
            )
        spread, at = vector, w.at(stored, target, index)
        if kind.step == 2:
            spread, at = f"<{2 * lanes} x {stored}>", w.at(stored, at, index)
            order = ", ".join(f"i32 {lane}, i32 {lanes}" for lane in range(lanes))
            value = w.let(
                f"shufflevector {vector} {value}, {vector} zeroinitializer, "
                f"<{2 * lanes} x i32> <{order}>"
            )
        total = w.let(f"{kind.add} {spread} {w.load(spread, at, size)}, {value}")
        w.store(spread, total, at, size)

    with w.loop("0", whole, step=lanes) as loop:
        add(loop.index)
    with w.when(w.compare("slt", whole, words["out_w"])):
        add(whole, mask_of(w, lanes, w.sub(words["out_w"], whole)))


def _crop(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], image: str, out: str, channels: str,
    first_channel: str,
) -> None:  # fmt: skip
    """The image without its padding to memory, the bias added."""
    element = kind.element
    stored, lanes, size = element.stored, kind.run, element.n_bytes
    vector = f"<{lanes} x {stored}>"
    whole = w.let(f"and i64 {words['width']}, {-lanes}")
    start = [("ptr", w.moved(image, words["image_first"])), ("ptr", out)]
    with w.loop("0", channels, start) as channel:
        one = each = ""
        if kind.has_bias:
            number = w.add(first_channel, channel.index)
            one = w.load(stored, w.at(stored, words["bias_at"], number))
            first = w.let(f"insertelement {vector} poison, {stored} {one}, i64 0")
            each = w.let(
                f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
            )
        with w.loop("0", words["depth"], [("ptr", x) for x in channel.carried]) as depth:
            with w.loop("0", words["height"], [("ptr", x) for x in depth.carried]) as line:
                at, to = line.carried
                with w.loop("0", whole, step=lanes) as loop:
                    value = w.load(vector, w.at(stored, at, loop.index), size)
                    value = w.let(f"{kind.add} {vector} {value}, {each}") if each else value
                    w.store(vector, value, w.at(stored, to, loop.index), size)
                with w.loop(whole, words["width"]) as loop:
                    value = w.load(stored, w.at(stored, at, loop.index))
                    value = w.let(f"{kind.add} {stored} {value}, {one}") if one else value
                    w.store(stored, value, w.at(stored, to, loop.index))
                line.next = [w.moved(at, words["image_h"]), w.moved(to, words["out_line"])]
            depth.next = [
                w.moved(depth.carried[0], words["image_d"]),
                w.moved(depth.carried[1], words["out_d"]),
            ]
        channel.next = [
            w.moved(channel.carried[0], words["channel"]),
            w.moved(channel.carried[1], words["out_c"]),
        ]
