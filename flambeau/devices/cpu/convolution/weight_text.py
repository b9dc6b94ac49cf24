"""Gradient of a convolution's weights as LLVM text: windows, where they lie, times cotangents.

Keeps     a part sums over its images in order, over blocks of rows in order; which images a part
          has and the blocks follow from sizes alone.
Touches   windows_text, gemm.pack_text, writer.
Not here  adding up the parts (ops.convolution), sizes of blocks (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.convolution.windows_text import (
    GEOMETRY,
    ConvolutionClass,
    first_row,
    tabulate_columns,
    tabulate_places,
    unit_of,
)
from flambeau.devices.cpu.gemm.pack_text import pack_b_function
from flambeau.devices.cpu.tiles import context_of, set_context, tile_functions, tiles
from flambeau.devices.cpu.writer import Writer, kernel_of

# A unit is a part (a range of images), a group and a block of its channels. The result has rows
# of channels and places of the kernel, columns of outputs.
WORDS: Final = (
    "image_at", "grad_at", "out_at", "images", "part_images", "n_blocks", "groups", "channels",
    "block_channels", "kernel", "outputs", "out_rows", "block_rows", "image_n", "image_g",
    "grad_n", "grad_g", "grad_row", "out_part", "out_g", "out_row", "panel", "columns", "places",
    "turned", "sums_step", *GEOMETRY,
)  # fmt: skip


@lru_cache(maxsize=256)
def weight_kernel(kind: ConvolutionClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    element = kind.element
    size = element.n_bytes
    w = Writer()
    words = w.words(WORDS)
    columns, places, turned = (
        w.moved("%scratch", words[name]) for name in ("columns", "places", "turned")
    )
    context = context_of(
        w, a_row=0, a_column=0, b_row=kind.width * size, c_row=words["out_row"], c_column=size,
        a_table_at=places, b_vector=0,
    )  # fmt: skip
    tabulate_columns(w, words, words["block_channels"], columns)
    if kind.is_flat:
        rows = w.smaller(words["block_rows"], words["out_rows"])
        tabulate_places(w, kind, words, ("0", "0"), rows, places)
    with w.loop("%begin", "%end") as unit:
        part, group, channel, channels = unit_of(w, words, unit.index, "block_channels", "channels")
        first_image = w.mul(part, words["part_images"])
        images = w.smaller(w.sub(words["images"], first_image), words["part_images"])
        image = w.moved(words["image_at"], w.mul(first_image, words["image_n"]))
        image = w.moved(image, w.mul(group, words["image_g"]))
        image = w.moved(image, w.mul(channel, words["channel"]))
        grad = w.moved(words["grad_at"], w.mul(first_image, words["grad_n"]))
        grad = w.moved(grad, w.mul(group, words["grad_g"]))
        out = w.moved(words["out_at"], w.mul(part, words["out_part"]))
        out = w.moved(out, w.mul(group, words["out_g"]))
        out = w.moved(out, w.mul(w.mul(channel, words["kernel"]), words["out_row"]))
        with w.loop("0", images, [("ptr", image), ("ptr", grad)]) as each:
            _add_image(
                w, kind, words, context, (columns, places, turned), (each.index, images),
                (each.carried[0], each.carried[1], out), channels,
            )  # fmt: skip
            each.next = [
                w.moved(each.carried[0], words["image_n"]),
                w.moved(each.carried[1], words["grad_n"]),
            ]
    w.put("ret void")
    functions = tile_functions([kind.tile]) + pack_b_function(element, "columns", kind.vectors)
    return kernel_of(f"convolution_weight_{kind.dtype.short_name}", w, functions)


def _add_image(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], context: str,
    scratch: tuple[str, str, str], number: tuple[str, str], pointers: tuple[str, str, str],
    channels: str,
) -> None:  # fmt: skip
    """Add what an image gives, block by block of rows; number: of the image and of all of the
    part, pointers: to the image, its cotangents and the result."""
    size = kind.element.n_bytes
    (columns, places, turned), (image, grad, out) = scratch, pointers
    column_bytes = w.let(f"udiv i64 {words['panel']}, {kind.width}")
    with w.loop("0", words["out_rows"], step=words["block_rows"]) as block:
        row = block.index
        rows = w.smaller(w.sub(words["out_rows"], row), words["block_rows"])
        count = w.mul(rows, words["out_w"])
        source = image
        line, far = first_row(w, words, row)
        if kind.is_flat:
            source = w.moved(source, far)
        else:
            tabulate_places(w, kind, words, (line, far), rows, places)
        start = w.moved(grad, w.mul(w.mul(row, words["out_w"]), size))
        # Cotangents of the block, a row for each place.
        w.put(
            f"call fastcc void @pack_b(ptr {start}, ptr {turned}, i64 {count}, "
            f"i64 {words['outputs']}, i64 {size}, i64 {words['grad_row']}, i64 {words['panel']})"
        )
        begins = w.let(f"or i64 {number[0]}, {row}")
        is_first = w.let(f"zext i1 {w.compare('eq', begins, 0)} to i64")
        no_image = w.compare("sge", w.add(number[0], 1), number[1])
        no_row = w.compare("sge", w.add(row, words["block_rows"]), words["out_rows"])
        is_last = w.let(f"zext i1 {w.let(f'and i1 {no_image}, {no_row}')} to i64")
        set_context(
            w, context, k_length=count, is_first=is_first, is_last=is_last, a_base_at=source
        )
        tiles(
            w, kind.tile, context, columns, turned, out, w.mul(channels, words["kernel"]),
            words["outputs"], 8, words["out_row"], "%scratch", words["sums_step"], column_bytes,
        )  # fmt: skip
