"""Plans of convolutions: blocks that fit the caches, units, words of the kernels.

Keeps     what shows in the bits (blocks of rows of transposed and weight_gradient, parts) follows
          from sizes; what follows from threads does not show. Images have three spatial dims.
Touches   config, features, steps.
Not here  the text (forward_text.py, transposed_text.py, weight_text.py), operators
          (ops/convolution)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.convolution import direct
from flambeau.devices.cpu.convolution.dots_text import WORDS as DOTS_WORDS
from flambeau.devices.cpu.convolution.dots_text import dots_kernel
from flambeau.devices.cpu.convolution.forward_text import WORDS as FORWARD_WORDS
from flambeau.devices.cpu.convolution.forward_text import forward_kernel
from flambeau.devices.cpu.convolution.geometry import (
    BLOCK_PLACES,
    CHUNK_WORK,
    FIRST_CACHE_BYTES,
    LEAST_RUN,
    Geometry,
    Three,
    Words,
    best_tile,
    bytes_of,
    class_of,
    copied,
    divisor,
    padded,
    step_of,
    tile_bytes,
    weight_class,
)
from flambeau.devices.cpu.convolution.transposed_text import WORDS as TRANSPOSED_WORDS
from flambeau.devices.cpu.convolution.transposed_text import transposed_kernel
from flambeau.devices.cpu.convolution.weight_text import WORDS as WEIGHT_WORDS
from flambeau.devices.cpu.convolution.weight_text import weight_kernel
from flambeau.devices.cpu.steps import SLACK_BYTES, At, NativePlan, NativeStep, aligned
from flambeau.ops.convolution.sizes import n_parts

# Bytes of columns, of an image being added up and of sums that a unit keeps in its cache.
_COLUMN_BYTES: Final = 192 << 10
_IMAGE_BYTES: Final = 256 << 10
# Cycles of copying a vector of columns that stay in the first cache, or do not, and of a unit.
_NEAR_CYCLES: Final = 3
_FAR_CYCLES: Final = 7
_UNIT_CYCLES: Final = 300
# Columns of one output that are added up at a time: as many as registers hold 64 bytes of.
_DOTS_ROWS: Final = {256: 4, 512: 9}


def _forward_rows(g: Geometry, k: int, wanted: int) -> tuple[int, float]:
    """Output rows of a block: `wanted` blocks at least, the rows that take fewest cycles; cycles
    of all blocks."""
    bits = features.vector_bits()
    lanes = bits // (8 * g.size)
    fitting = max(1, min(g.out_rows, _COLUMN_BYTES // (k * g.out_w * g.size)))
    least = min(g.out_rows, max(wanted, -(-g.out_rows // fitting)))
    best, fewest = 1, inf
    for n_blocks in range(least, min(g.out_rows, 4 * least + 4) + 1):
        rows = -(-g.out_rows // n_blocks)
        places = rows * g.out_w
        is_near = k * g.row_bytes(places) <= FIRST_CACHE_BYTES
        copies = k * rows * -(-g.out_w // lanes) * (_NEAR_CYCLES if is_near else _FAR_CYCLES)
        *_, cycles = best_tile(bits, g.outputs, -(-places // lanes), k)
        cycles = -(-g.out_rows // rows) * (cycles + copies + _UNIT_CYCLES)
        if cycles < fewest:
            best, fewest = rows, cycles
    return best, fewest


def forward(
    reads: Sequence[Any], writes: Sequence[Any], stride: Three, padding: Three, dilation: Three,
    groups: int,
) -> NativePlan:  # fmt: skip
    """image (N, C, D, H, W), weight (O, C / groups, d, h, w) contiguous [, bias (O,)] to
    (N, O, D', H', W') contiguous."""
    image, weight, *bias = reads
    (out,) = writes
    size = image.dtype.itemsize
    g = Geometry(image.shape, out.shape, weight.shape[2:], stride, dilation, groups, size)
    k = g.channels * g.volume
    work = g.out_rows * g.out_w * k * g.outputs
    wanted = min(4 * features.n_threads(), work * g.images * groups // CHUNK_WORK)
    wanted = -(-wanted // (g.images * groups))
    rows, cycles = _forward_rows(g, k, wanted)
    found = direct.plan(g, reads, out, padding, wanted, cycles)
    if found is not None:
        return found
    steps, image_at, strides, workspace = padded(image, padding, 0, 0)
    n_blocks = -(-g.out_rows // rows)
    kind = class_of(g, image.dtype, g.outputs, rows * g.out_w, k, bool(bias))
    columns_row = g.row_bytes(rows * g.out_w)
    columns = aligned(tile_bytes(kind))
    plane = g.out_rows * g.out_w * size
    words: Words = {
        "image_at": image_at, "weight_at": At("read", 1),
        "bias_at": At("read", 2) if bias else At("read", 1), "out_at": At("write", 0),
        "n_blocks": n_blocks, "groups": groups, "block_rows": rows, "out_rows": g.out_rows,
        "channels": g.channels, "k": k, "outputs": g.outputs, "image_n": strides[0],
        "image_g": g.channels * strides[1], "weight_g": g.outputs * k * size,
        "weight_row": k * size, "out_n": out.shape[1] * plane, "out_g": g.outputs * plane,
        "out_row": plane, "columns_row": columns_row, "columns": columns, **g.words(strides[1:]),
    }  # fmt: skip
    n_units = g.images * groups * n_blocks
    scratch = columns + k * columns_row + SLACK_BYTES
    step = step_of(forward_kernel(kind), FORWARD_WORDS, words, n_units, work // n_blocks, scratch)
    return NativePlan((*steps, step), workspace)


def _block_rows(g: Geometry) -> int:
    """Rows of a block, from sizes alone."""
    return max(1, min(g.out_rows, BLOCK_PLACES // g.out_w))


def transposed(
    reads: Sequence[Any], writes: Sequence[Any], kernel: Three, stride: Three, padding: Three,
    dilation: Three, groups: int,
) -> NativePlan:  # fmt: skip
    """places (N, O, D', H', W'), weight (C * d * h * w, O / groups) contiguous [, bias (C,)] to
    images (N, C, D, H, W) contiguous."""
    places, _, *bias = reads
    (out,) = writes
    size = places.dtype.itemsize
    g = Geometry(out.shape, places.shape, kernel, stride, dilation, groups, size)
    is_dense = places.strides[2:] == (g.out[1] * g.out[2], g.out[2], 1)
    steps: list[NativeStep] = []
    places_at, strides, workspace = At("read", 0), bytes_of(places.strides, size), 0
    if not is_dense:
        steps, places_at, strides, workspace = copied(places, (0, 0, 0), 0, 0)
    around = [each + 2 * by for each, by in zip(out.shape[2:], padding, strict=True)]
    # What the windows reach, where it is more than the padded image.
    reach = [
        (count - 1) * step + far * (width - 1) + 1
        for count, step, far, width in zip(g.out, stride, dilation, kernel, strict=True)
    ]
    around = [max(pair) for pair in zip(around, reach, strict=True)]
    line, sheet = around[2] * size, around[1] * around[2] * size
    plane = around[0] * sheet
    rows = _block_rows(g)
    columns_row = packed_row = g.row_bytes(rows * g.out_w)
    limit = min(_COLUMN_BYTES // (g.volume * columns_row), _IMAGE_BYTES // plane)
    work = g.channels * g.volume * g.outputs * g.out_rows * g.out_w
    wanted = min(4 * features.n_threads(), work * g.images * groups // CHUNK_WORK)
    most = -(-wanted // (g.images * groups))
    block = divisor(g.channels, min(limit, max(1, g.channels // max(1, most))))
    n_blocks = g.channels // block
    kind = class_of(g, places.dtype, block * g.volume, rows * g.out_w, g.outputs, bool(bias))
    # A vector longer than a row would write into the next, which waits for it.
    run = min(kind.element.lanes, max(LEAST_RUN, 1 << g.out_w.bit_length() - 1))
    kind = replace(kind, run=run)
    packed = aligned(tile_bytes(kind))
    columns = packed + aligned(g.outputs * packed_row)
    image = columns + aligned(block * g.volume * columns_row)
    out_line, out_sheet = out.shape[4] * size, out.shape[3] * out.shape[4] * size
    out_plane = out.shape[2] * out_sheet
    words: Words = {
        "places_at": places_at, "weight_at": At("read", 1),
        "bias_at": At("read", 2) if bias else At("read", 1), "out_at": At("write", 0),
        "n_blocks": n_blocks, "groups": groups, "block_channels": block, "channels": g.channels,
        "kernel": g.volume, "inputs": g.outputs, "out_rows": g.out_rows, "block_rows": rows,
        "places_n": strides[0], "places_g": g.outputs * strides[1], "places_row": strides[1],
        "weight_g": g.channels * g.volume * g.outputs * size, "weight_row": g.outputs * size,
        "out_n": out.shape[1] * out_plane, "out_g": g.channels * out_plane, "out_c": out_plane,
        "out_d": out_sheet, "out_line": out_line, "depth": out.shape[2], "height": out.shape[3],
        "width": out.shape[4], "image_bytes": block * plane,
        "image_first": padding[0] * sheet + padding[1] * line + padding[2] * size,
        "image_d": sheet, "image_h": line, "packed_row": packed_row, "columns_row": columns_row,
        "packed": packed, "columns": columns, "image": image,
        **g.words((plane, sheet, line, size)),
    }  # fmt: skip
    scratch = image + aligned(block * plane) + SLACK_BYTES
    n_units = g.images * groups * n_blocks
    step = step_of(
        transposed_kernel(kind), TRANSPOSED_WORDS, words, n_units, work // n_blocks, scratch
    )
    return NativePlan((*steps, step), workspace)


def weight_gradient(
    reads: Sequence[Any], writes: Sequence[Any], kernel: Three, stride: Three, padding: Three,
    dilation: Three, groups: int,
) -> NativePlan:  # fmt: skip
    """image (N, C, D, H, W), cotangent (N, O, D', H', W') to sums of parts of the batch: (parts,
    C * d * h * w, O / groups) contiguous."""
    image, grad = reads
    size = image.dtype.itemsize
    g = Geometry(image.shape, grad.shape, kernel, stride, dilation, groups, size)
    steps, image_at, strides, workspace = padded(image, padding, 0, 0)
    grad_at, grad_strides = At("read", 1), bytes_of(grad.strides, size)
    if grad.strides[2:] != (g.out[1] * g.out[2], g.out[2], 1):
        more, grad_at, grad_strides, workspace = copied(grad, (0, 0, 0), 1, workspace)
        steps = [*steps, *more]
    parts, part_images = n_parts(g.images, g.groups * g.outputs * g.channels * g.volume)
    if g.outputs == 1 and g.out[0] == 1:
        step = _dots(g, image, (image_at, strides), (grad_at, grad_strides), (parts, part_images))
        return NativePlan((*steps, step), workspace)
    rows = _block_rows(g)
    limit = _COLUMN_BYTES // (g.volume * g.outputs * size)
    work = part_images * g.channels * g.volume * g.outputs * g.out_rows * g.out_w
    wanted = min(4 * features.n_threads(), work * parts * groups // CHUNK_WORK)
    most = -(-wanted // (parts * groups))
    block = divisor(g.channels, min(limit, max(1, g.channels // max(1, most))))
    n_blocks = g.channels // block
    m = block * g.volume
    kind = weight_class(g, image.dtype, m)
    sums_step = tile_bytes(kind)
    n_tiles = -(-m // kind.rows) * -(-g.outputs // kind.width)
    lanes = kind.element.lanes
    panel = -(-rows * g.out_w // lanes) * lanes * kind.width * size
    columns = aligned(n_tiles * sums_step)
    places = columns + aligned(8 * m)
    turned = places + aligned(8 * rows * g.out_w)
    words: Words = {
        "image_at": image_at, "grad_at": grad_at, "out_at": At("write", 0), "images": g.images,
        "part_images": part_images, "n_blocks": n_blocks, "groups": groups,
        "channels": g.channels, "block_channels": block, "kernel": g.volume,
        "outputs": g.outputs, "out_rows": g.out_rows, "block_rows": rows, "image_n": strides[0],
        "image_g": g.channels * strides[1], "grad_n": grad_strides[0],
        "grad_g": g.outputs * grad_strides[1], "grad_row": grad_strides[1],
        "out_part": image.shape[1] * g.volume * g.outputs * size,
        "out_g": g.channels * g.volume * g.outputs * size, "out_row": g.outputs * size,
        "panel": panel, "columns": columns, "places": places, "turned": turned,
        "sums_step": sums_step, **g.words(strides[1:]),
    }  # fmt: skip
    scratch = turned + -(-g.outputs // kind.width) * panel
    n_units = parts * groups * n_blocks
    step = step_of(weight_kernel(kind), WEIGHT_WORDS, words, n_units, work // n_blocks, scratch)
    return NativePlan((*steps, step), workspace)


def _dots(
    g: Geometry, image: Any, image_place: tuple[At, list[int]], grad_place: tuple[At, list[int]],
    parts: tuple[int, int],
) -> NativeStep:  # fmt: skip
    """The step of a weight_gradient with one output a group, of images without depth."""
    (image_at, strides), (grad_at, grad_strides) = image_place, grad_place
    n_columns = g.channels * g.volume
    rows = min(n_columns, _DOTS_ROWS[features.vector_bits()])
    kind = class_of(g, image.dtype, 1, 1, 1)
    kind = replace(kind, rows=rows, edge=n_columns % rows, vectors=1, is_flat=True)
    totals = aligned(8 * n_columns)
    copies = totals + 64 * n_columns
    copies_row = g.row_bytes(g.out_w) if kind.step != 1 else 0
    words: Words = {
        "image_at": image_at, "grad_at": grad_at, "out_at": At("write", 0), "images": g.images,
        "part_images": parts[1], "groups": g.groups, "channels": g.channels, "columns": n_columns,
        "out_rows": g.out_rows, "image_n": strides[0], "image_g": g.channels * strides[1],
        "grad_n": grad_strides[0], "grad_g": grad_strides[1],
        "out_part": g.groups * n_columns * g.size, "out_g": n_columns * g.size, "table": 0,
        "totals": totals, "copies": copies, "copies_row": copies_row, **g.words(strides[1:]),
    }  # fmt: skip
    work = parts[1] * n_columns * g.out_rows * g.out_w
    scratch = copies + rows * copies_row + SLACK_BYTES
    return step_of(dots_kernel(kind), DOTS_WORDS, words, parts[0] * g.groups, work, scratch)
