"""Plans of running sums and products: columns in vectors, or blocks of rows side by side.

Keeps     the same bits whichever kernel and however many units.
Touches   config, features, steps, walks.
Not here  the text (scans_text.py), operators (ops/indexing/scans.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.scans import scans_text
from flambeau.devices.cpu.scans.scans_text import BLOCK, STREAMS, ScanClass
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep
from flambeau.devices.cpu.walks import count, ordered

# Elements of a chunk of units: less is not worth another thread.
_CHUNK_ELEMENTS: Final = 16_384
# Fewer columns than this are folded as streams.
_FEW_COLUMNS: Final = 4


def cumsum(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """Sum of all elements up to each place of `dim`; the result has the input's dtype."""
    return _scan(reads[0], writes[0], dim, False)


def cumprod(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """Product of all elements up to each place of `dim`."""
    return _scan(reads[0], writes[0], dim, True)


class _Parts:
    """A complex operand as its real and imaginary parts, in a last dimension."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, operand: Any) -> None:
        self.dtype = operand.dtype.to_real()
        self.shape = (*operand.shape, 2)
        self.strides = (*[2 * stride for stride in operand.strides], 1)


def _scan(source: Any, target: Any, dim: int, is_product: bool) -> NativePlan:
    if source.dtype.is_complex:
        if is_product:
            raise NotImplementedError(
                f"cumprod is not there for {source.dtype}: take it of logarithms, or of real "
                "and imaginary parts."
            )
        source, target = _Parts(source), _Parts(target)
    n = source.shape[dim]
    outer = ordered(
        [
            each
            for place, each in enumerate(
                zip(source.shape, source.strides, target.strides, strict=True)
            )
            if place != dim and each[0] != 1
        ],
        1,
    )
    if not n * count(outer):
        return NativePlan(())
    size = source.dtype.itemsize
    steps = size * source.strides[dim], size * target.strides[dim]
    if outer and outer[-1][1:] == (1, 1) and outer[-1][0] >= _FEW_COLUMNS:
        return _column_plan(source.dtype, is_product, n, steps, outer)
    return _stream_plan(source.dtype, is_product, n, steps, outer)


def _dims(outer: list[tuple[int, ...]], size: int) -> list[int]:
    words: list[int] = []
    for length, source_stride, target_stride in outer:
        words += [length, size * source_stride, size * target_stride]
    return words


def _column_plan(
    element: Any, is_product: bool, n: int, strides: tuple[int, int], outer: list[tuple[int, ...]]
) -> NativePlan:
    columns = outer[-1][0]
    outer = outer[:-1]
    size = element.itemsize
    kind = ScanClass(element, is_product, len(outer))
    threads = features.n_threads()
    line = 64 // max(size, 4)
    is_large = n * columns * count(outer) > _CHUNK_ELEMENTS
    per_unit = -(-columns // (2 * threads)) if is_large else columns
    block = max(line, -(-per_unit // line) * line)
    n_blocks = -(-columns // block)
    words: list[int | At] = [
        At("read", 0), At("write", 0), 0, n, *strides, 0, 0, columns, n_blocks, block,
        *_dims(outer, size),
    ]  # fmt: skip
    name, text = scans_text.column_kernel(kind, n > BLOCK)
    chunk = max(1, _CHUNK_ELEMENTS // (n * min(block, columns)))
    return NativePlan((NativeStep(name, text, n_blocks * count(outer), chunk, tuple(words)),))


def _stream_plan(
    element: Any, is_product: bool, n: int, strides: tuple[int, int], outer: list[tuple[int, ...]]
) -> NativePlan:
    rows, n_blocks = count(outer), -(-n // BLOCK)
    kind = ScanClass(element, is_product, len(outer))
    n_streams = rows * n_blocks
    words: list[int | At] = [
        At("read", 0), At("write", 0), At("workspace") if n_blocks > 1 else 0, n, *strides,
        n_blocks, n_streams, 0, 0, 0, *_dims(outer, element.itemsize),
    ]  # fmt: skip
    arguments = tuple(words)
    n_units = -(-n_streams // STREAMS)
    chunk = max(1, _CHUNK_ELEMENTS // (STREAMS * min(n, BLOCK)))
    write = NativeStep(*scans_text.stream_kernel(kind, True), n_units, chunk, arguments)
    if n_blocks == 1:
        return NativePlan((write,))
    fold = NativeStep(*scans_text.stream_kernel(kind, False), n_units, chunk, arguments)
    carry_chunk = max(1, _CHUNK_ELEMENTS // n_blocks)
    carry = NativeStep(*scans_text.carry_kernel(kind), rows, carry_chunk, arguments)
    return NativePlan((fold, carry, write), 8 * n_streams)
