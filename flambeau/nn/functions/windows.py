"""Windows over the last dims of a tensor, as views: what convolutions and pools slide over.

Keeps     a window is a view; nothing is copied until a product or a fold reads it.
Touches   tensor.functions (as_strided).
Not here  what is done with windows (convolution.py, pooling.py)."""

from __future__ import annotations

from typing import Any

from flambeau.tensor import functions as t


def out_size(size: int, kernel: int, stride: int, dilation: int = 1) -> int:
    """How many windows fit."""
    return (size - dilation * (kernel - 1) - 1) // stride + 1


def windows(
    input: Any, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...],
    sizes: tuple[int, ...],
) -> Any:  # fmt: skip
    """(..., *spatial) as (..., *sizes, *kernel): `sizes` windows of `kernel` places."""
    count = len(kernel)
    plain = input.dim() - count
    input = input.contiguous()
    strides = input.stride()
    lead = strides[:plain]
    steps = tuple(s * by for s, by in zip(strides[plain:], stride, strict=True))
    inner = tuple(s * by for s, by in zip(strides[plain:], dilation, strict=True))
    shape = (*input.shape[:plain], *sizes, *kernel)
    return t.as_strided(input, shape, (*lead, *steps, *inner), input.storage_offset())


def overlap_added(
    parts: Any, spatial: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> Any:
    """The transpose of `windows`: (..., *sizes, *kernel) added up into (..., *spatial), in the
    order of the places in the windows."""
    count = len(spatial)
    lead = tuple(parts.shape[: parts.dim() - 2 * count])
    sizes, kernel = parts.shape[len(lead) : len(lead) + count], parts.shape[len(lead) + count :]
    plain = 1
    for size in lead:
        plain *= size
    volume = 1
    strides = []
    for size in reversed(spatial):
        strides.insert(0, volume)
        volume *= size
    steps = tuple(s * by for s, by in zip(strides, stride, strict=True))
    inner = tuple(s * by for s, by in zip(strides, dilation, strict=True))
    return t.as_strided_backward(
        parts.reshape(plain, *sizes, *kernel), (plain, *spatial), (plain, *sizes, *kernel),
        (volume, *steps, *inner), 0,
    ).reshape(*lead, *spatial)  # fmt: skip
