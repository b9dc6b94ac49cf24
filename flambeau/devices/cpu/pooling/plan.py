"""Plans of pools: planes are units.

Keeps     operands are contiguous, of three spatial dims; nothing here shows in the bits.
Touches   config, features, steps.
Not here  the text (largest_text.py, average_text.py), operators (ops/pooling)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.pooling.average_text import WORDS as AVERAGE_WORDS
from flambeau.devices.cpu.pooling.average_text import average_gradient_kernel, average_kernel
from flambeau.devices.cpu.pooling.largest_text import (
    GRADIENT_WORDS,
    largest_gradient_kernel,
    largest_kernel,
)
from flambeau.devices.cpu.pooling.largest_text import WORDS as LARGEST_WORDS
from flambeau.devices.cpu.pooling.windows_text import SIZES, PoolClass
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep

# A window in three dims: kernel, step, padding, distance of its places; None: adaptive.
Window = tuple[tuple[int, ...], ...] | None
Words = dict[str, int | At]

_CHUNK_ELEMENTS: Final = 16_384
_LEAST_BITS: Final = 128


def _sizes(places: Sequence[int], outputs: Sequence[int], window: Window) -> Words:
    kernel, step, pad, far = window or ((1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1))
    rows = zip(places, outputs, kernel, step, pad, far, strict=True)
    return dict(zip(SIZES, [number for row in rows for number in row], strict=True))


def _plan(
    kernel: tuple[str, str], names: tuple[str, ...], words: Words, n_units: int, elements: int
) -> NativePlan:
    name, text = kernel
    arguments = tuple([words[each] for each in names])
    chunk = max(1, _CHUNK_ELEMENTS // max(1, elements))
    return NativePlan((NativeStep(name, text, n_units, chunk, arguments),))


def largest(reads: Sequence[Any], writes: Sequence[Any], window: Window) -> NativePlan:
    """(planes, D, H, W) to its largest elements and their places, (planes, D', H', W') each."""
    (planes,) = reads
    out, _ = writes
    step = window[1][2] if window and window[1][2] in (1, 2) else 0
    bits = features.vector_bits()
    while bits > _LEAST_BITS and out.shape[3] < bits // (8 * planes.dtype.itemsize):
        bits //= 2  # short rows have vectors, too
    kind = PoolClass(planes.dtype, window is None, step, bits)
    words: Words = {
        "plane_at": At("read", 0), "out_at": At("write", 0), "index_at": At("write", 1),
        **_sizes(planes.shape[1:], out.shape[1:], window),
    }  # fmt: skip
    elements = prod(planes.shape[1:])
    return _plan(largest_kernel(kind), LARGEST_WORDS, words, planes.shape[0], elements)


def largest_gradient(reads: Sequence[Any], writes: Sequence[Any]) -> NativePlan:
    """Cotangents and places to the cotangents of the planes."""
    grad, _ = reads
    (planes,) = writes
    kind = PoolClass(grad.dtype, vector_bits=features.vector_bits())
    words: Words = {
        "grad_at": At("read", 0), "index_at": At("read", 1), "plane_at": At("write", 0),
        "places": prod(planes.shape[1:]), "outputs": prod(grad.shape[1:]),
    }  # fmt: skip
    elements = prod(planes.shape[1:])
    kernel = largest_gradient_kernel(kind)
    return _plan(kernel, GRADIENT_WORDS, words, planes.shape[0], elements)


def average(
    reads: Sequence[Any], writes: Sequence[Any], window: Window, divisor: int, counts_padding: bool
) -> NativePlan:
    """(planes, D, H, W) to means of windows (planes, D', H', W')."""
    return _average(reads[0], writes[0], window, divisor, counts_padding, False)


def average_gradient(
    reads: Sequence[Any], writes: Sequence[Any], window: Window, divisor: int, counts_padding: bool
) -> NativePlan:
    """Cotangents (planes, D', H', W') to cotangents of the planes."""
    return _average(writes[0], reads[0], window, divisor, counts_padding, True)


def _average(
    planes: Any, out: Any, window: Window, divisor: int, counts_padding: bool, is_gradient: bool
) -> NativePlan:
    kind = PoolClass(planes.dtype, window is None, vector_bits=features.vector_bits())
    words: Words = {
        "plane_at": At("write" if is_gradient else "read"),
        "out_at": At("read" if is_gradient else "write"),
        "divisor": divisor, "counts_padding": int(counts_padding),
        **_sizes(planes.shape[1:], out.shape[1:], window),
    }  # fmt: skip
    kernel = average_gradient_kernel(kind) if is_gradient else average_kernel(kind)
    elements = prod(planes.shape[1:])
    return _plan(kernel, AVERAGE_WORDS, words, planes.shape[0], elements)
