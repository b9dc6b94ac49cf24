"""Plans of finding what is not zero.

Keeps     small masks in one step on the calling thread; large ones in blocks: count, sum, write.
Touches   config, features, steps, walks, packing.
Not here  the text (compact_text.py), operators (ops/indexing)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.base.layout import contiguous_strides
from flambeau.devices.cpu import features
from flambeau.devices.cpu.compact import compact_text
from flambeau.devices.cpu.compact.compact_text import BLOCK, SCRATCH_BYTES
from flambeau.devices.cpu.packing import copy_step
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep
from flambeau.devices.cpu.walks import collapsed, dims_of

# Masks of fewer elements are not worth a second thread.
_ALONE: Final = 65_536
# Blocks that a thread takes at once.
_CHUNK: Final = 4


def nonzero(reads: Sequence[Any], writes: Sequence[Any], fill_value: int = -1) -> NativePlan:
    """Rows of `out` (size, n dimensions): where `mask` (bool) holds, in row-major order; rows
    beyond are fill_value."""
    (mask,) = reads
    (out,) = writes
    size, n_dims = out.shape
    if not size or not n_dims:
        return NativePlan(())
    n = 1
    for length in mask.shape:
        n *= length
    steps: list[NativeStep] = []
    place = At("read", 0)
    workspace = 0
    dims = collapsed(dims_of(mask.shape, mask.strides))
    if n > 1 and (len(dims) > 1 or dims[0][1] != 1):
        place = At("workspace")
        packed = dims_of(mask.shape, mask.strides, contiguous_strides(mask.shape))
        steps.append(
            copy_step(At("read", 0), place, collapsed(packed), mask.dtype, mask.dtype)
        )
        workspace = -(-n // 64) * 64
    n_blocks = -(-n // BLOCK)
    is_alone = n <= _ALONE or (CONFIG.threads or features.usable_cores()) == 1
    words: list[int | At] = [
        place, At("write", 0), 0 if is_alone else At("workspace", 0, workspace), n, size, fill_value,
        8 * out.strides[0], 8 * out.strides[1],
    ]  # fmt: skip
    for length in mask.shape:
        reciprocal = -(-(1 << 64) // length) if length > 1 else 0
        words += [length, reciprocal - (1 << 64) if reciprocal >> 63 else reciprocal]
    arguments = tuple(words)
    used = tuple(length > 1 for length in mask.shape)
    name, text = compact_text.write_kernel(used, n >= 1 << 32, is_alone)
    if is_alone:
        steps.append(NativeStep(name, text, 1, 1, arguments, SCRATCH_BYTES))
        return NativePlan(tuple(steps), workspace)
    counting, summing = compact_text.count_kernel(), compact_text.sum_kernel(n_dims)
    steps.append(NativeStep(*counting, n_blocks, 4 * _CHUNK, arguments))
    steps.append(NativeStep(*summing, 1, 1, arguments))
    steps.append(NativeStep(name, text, n_blocks, _CHUNK, arguments, SCRATCH_BYTES))
    return NativePlan(tuple(steps), workspace + 8 * n_blocks)
