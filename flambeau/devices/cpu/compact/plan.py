"""Plans of finding what a mask chooses: places, elements taken there, elements put there.

Keeps     small masks in one step on the calling thread; large ones in blocks: count, sum, write.
Touches   config, features, steps, walks, packing.
Not here  the text (compact_text.py), operators (ops/indexing)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.base.layout import contiguous_strides
from flambeau.devices.cpu import features
from flambeau.devices.cpu.compact import compact_text
from flambeau.devices.cpu.compact.compact_text import BLOCK, SCRATCH_BYTES, Action
from flambeau.devices.cpu.packing import copy_step
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep, aligned
from flambeau.devices.cpu.walks import Dim, collapsed, count, dims_of

# Masks of fewer elements are not worth a second thread.
_ALONE: Final = 65_536
# Blocks that a thread takes at once.
_CHUNK: Final = 4


def nonzero(reads: Sequence[Any], writes: Sequence[Any], fill_value: int = -1) -> NativePlan:
    """Rows of `out` (size, n dimensions): where `mask` (bool) holds, in row-major order; rows
    beyond are fill_value."""
    (mask,) = reads
    (out,) = writes
    size = out.shape[0]
    dims = [(length, 0) for length in mask.shape]
    strides = (8 * out.strides[0], 8 * out.strides[1])
    return _plan("places", 0, mask, At("write", 0), 0, size, strides, dims, fill_value)


def masked_select(reads: Sequence[Any], writes: Sequence[Any]) -> NativePlan:
    """out[i] = input's element where `mask` (bool, input's shape) holds for the i-th time, for as
    many as `out` has; reads are (mask, input)."""
    mask, input = reads
    (out,) = writes
    size = input.dtype.itemsize
    dims = collapsed(dims_of(input.shape, input.strides))
    return _plan(
        "select", size, mask, At("write", 0), At("read", 1), out.shape[0],
        (size * out.strides[0], 0), dims, 0,
    )  # fmt: skip


def masked_scatter(reads: Sequence[Any], writes: Sequence[Any]) -> NativePlan:
    """target's element where `mask` (bool, target's shape) holds for the i-th time = source[i],
    for as many as `source` has; reads are (mask, source)."""
    mask, source = reads
    (target,) = writes
    size = target.dtype.itemsize
    dims = collapsed(dims_of(target.shape, target.strides))
    return _plan(
        "scatter", size, mask, At("read", 1), At("write", 0), source.shape[0],
        (size * source.strides[0], 0), dims, 0,
    )  # fmt: skip


def _plan(
    name: str, n_bytes: int, mask: Any, rows: At, data: At | int, size: int,
    row_strides: tuple[int, int], dims: Sequence[Dim], fill: int,
) -> NativePlan:  # fmt: skip
    """dims: sizes and data's strides, row-major over the mask; size: how many rows there are."""
    n = count(dims_of(mask.shape))
    if not size or not (dims or data):
        return NativePlan(())
    steps: list[NativeStep] = []
    place = At("read", 0)
    workspace = 0
    packed = dims_of(mask.shape, mask.strides, contiguous_strides(tuple(mask.shape)))
    if n and any(stride != wanted for _, stride, wanted in packed):
        place = At("workspace")
        steps.append(copy_step(At("read", 0), place, collapsed(packed), mask.dtype, mask.dtype))
        workspace = aligned(n)
    n_blocks = -(-n // BLOCK)
    is_alone = n <= _ALONE or features.n_threads() == 1
    counts = 0 if is_alone else At("workspace", 0, workspace)
    words: list[int | At] = [place, rows, data, counts, n, size, fill, *row_strides]
    for length, stride in dims:
        reciprocal = -(-(1 << 64) // length) if length > 1 else 0
        words += [length, _signed(reciprocal), n_bytes * stride]
    arguments = tuple(words)
    action = Action(name, n_bytes, tuple(length > 1 for length, _ in dims), n >= 1 << 32)
    write = compact_text.write_kernel(action, is_alone)
    if is_alone:
        steps.append(NativeStep(*write, 1, 1, arguments, SCRATCH_BYTES))
        return NativePlan(tuple(steps), workspace)
    summing = compact_text.sum_kernel(len(dims) if name == "places" else 0)
    steps.append(NativeStep(*compact_text.count_kernel(), n_blocks, 4 * _CHUNK, arguments))
    steps.append(NativeStep(*summing, 1, 1, arguments))
    steps.append(NativeStep(*write, n_blocks, _CHUNK, arguments, SCRATCH_BYTES))
    return NativePlan(tuple(steps), workspace + 8 * n_blocks)


def _signed(word: int) -> int:
    """The same 64 bits as a signed number."""
    return word - (1 << 64) if word >> 63 else word
