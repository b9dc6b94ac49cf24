"""Sizes of convolutions as their kernels want them: geometry, tiles, copies with zeros around.

Keeps     images have three spatial dims; tiles weigh speed alone and do not show in the bits.
Touches   features, steps, pad_text.
Not here  plans (plan.py, direct.py), the text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf, prod
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.convolution.pad_text import WORDS as PAD_WORDS
from flambeau.devices.cpu.convolution.pad_text import pad_kernel
from flambeau.devices.cpu.convolution.windows_text import ConvolutionClass
from flambeau.devices.cpu.steps import SLACK_BYTES, At, NativeStep, aligned, row_bytes

Three = tuple[int, int, int]
Words = dict[str, int | At]

# Multiply-adds of a chunk of units.
CHUNK_WORK: Final = 500_000
# Lanes that even the shortest rows are copied or added up with.
LEAST_RUN: Final = 4
# Vector registers, and what a tile may have of rows and vectors.
_REGISTERS: Final = {256: 16, 512: 32}
_MOST_ROWS: Final = 14
_MOST_SCATTERED_ROWS: Final = 10  # each has a pointer in a register
_MOST_VECTORS: Final = 6
# What cycles are estimated from: of a chain of multiply-adds, of a tile's start and end.
_CHAIN_CYCLES: Final = 4
_TILE_CYCLES: Final = 60
# Places of a block of rows where the block shows in the bits.
BLOCK_PLACES: Final = 128
FIRST_CACHE_BYTES: Final = 40 << 10


class Geometry:
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


@lru_cache(maxsize=4096)
def best_tile(
    bits: int, m: int, n_vectors: int, k: int, only: int = 0, is_packed: bool = True,
    most_rows: int = _MOST_ROWS,
) -> tuple[int, int, float]:  # fmt: skip
    """Rows and vectors of the register tile that takes fewest cycles for a product of m rows by so
    many vectors over k, and the cycles.

    only       that many vectors and no others
    is_packed  rows of k share no memory
    most_rows  of a tile
    """
    registers = _REGISTERS[bits]
    best: tuple[int, int, float] = (1, 1, inf)
    for vectors in [only] if only else range(1, min(n_vectors, _MOST_VECTORS) + 1):
        panels = -(-n_vectors // vectors)
        panel_bytes = k * vectors * bits // 8 if is_packed else 0
        most = max(
            rows
            for rows in range(1, most_rows + 1)
            if rows * vectors + min(rows, vectors) < registers or rows == 1
        )
        for rows in {min(most, m), -(-m // -(-m // most))}:
            full, edge = divmod(m, rows)
            step = _step_cycles(rows, vectors, panel_bytes)
            cycles = full * (k * step + _TILE_CYCLES)
            if edge:
                cycles += k * _step_cycles(edge, vectors, panel_bytes) + _TILE_CYCLES
            if panels * cycles < best[2]:
                best = rows, vectors, panels * cycles
    return best


def _step_cycles(rows: int, vectors: int, panel_bytes: int) -> float:
    """Cycles of a step of k: of its multiplications, its loads and hints, its chains; of reading
    the panel from the second cache."""
    loads = rows + 2 * vectors + 1
    far = 0 if panel_bytes <= FIRST_CACHE_BYTES else 2 * vectors
    return max(rows * vectors / 2, loads / 2, _CHAIN_CYCLES, far)


def class_of(
    geometry: Geometry, element: Any, m: int, n: int, k: int, has_bias: bool = False
) -> ConvolutionClass:
    """The kernel for tiles of an m by n product over k."""
    bits = features.vector_bits()
    lanes = bits // (8 * geometry.size)
    rows, vectors, _ = best_tile(bits, m, -(-n // lanes), k)
    step = geometry.stride[2] if geometry.stride[2] in (1, 2) else 0
    run = max(LEAST_RUN, min(lanes, 1 << (geometry.out_w - 1).bit_length()))
    return ConvolutionClass(
        element, bits, step, rows, m % rows, vectors, has_bias, lanes=run,
        is_short=geometry.out_w <= run, is_flat=geometry.out[0] == 1,
    )  # fmt: skip


def weight_class(g: Geometry, element: Any, m: int) -> ConvolutionClass:
    """The kernel of a gradient of weights: m by outputs, windows read where they lie."""
    bits = features.vector_bits()
    n_vectors = -(-g.outputs // (bits // (8 * g.size)))
    k = min(g.out_rows * g.out_w, BLOCK_PLACES)
    rows, vectors, _ = best_tile(
        bits, m, n_vectors, k, is_packed=False, most_rows=_MOST_SCATTERED_ROWS
    )
    return ConvolutionClass(
        element, bits, 0, rows, m % rows, vectors, is_flat=g.out[0] == 1, scattered="a"
    )


def tile_bytes(kind: ConvolutionClass) -> int:
    return kind.rows * kind.width * kind.element.n_packed_bytes


def divisor(count: int, limit: int) -> int:
    """The largest divisor of `count` that is at most `limit`, 1 at least."""
    return next(each for each in range(max(1, min(count, limit)), 0, -1) if count % each == 0)


def _chunk(n_units: int, work: int) -> int:
    """Units of a chunk, `work` being a unit's multiply-adds."""
    return max(1, min(CHUNK_WORK // max(1, work), -(-n_units // (4 * features.n_threads()))))


def bytes_of(strides: Sequence[int], size: int) -> list[int]:
    return [each * size for each in strides]


def padded(
    image: Any, padding: Three, place: int, start: int
) -> tuple[list[NativeStep], At, list[int], int]:
    """`read` number `place` with zeros around it, in workspace from `start` on where it is not
    usable as it lies: steps, address, byte strides, end of the workspace."""
    strides = bytes_of(image.strides, image.dtype.itemsize)
    if not any(padding) and (image.strides[4] == 1 or image.shape[4] == 1):
        return [], At("read", place), strides, start
    return copied(image, padding, place, start)


def copied(
    image: Any, padding: Three, place: int, start: int, slack: int = SLACK_BYTES
) -> tuple[list[NativeStep], At, list[int], int]:
    """The image packed with zeros around it, whatever its strides; as padded."""
    size = image.dtype.itemsize
    n, channels, *sizes = image.shape
    around = [each + 2 * by for each, by in zip(sizes, padding, strict=True)]
    line, sheet = around[2] * size, around[1] * around[2] * size
    plane = around[0] * sheet
    names = ("source_n", "source_c", "source_d", "source_h", "source_w")
    words: Words = {
        "source_at": At("read", place), "target_at": At("workspace", 0, start),
        "channels": channels, "depth": sizes[0], "height": sizes[1], "width": sizes[2],
        **dict(zip(names, bytes_of(image.strides, size), strict=True)),
        "plane": plane, "target_d": sheet, "target_h": line,
        "first": padding[0] * sheet + padding[1] * line + padding[2] * size,
    }  # fmt: skip
    name, text = pad_kernel(size)
    arguments = tuple([words[each] for each in PAD_WORDS])
    step = NativeStep(name, text, n * channels, max(1, 32_768 // max(1, plane)), arguments)
    end = start + aligned(n * channels * plane + slack)
    return [step], At("workspace", 0, start), [channels * plane, plane, sheet, line, size], end


def step_of(
    kernel: tuple[str, str], names: tuple[str, ...], words: Words, n_units: int, work: int,
    scratch: int,
) -> NativeStep:  # fmt: skip
    name, text = kernel
    arguments = tuple([words[each] for each in names])
    return NativeStep(name, text, n_units, _chunk(n_units, work), arguments, scratch)
