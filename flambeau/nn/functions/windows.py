"""Windows over the last dims of a tensor, as views: what convolutions and pools slide over.

Keeps     a window is a view; nothing is copied until a product or a fold reads it.
Touches   tensor.functions (unfold and its transpose).
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
    plain = input.dim() - len(kernel)
    for number, (size, step, far, count) in enumerate(
        zip(kernel, stride, dilation, sizes, strict=True)
    ):
        dim = plain + number
        input = input.unfold(dim, far * (size - 1) + 1, step)
        if far > 1:
            input = t.slice(input, input.dim() - 1, None, None, far)
        if input.shape[dim] != count:
            input = input.narrow(dim, 0, count)
    return input


def overlap_added(
    parts: Any, spatial: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> Any:
    """The transpose of `windows`: (..., *sizes, *kernel) added up into (..., *spatial), in the
    order of the windows."""
    count = len(spatial)
    plain = parts.dim() - 2 * count
    for number in reversed(range(count)):
        dim, far = plain + number, dilation[number]
        shape = list(parts.shape)
        reach = far * (shape[-1] - 1) + 1
        if far > 1:
            wider = (*shape[:-1], reach)
            parts = t.slice_backward(parts, wider, len(shape) - 1, None, None, far)
        covered = (shape[dim] - 1) * stride[number] + reach
        shape[dim] = covered
        parts = t.unfold_backward(parts, tuple(shape[:-1]), dim, reach, stride[number])
        missing = spatial[number] - covered
        if missing:
            sides = (0, 0) * (parts.dim() - 1 - dim) + (0, missing)
            parts = t.constant_pad_nd(parts, sides, 0.0)
    return parts
