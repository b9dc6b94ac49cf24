"""The largest element of windows, and where it is.

Keeps     the first of equal elements is taken, NaN before all; the gradient goes there alone.
Touches   ops.define, base, sizes.
Not here  kernels (devices/cpu/pooling), pools of one dim (nn/functions/pooling.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous
from flambeau.base.promotion import kernel_dtype
from flambeau.ops.define import Inferred, Operator, Sizes, Tensor, not_implemented, operator
from flambeau.ops.pooling.sizes import Ints, adaptive_sizes, pooled


def as_planes(b: Any, value: Any, count: int, element: dtype) -> Any:
    """(..., *sizes) as contiguous (planes, D, H, W)."""
    shape = tuple(value.shape)
    spatial = shape[len(shape) - count :]
    three = (1,) * (3 - count) + spatial
    value = b.memory(b.convert(value, element))
    if tuple(value.strides) != contiguous(shape, element).strides:
        value = b.map(lambda k, x: x, value)
    return b.reshape(value, (prod(shape[: len(shape) - count]), *three))


class LargestOfWindows(Operator):
    """(largest of each window, its place in the image seen flat)."""

    count = 2
    out = False

    def results(self, input: Layout, sizes: Ints, attributes: dict[str, Any]) -> Inferred:
        """Layouts of both results."""
        shape = (*input.shape[: input.ndim - self.count], *sizes)
        values = contiguous(shape, input.dtype, input.device)
        return Inferred((values, contiguous(shape, dtypes.int64, input.device)), attributes)

    def lower(self, b: Any, input: Any, window: Any, **_: Any) -> Any:
        values = b.output(0)
        shape = tuple(values.shape)
        if 0 in shape:
            return b.full(shape, 0, values.dtype), b.full(shape, 0, dtypes.int64)
        element = kernel_dtype(input.dtype)
        planes = as_planes(b, input, self.count, element)
        sizes = (planes.shape[0], *(1,) * (3 - self.count), *shape[len(shape) - self.count :])
        made, places = b.temporary(sizes, element), b.temporary(sizes, dtypes.int64)
        b.kernel("pooling.largest", (planes,), (made, places), window=window)
        return b.reshape(made, shape), b.reshape(places, shape)

    def vjp(self, t: Any, grad: Any, input_layout: Any, indices: Any) -> Any:
        if grad is None:
            return None
        return t.largest_of_windows_backward(grad, indices, input_layout.shape, self.count)


def _window_samples(s: Any) -> list[Any]:
    return [
        s(s.real(2, 3, 6, 5), 2), s(s.real(3, 7, 6), (3, 2), (2, 1), (1, 0), 1, True),
        s(s.real(1, 2, 9, 8), 3, 2, 1, 2), s(s.real(1, 2, 5, 20), 3, 1, 1),
    ]  # fmt: skip


class MaxPool(LargestOfWindows):
    """The largest of windows of one size."""

    def infer(
        self, input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False,
    ) -> Inferred:  # fmt: skip
        name = f"max_pool{self.count}d"
        windows = pooled(name, input, self.count, kernel_size, stride, padding, dilation, ceil_mode)
        if input.dtype is dtypes.bool_ or input.dtype.is_complex:
            raise not_implemented(name, input.dtype)
        return self.results(input, windows.sizes, {"window": windows.in_three()})


@operator("max_pool2d_with_indices", function=False, returns=("values", "indices"))
class MaxPool2d(MaxPool):
    """The largest of windows over the last two dims, and their places."""

    def samples(self, s: Any) -> list[Any]:
        return _window_samples(s)


@operator("max_pool3d_with_indices", function=False, returns=("values", "indices"))
class MaxPool3d(MaxPool):
    """The largest of windows over the last three dims, and their places."""

    count = 3

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 2, 4, 5, 4), 2), s(s.real(1, 3, 4, 4), 3, 2, 1)]


class AdaptiveMaxPool(LargestOfWindows):
    """The largest of as many windows as asked for."""

    kernel = ""  # torch's name of its kernel

    def infer(self, input: Tensor, output_size: Any) -> Inferred:
        sizes = adaptive_sizes(f"adaptive_max_pool{self.count}d()", input, self.count, output_size)
        if not input.dtype.is_floating_point:
            raise not_implemented(self.kernel, input.dtype)
        return self.results(input, sizes, {"window": None})


@operator("adaptive_max_pool2d", function=False, returns=("values", "indices"))
class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """The largest of as many windows as asked for over the last two dims, and their places."""

    kernel = "adaptive_max_pool2d"

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 7, 5), (3, 2)), s(s.real(3, 4, 4), (1, 1))]


@operator("adaptive_max_pool3d", function=False, returns=("values", "indices"))
class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """The largest of as many windows as asked for over the last three dims, and their places."""

    count = 3
    kernel = "adaptive_max_pool3d_cpu"

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(1, 2, 5, 4, 3), (2, 3, 1))]


@operator("largest_of_windows_backward", function=False)
class LargestOfWindowsBackward(Operator):
    """Cotangents added up at the places the largest elements came from."""

    out = False

    def infer(self, grad: Tensor, indices: Tensor, shape: Sizes, count: int) -> Inferred:
        out = contiguous(tuple(shape), grad.dtype, grad.device)
        return Inferred((out,), {"shape": tuple(shape), "count": count})

    def lower(self, b: Any, grad: Any, indices: Any, shape: Any, count: int) -> Any:
        element = kernel_dtype(grad.dtype)
        if 0 in shape or 0 in grad.shape:
            return b.full(tuple(shape), 0, element)
        places = shape[len(shape) - count :]
        planes = prod(shape[: len(shape) - count])
        made = b.temporary((planes, *(1,) * (3 - count), *places), element)
        reads = as_planes(b, grad, count, element), as_planes(b, indices, count, dtypes.int64)
        b.kernel("pooling.largest_gradient", reads, (made,))
        return b.reshape(made, tuple(shape))

    def vjp(self, t: Any, grad: Any, grad_layout: Any, indices: Any, count: int) -> Any:
        flat = grad.flatten(-count)
        return flat.gather(-1, indices.flatten(-count)).reshape(grad_layout.shape), None

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(2, 3, 2, 2), s.index(2, 3, 2, 2, below=12), (2, 3, 4, 3), 2),
            s(s.real(2, 1, 2, 2), s.index(2, 1, 2, 2, below=18), (2, 2, 3, 3), 3),
        ]
