"""Plans of convolutions whose windows lie side by side: their columns are read where images lie.

Keeps     choices weigh speed alone: the bits are those of the kernel that copies columns.
Touches   features, geometry, direct_text, steps.
Not here  other ways (plan.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from flambeau.devices.cpu import features
from flambeau.devices.cpu.convolution.direct_text import WORDS, direct_kernel
from flambeau.devices.cpu.convolution.geometry import (
    Geometry,
    Three,
    Words,
    best_tile,
    bytes_of,
    class_of,
    copied,
    step_of,
    tile_bytes,
)
from flambeau.devices.cpu.steps import SLACK_BYTES, At, NativePlan, NativeStep, aligned

# Bytes of a unit's results before rows are cut out of them: wanted, and at most.
_WIDE_BYTES: Final = 128 << 10
_MOST_WIDE_BYTES: Final = 512 << 10
# What cycles are estimated from: of cutting out a row and a vector of it, of a unit, of an entry of
# the table.
_ROW_CYCLES: Final = 6
_CUT_CYCLES: Final = 3
_UNIT_CYCLES: Final = 200


class _Way(NamedTuple):
    """Rows of a block and how vectors lie in them.

    rows, n_vectors  output rows of a block, vectors over them
    tile             rows and vectors of a register tile
    is_wide          vectors run on from row to row
    by_rows          vectors of a tile are rows
    cycles           of an image and group
    """

    rows: int
    n_vectors: int
    tile: tuple[int, int]
    is_wide: bool
    by_rows: bool
    cycles: float


def plan(
    g: Geometry, reads: Sequence[Any], out: Any, padding: Three, wanted: int, cycles: float
) -> NativePlan | None:
    """A plan with at least `wanted` blocks an image, where it takes fewer than so many cycles an
    image and group."""
    image = reads[0]
    is_flat = image.shape[2] == g.kernel[0] == g.out[0] == 1
    if not is_flat or g.stride[2] != 1:
        return None
    image_w = image.shape[4] + 2 * padding[2]
    ways = [way for way in (_fitting(g, wanted), _wide(g, image_w, wanted)) if way is not None]
    best = min(ways, key=lambda way: way.cycles, default=None)
    return None if best is None or best.cycles > cycles else _planned(g, reads, out, padding, best)


def _lanes(g: Geometry) -> int:
    return features.vector_bits() // (8 * g.size)


def _fitting(g: Geometry, wanted: int) -> _Way | None:
    """Vectors that fill rows: a row is one of them, or a tile has as many as a row."""
    lanes, k = _lanes(g), g.channels * g.volume
    each, rest = divmod(g.out_w, lanes)
    if rest or each > 6:
        return None
    rows = -(-g.out_rows // max(1, min(wanted, g.out_rows)))
    only = 0 if each == 1 else each
    *tile, cycles = best_tile(
        features.vector_bits(), g.outputs, rows * each, k, only, is_packed=False
    )
    n_blocks = -(-g.out_rows // rows)
    total = n_blocks * (cycles + _UNIT_CYCLES)
    return _Way(rows, rows * each, (tile[0], tile[1]), False, each == 1, total)


def _wide(g: Geometry, image_w: int, wanted: int) -> _Way | None:
    """Vectors that run on over the padding between rows."""
    lanes, k = _lanes(g), g.channels * g.volume
    row_bytes = g.outputs * image_w * g.size
    if g.stride[1] != 1 or row_bytes > _MOST_WIDE_BYTES:
        return None
    fitting = max(1, _WIDE_BYTES // row_bytes)
    n_blocks = max(min(wanted, g.out_rows), -(-g.out_rows // fitting))
    rows = -(-g.out_rows // n_blocks)
    n_blocks = -(-g.out_rows // rows)
    n_vectors = -(-((rows - 1) * image_w + g.out_w) // lanes)
    *tile, cycles = best_tile(features.vector_bits(), g.outputs, n_vectors, k, is_packed=False)
    cut = g.outputs * rows * (_ROW_CYCLES + _CUT_CYCLES * -(-g.out_w // lanes))
    total = n_blocks * (cycles + cut + _UNIT_CYCLES)
    return _Way(rows, n_vectors, (tile[0], tile[1]), True, False, total)


def _placed(
    image: Any, padding: Three, way: _Way, g: Geometry
) -> tuple[list[NativeStep], At, list[int], int]:
    """The image where its rows may be read past their ends: as geometry.padded."""
    strides = bytes_of(image.strides, g.size)
    vectors = way.tile[1]
    is_dense = strides[3:] == [image.shape[4] * g.size, g.size]
    # A tile that is not full reads on, and so does a vector that runs on.
    are_full = way.n_vectors % vectors == g.out_rows % way.rows == 0 and not way.is_wide
    if is_dense and not any(padding) and are_full:
        return [], At("read", 0), strides, 0
    line = (image.shape[4] + 2 * padding[2]) * g.size
    past = vectors * (line * g.stride[1] if way.by_rows else _lanes(g) * g.size)
    return copied(image, padding, 0, 0, SLACK_BYTES + past)


def _planned(g: Geometry, reads: Sequence[Any], out: Any, padding: Three, way: _Way) -> NativePlan:
    image, _, *bias = reads
    size, k = g.size, g.channels * g.volume
    steps, image_at, strides, workspace = _placed(image, padding, way, g)
    rows, vectors = way.tile
    kind = class_of(g, image.dtype, g.outputs, way.n_vectors * _lanes(g), k, bool(bias))
    kind = replace(
        kind, step=1, rows=rows, edge=g.outputs % rows, vectors=vectors, lanes=0, is_short=False,
        is_flat=True, scattered="b", is_wide=way.is_wide,
    )  # fmt: skip
    n_blocks = -(-g.out_rows // way.rows)
    plane = g.out_rows * g.out_w * size
    row = strides[3] * g.stride[1]
    wide_bytes = -(-way.n_vectors // vectors) * kind.width * size if way.is_wide else 0
    panel = kind.width * size
    if not way.is_wide:
        panel = vectors * row if way.by_rows else row
    table = aligned(tile_bytes(kind))
    wide = table + aligned(8 * k)
    words: Words = {
        "image_at": image_at, "weight_at": At("read", 1),
        "bias_at": At("read", 2) if bias else At("read", 1), "out_at": At("write", 0),
        "n_blocks": n_blocks, "groups": g.groups, "block_rows": way.rows, "out_rows": g.out_rows,
        "channels": g.channels, "outputs": g.outputs, "k": k, "image_n": strides[0],
        "image_g": g.channels * strides[1], "image_row": row, "weight_g": g.outputs * k * size,
        "weight_row": k * size, "out_n": out.shape[1] * plane, "out_g": g.outputs * plane,
        "out_row": plane, "out_w": g.out_w, "table": table, "panel_bytes": panel,
        "vector_bytes": row if way.by_rows else _lanes(g) * size, "wide": wide,
        "wide_bytes": wide_bytes, "wide_row": strides[3] // size, "channel": strides[1],
        "kernel_d": 1, "kernel_h": g.kernel[1], "kernel_w": g.kernel[2], "far_d": 0,
        "far_h": g.dilation[1] * strides[3], "far_w": g.dilation[2] * strides[4],
    }  # fmt: skip
    work = way.rows * g.out_w * k * g.outputs
    n_units = g.images * g.groups * n_blocks
    scratch = wide + g.outputs * wide_bytes + SLACK_BYTES
    step = step_of(direct_kernel(kind), WORDS, words, n_units, work, scratch)
    return NativePlan((*steps, step), workspace)
