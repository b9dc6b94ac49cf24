"""Plans of convolutions: blocks that fit the caches, units, words of the kernels.

Keeps     what shows in the bits (blocks of rows of transposed and weight_gradient, parts) follows
          from sizes; what follows from threads does not show. Images have three spatial dims.
Touches   config, features, steps, gemm.grid's tiles.
Not here  the text (forward_text.py, transposed_text.py, weight_text.py), operators
          (ops/convolution)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.convolution.forward_text import WORDS as FORWARD_WORDS
from flambeau.devices.cpu.convolution.forward_text import forward_kernel
from flambeau.devices.cpu.convolution.pad_text import WORDS as PAD_WORDS
from flambeau.devices.cpu.convolution.pad_text import pad_kernel
from flambeau.devices.cpu.convolution.transposed_text import WORDS as TRANSPOSED_WORDS
from flambeau.devices.cpu.convolution.transposed_text import transposed_kernel
from flambeau.devices.cpu.convolution.weight_text import WORDS as WEIGHT_WORDS
from flambeau.devices.cpu.convolution.weight_text import weight_kernel
from flambeau.devices.cpu.convolution.windows_text import ConvolutionClass
from flambeau.devices.cpu.gemm.grid import TILES
from flambeau.devices.cpu.steps import (
    SLACK_BYTES,
    At,
    NativePlan,
    NativeStep,
    aligned,
    row_bytes,
)
from flambeau.ops.convolution.sizes import n_parts

Three = tuple[int, int, int]
Words = dict[str, int | At]

# Bytes of columns, of an image being added up and of sums that a unit keeps in its cache.
_COLUMN_BYTES: Final = 192 << 10
_IMAGE_BYTES: Final = 256 << 10
# Places of a block of rows where the block shows in the bits.
_BLOCK_PLACES: Final = 128
# Multiply-adds of a chunk of units.
_CHUNK_WORK: Final = 500_000
# Lanes that even the shortest rows are added up with.
_LEAST_RUN: Final = 4


class _Geometry:
    """Sizes of a convolution whose images and places are read as they lie.

    image, places   shapes (N, G * channels, D, H, W) and (N, G * outputs, D', H', W')
    """

    def __init__(
        self, image: tuple[int, ...], places: tuple[int, ...], kernel: Three, stride: Three,
        dilation: Three, groups: int, size: int,
    ) -> None:  # fmt: skip
        self.images, self.groups, self.size = image[0], groups, size
        self.channels, self.outputs = image[1] // groups, places[1] // groups
        self.kernel, self.stride, self.dilation = kernel, stride, dilation
        self.volume = prod(kernel)
        self.out = places[2:]
        self.out_rows = self.out[0] * self.out[1]
        self.out_w = self.out[2]

    def words(self, strides: Sequence[int]) -> Words:
        """GEOMETRY for an image of these strides in bytes: channel, depth, line, element."""
        channel, *spatial = strides
        steps = [by * each for by, each in zip(self.stride, spatial, strict=True)]
        far = [by * each for by, each in zip(self.dilation, spatial, strict=True)]
        names = ("step_d", "step_h", "step_w", "far_d", "far_h", "far_w")
        return {
            "out_h": self.out[1], "out_w": self.out_w, "channel": channel,
            "kernel_d": self.kernel[0], "kernel_h": self.kernel[1], "kernel_w": self.kernel[2],
            **dict(zip(names, [*steps, *far], strict=True)),
        }  # fmt: skip

    def row_bytes(self, places: int) -> int:
        """Bytes from row to row of scratch that holds so many places."""
        return row_bytes(places * self.size)


def _class(
    geometry: _Geometry, element: Any, m: int, n: int, has_bias: bool = False
) -> ConvolutionClass:
    """The kernel for tiles of an m by n product."""
    bits = features.vector_bits()
    lanes = bits // (8 * geometry.size)
    n_vectors = -(-n // lanes)
    by_vectors, by_rows = TILES[bits]
    rows, vectors = by_vectors.get(n_vectors, by_vectors[0])
    rows = -(-m // -(-m // rows)) if m < 4 * rows else rows
    if rows in by_rows:
        vectors = min(by_rows[rows], n_vectors)
    step = geometry.stride[2] if geometry.stride[2] in (1, 2) else 0
    return ConvolutionClass(element, bits, step, rows, m % rows, vectors, has_bias)


def _tile_bytes(kind: ConvolutionClass) -> int:
    return kind.rows * kind.width * kind.element.n_packed_bytes


def _divisor(count: int, limit: int) -> int:
    """The largest divisor of `count` that is at most `limit`, 1 at least."""
    return next(each for each in range(max(1, min(count, limit)), 0, -1) if count % each == 0)


def _chunk(n_units: int, work: int) -> int:
    """Units of a chunk, `work` being a unit's multiply-adds."""
    return max(1, min(_CHUNK_WORK // max(1, work), -(-n_units // (4 * features.n_threads()))))


def _bytes(strides: Sequence[int], size: int) -> list[int]:
    return [each * size for each in strides]


def _padded(
    image: Any, padding: Three, place: int, start: int
) -> tuple[list[NativeStep], At, list[int], int]:
    """`read` number `place` with zeros around it, in workspace from `start` on where it is not
    usable as it lies: steps, address, byte strides, end of the workspace."""
    strides = _bytes(image.strides, image.dtype.itemsize)
    if not any(padding) and (image.strides[4] == 1 or image.shape[4] == 1):
        return [], At("read", place), strides, start
    return _copied(image, padding, place, start)


def _copied(
    image: Any, padding: Three, place: int, start: int
) -> tuple[list[NativeStep], At, list[int], int]:
    """The image packed with zeros around it, whatever its strides; as _padded."""
    size = image.dtype.itemsize
    n, channels, *sizes = image.shape
    around = [each + 2 * by for each, by in zip(sizes, padding, strict=True)]
    line, sheet = around[2] * size, around[1] * around[2] * size
    plane = around[0] * sheet
    names = ("source_n", "source_c", "source_d", "source_h", "source_w")
    words: Words = {
        "source_at": At("read", place), "target_at": At("workspace", 0, start),
        "channels": channels, "depth": sizes[0], "height": sizes[1], "width": sizes[2],
        **dict(zip(names, _bytes(image.strides, size), strict=True)),
        "plane": plane, "target_d": sheet, "target_h": line,
        "first": padding[0] * sheet + padding[1] * line + padding[2] * size,
    }  # fmt: skip
    name, text = pad_kernel(size)
    arguments = tuple([words[each] for each in PAD_WORDS])
    step = NativeStep(name, text, n * channels, max(1, 32_768 // max(1, plane)), arguments)
    end = start + aligned(n * channels * plane + SLACK_BYTES)
    return [step], At("workspace", 0, start), [channels * plane, plane, sheet, line, size], end


def _step(
    kernel: tuple[str, str], names: tuple[str, ...], words: Words, n_units: int, work: int,
    scratch: int,
) -> NativeStep:  # fmt: skip
    name, text = kernel
    arguments = tuple([words[each] for each in names])
    return NativeStep(name, text, n_units, _chunk(n_units, work), arguments, scratch)


def forward(
    reads: Sequence[Any], writes: Sequence[Any], stride: Three, padding: Three, dilation: Three,
    groups: int,
) -> NativePlan:  # fmt: skip
    """image (N, C, D, H, W), weight (O, C / groups, d, h, w) contiguous [, bias (O,)] to
    (N, O, D', H', W') contiguous."""
    image, weight, *bias = reads
    (out,) = writes
    size = image.dtype.itemsize
    g = _Geometry(image.shape, out.shape, weight.shape[2:], stride, dilation, groups, size)
    steps, image_at, strides, workspace = _padded(image, padding, 0, 0)
    k = g.channels * g.volume
    fitting = _COLUMN_BYTES // (k * g.out_w * size)
    n_blocks = -(-g.out_rows // max(1, min(g.out_rows, fitting)))
    work = g.out_rows * g.out_w * k * g.outputs
    wanted = min(4 * features.n_threads(), work * g.images * groups // _CHUNK_WORK)
    n_blocks = min(g.out_rows, max(n_blocks, -(-wanted // (g.images * groups))))
    rows = -(-g.out_rows // n_blocks)
    n_blocks = -(-g.out_rows // rows)
    kind = _class(g, image.dtype, g.outputs, rows * g.out_w, bool(bias))
    columns_row = g.row_bytes(rows * g.out_w)
    columns = aligned(_tile_bytes(kind))
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
    step = _step(forward_kernel(kind), FORWARD_WORDS, words, n_units, work // n_blocks, scratch)
    return NativePlan((*steps, step), workspace)


def _block_rows(g: _Geometry) -> int:
    """Rows of a block, from sizes alone."""
    return max(1, min(g.out_rows, _BLOCK_PLACES // g.out_w))


def transposed(
    reads: Sequence[Any], writes: Sequence[Any], kernel: Three, stride: Three, padding: Three,
    dilation: Three, groups: int,
) -> NativePlan:  # fmt: skip
    """places (N, O, D', H', W'), weight (C * d * h * w, O / groups) contiguous [, bias (C,)] to
    images (N, C, D, H, W) contiguous."""
    places, _, *bias = reads
    (out,) = writes
    size = places.dtype.itemsize
    g = _Geometry(out.shape, places.shape, kernel, stride, dilation, groups, size)
    is_dense = places.strides[2:] == (g.out[1] * g.out[2], g.out[2], 1)
    steps: list[NativeStep] = []
    places_at, strides, workspace = At("read", 0), _bytes(places.strides, size), 0
    if not is_dense:
        steps, places_at, strides, workspace = _copied(places, (0, 0, 0), 0, 0)
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
    wanted = min(4 * features.n_threads(), work * g.images * groups // _CHUNK_WORK)
    most = -(-wanted // (g.images * groups))
    block = _divisor(g.channels, min(limit, max(1, g.channels // max(1, most))))
    n_blocks = g.channels // block
    kind = _class(g, places.dtype, block * g.volume, rows * g.out_w, bool(bias))
    # A vector longer than a row would write into the next, which waits for it.
    run = min(kind.element.lanes, max(_LEAST_RUN, 1 << g.out_w.bit_length() - 1))
    kind = replace(kind, run=run)
    packed = aligned(_tile_bytes(kind))
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
    step = _step(
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
    g = _Geometry(image.shape, grad.shape, kernel, stride, dilation, groups, size)
    steps, image_at, strides, workspace = _padded(image, padding, 0, 0)
    grad_at, grad_strides = At("read", 1), _bytes(grad.strides, size)
    if grad.strides[2:] != (g.out[1] * g.out[2], g.out[2], 1):
        more, grad_at, grad_strides, workspace = _copied(grad, (0, 0, 0), 1, workspace)
        steps = [*steps, *more]
    parts, part_images = n_parts(g.images)
    rows = _block_rows(g)
    columns_row = g.row_bytes(rows * g.out_w)
    limit = min(
        _COLUMN_BYTES // (g.volume * columns_row), _COLUMN_BYTES // (g.volume * g.outputs * size)
    )
    work = part_images * g.channels * g.volume * g.outputs * g.out_rows * g.out_w
    wanted = min(4 * features.n_threads(), work * parts * groups // _CHUNK_WORK)
    most = -(-wanted // (parts * groups))
    block = _divisor(g.channels, min(limit, max(1, g.channels // max(1, most))))
    n_blocks = g.channels // block
    m = block * g.volume
    kind = _class(g, image.dtype, m, g.outputs)
    sums_step = _tile_bytes(kind)
    n_tiles = -(-m // kind.rows) * -(-g.outputs // kind.width)
    lanes = kind.element.lanes
    panel = -(-rows * g.out_w // lanes) * lanes * kind.width * size
    columns = aligned(n_tiles * sums_step)
    turned = columns + aligned(m * columns_row + SLACK_BYTES)
    words: Words = {
        "image_at": image_at, "grad_at": grad_at, "out_at": At("write", 0), "images": g.images,
        "part_images": part_images, "n_blocks": n_blocks, "groups": groups,
        "channels": g.channels, "block_channels": block, "kernel": g.volume,
        "outputs": g.outputs, "out_rows": g.out_rows, "block_rows": rows, "image_n": strides[0],
        "image_g": g.channels * strides[1], "grad_n": grad_strides[0],
        "grad_g": g.outputs * grad_strides[1], "grad_row": grad_strides[1],
        "out_part": image.shape[1] * g.volume * g.outputs * size,
        "out_g": g.channels * g.volume * g.outputs * size, "out_row": g.outputs * size,
        "columns_row": columns_row, "panel": panel, "columns": columns,
        "turned": turned, "sums_step": sums_step, **g.words(strides[1:]),
    }  # fmt: skip
    scratch = turned + -(-g.outputs // kind.width) * panel
    n_units = parts * groups * n_blocks
    step = _step(weight_kernel(kind), WEIGHT_WORDS, words, n_units, work // n_blocks, scratch)
    return NativePlan((*steps, step), workspace)
