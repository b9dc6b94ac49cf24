"""Convolutions of few places, as one product over the whole batch.

Keeps     an output is the same product over channels and places of the kernel as ever, so its bits
          do not show this way; which way is taken follows from sizes alone.
Touches   the builder's views and products.
Not here  the operators (convolution.py), kernels that go image by image
          (devices/cpu/convolution)."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, Final

Three = tuple[int, int, int]

# Places of an image that a kernel of its own fills a vector with.
_LANES: Final = 16
# What writing out an element of a window costs, in multiply-adds of a vector.
_COST: Final = 4
# Elements of weights that a cache does not keep from image to image.
_HEAVY: Final = 1 << 20
# Elements of windows that are written out for the whole batch, at most.
_MOST: Final = 1 << 24
# Passes over an image that windows are added up in, at most.
_PASSES: Final = 32


def are_few(
    batch: int, counts: Three, outputs: int, channels: int, kernel: Three, groups: int
) -> bool:
    """Whether images of so few windows are better multiplied together than one by one: a product
    of a few columns leaves most of a vector empty, and reads all weights for each image."""
    places, length = prod(counts), channels * prod(kernel)
    is_thin = outputs * (_LANES - places) > _COST * _LANES * places
    is_light = 2 * batch * places <= outputs
    is_heavy = outputs * length >= _HEAVY
    return (
        groups == 1
        and (is_thin or is_light or is_heavy)
        and batch * places * length <= _MOST
        and min(places, prod(kernel)) <= _PASSES
    )


def forward(
    b: Any, image: Any, weight: Any, counts: Three, stride: Three, padding: Three, dilation: Three
) -> Any:
    """Image (N, C, D, H, W), weight (O, C, d, h, w) to a view (N, O, D', H', W')."""
    columns = _columns(b, image, weight.shape[2:], counts, stride, padding, dilation)
    rows = b.reshape(weight, (weight.shape[0], columns.shape[1]))
    return _images(b, b.product(columns, b.transpose(rows, 0, 1)), image.shape[0], counts)


def transposed(
    b: Any, places: Any, weight: Any, sizes: Three, stride: Three, padding: Three, dilation: Three
) -> Any:
    """Places (N, O, D', H', W'), weight (O, C, d, h, w) to a view (N, C, *sizes) of images."""
    batch, outputs, *counts = places.shape
    channels, kernel = weight.shape[1], weight.shape[2:]
    spread = b.product(_rows(b, places), b.reshape(weight, (outputs, channels * prod(kernel))))
    windows = b.reshape(spread, (batch, *counts, channels, *kernel))
    reach = [
        (count - 1) * step + far * (width - 1) + 1
        for count, step, far, width in zip(counts, stride, dilation, kernel, strict=True)
    ]
    around = [max(size + 2 * by, far) for size, by, far in zip(sizes, padding, reach, strict=True)]
    image = b.temporary((batch, channels, *around), places.dtype)
    b.write(image, b.full(image.shape, 0, image.dtype))
    # Window by window or place by place of the kernel, whichever are fewer.
    by_window = prod(counts) <= prod(kernel)
    for at in product(*map(range, counts if by_window else kernel)):
        target, part = image, windows
        for dim, index in enumerate(at):
            far, step = dilation[dim], stride[dim]
            start, count, move = index * step, kernel[dim], far
            if not by_window:
                start, count, move = index * far, counts[dim], step
            target = b.narrow(target, 2 + dim, start, count, move)
            part = b.select(part, 1 if by_window else 5, index)
        if not by_window:
            part = b.permute(part, (0, 4, 1, 2, 3))
        b.write(target, b.map(lambda k, x, y: k.add(x, y), target, part))
    for dim, (size, by) in enumerate(zip(sizes, padding, strict=True)):
        image = b.narrow(image, 2 + dim, by, size)
    return image


def weight_gradient(
    b: Any, image: Any, places: Any, kernel: Three, stride: Three, padding: Three, dilation: Three
) -> Any:
    """Image (N, C, D, H, W), cotangent (N, O, D', H', W') to (O, C * d * h * w)."""
    columns = _columns(b, image, kernel, places.shape[2:], stride, padding, dilation)
    return b.product(b.transpose(_rows(b, places), 0, 1), columns)


def _columns(
    b: Any, image: Any, kernel: Three, counts: Three, stride: Three, padding: Three,
    dilation: Three,
) -> Any:  # fmt: skip
    """Windows of all images written out, one a row: (N * places, C * d * h * w)."""
    batch, channels, *sizes = image.shape
    if any(padding):
        around = [size + 2 * by for size, by in zip(sizes, padding, strict=True)]
        padded = b.temporary((batch, channels, *around), image.dtype)
        b.write(padded, b.full(padded.shape, 0, padded.dtype))
        middle = padded
        for dim, (size, by) in enumerate(zip(sizes, padding, strict=True)):
            middle = b.narrow(middle, 2 + dim, by, size)
        b.write(middle, image)
        image = padded
    windows = b.windows(image, counts, kernel, stride, dilation)
    windows = b.permute(windows, (0, 2, 3, 4, 1, 5, 6, 7))
    return b.reshape(windows, (batch * prod(counts), channels * prod(kernel)))


def _rows(b: Any, places: Any) -> Any:
    """(N, O, *counts) as a matrix of places by outputs."""
    batch, outputs, *counts = places.shape
    apart = b.reshape(places, (batch, outputs, prod(counts)))
    return b.reshape(b.transpose(apart, 1, 2), (batch * prod(counts), outputs))


def _images(b: Any, rows: Any, batch: int, counts: Three) -> Any:
    """A matrix of places by outputs as images of outputs."""
    outputs = rows.shape[1]
    apart = b.transpose(b.reshape(rows, (batch, prod(counts), outputs)), 1, 2)
    return b.reshape(b.map(lambda k, x: x, apart), (batch, outputs, *counts))
