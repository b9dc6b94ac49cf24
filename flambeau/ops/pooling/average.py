"""Means of windows.

Keeps     the sum of a window is in row-major order, whatever the batch.
Touches   ops.define, base, sizes.
Not here  kernels (devices/cpu/pooling), pools of one dim (nn/functions/pooling.py)."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import contiguous
from flambeau.base.promotion import kernel_dtype
from flambeau.ops.define import Inferred, Operator, Sizes, Tensor, not_implemented, operator
from flambeau.ops.pooling.largest import as_planes
from flambeau.ops.pooling.sizes import adaptive_sizes, pooled

_FLOATING = (dtypes.float32, dtypes.float64)
# Windows of two by two, side by side, for samples.
_TWO = ((1, 2, 2), (1, 2, 2), (0, 0, 0), (1, 1, 1))


def _averaged(
    b: Any, input: Any, count: int, window: Any, divisor: int, counts_padding: bool
) -> Any:
    shape = tuple(b.output().shape)
    element = kernel_dtype(input.dtype)
    if 0 in shape:
        return b.full(shape, 0, element)
    planes = as_planes(b, input, count, element)
    sizes = (planes.shape[0], *(1,) * (3 - count), *shape[len(shape) - count :])
    made = b.temporary(sizes, element)
    b.kernel(
        "pooling.average", (planes,), (made,), window=window, divisor=divisor,
        counts_padding=counts_padding,
    )  # fmt: skip
    return b.reshape(made, shape)


class MeanOfWindows(Operator):
    """Means over windows of the last `count` dims."""

    count = 2
    out = False

    def lower(
        self, b: Any, input: Any, window: Any, divisor: int, counts_padding: bool, **_: Any
    ) -> Any:
        return _averaged(b, input, self.count, window, divisor, counts_padding)

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, window: Any, divisor: int, counts_padding: bool
    ) -> Any:
        return t.mean_of_windows_backward(
            grad, input_layout.shape, self.count, window, divisor, counts_padding
        )


class AvgPool(MeanOfWindows):
    """Means of windows of one size."""

    kernel = "avg_pool2d"  # torch's name of its kernel, and what it is there for
    dtypes: ClassVar[tuple[dtype, ...]] = (
        *_FLOATING, dtypes.int64, dtypes.float16, dtypes.bfloat16
    )  # fmt: skip

    def infer(
        self, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Inferred:  # fmt: skip
        name = f"avg_pool{self.count}d"
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        windows = pooled(name, input, self.count, kernel_size, stride, padding, 1, ceil_mode)
        if input.dtype not in self.dtypes:
            raise not_implemented(self.kernel, input.dtype)
        shape = (*input.shape[: input.ndim - self.count], *windows.sizes)
        attributes = {
            "window": windows.in_three(), "divisor": divisor_override or 0,
            "counts_padding": bool(count_include_pad),
        }  # fmt: skip
        return Inferred((contiguous(shape, input.dtype, input.device),), attributes)


@operator("avg_pool2d", function=False, aliases=("nn.functional.avg_pool2d",))
class AvgPool2d(AvgPool):
    """Means of windows over the last two dims."""

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(2, 3, 6, 5), 2), s(s.real(3, 7, 6), (3, 2), (2, 1), (1, 0), True),
            s(s.real(1, 2, 7, 8), 3, 2, 1, False, False), s(s.real(2, 4, 4), 2, None, 0, False,
                                                            True, 3),
        ]  # fmt: skip


@operator("avg_pool3d", function=False, aliases=("nn.functional.avg_pool3d",))
class AvgPool3d(AvgPool):
    """Means of windows over the last three dims."""

    count = 3
    kernel = "avg_pool3d_out_frame"
    dtypes: ClassVar[tuple[dtype, ...]] = (*_FLOATING, dtypes.int64)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 2, 4, 5, 4), 2), s(s.real(1, 3, 4, 4), 3, 2, 1, True, False)]


class AdaptiveAvgPool(MeanOfWindows):
    """Means of as many windows as asked for."""

    def infer(self, input: Tensor, output_size: Any) -> Inferred:
        name = f"adaptive_avg_pool{self.count}d"
        sizes = adaptive_sizes(name, input, self.count, output_size)
        if not input.dtype.is_floating_point:
            raise not_implemented(name if self.count == 2 else f"{name}_cpu", input.dtype)
        shape = (*input.shape[: input.ndim - self.count], *sizes)
        attributes = {"window": None, "divisor": 0, "counts_padding": False}
        return Inferred((contiguous(shape, input.dtype, input.device),), attributes)


@operator("adaptive_avg_pool2d", function=False)
class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """Means of as many windows as asked for over the last two dims."""

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 7, 5), (3, 2)), s(s.real(3, 4, 4), (2, 2))]


@operator("adaptive_avg_pool3d", function=False)
class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """Means of as many windows as asked for over the last three dims."""

    count = 3

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(1, 2, 5, 4, 3), (2, 3, 1))]


@operator("mean_of_windows_backward", function=False)
class MeanOfWindowsBackward(Operator):
    """Cotangents of means, shared out over their windows."""

    out = False

    def infer(
        self, grad: Tensor, shape: Sizes, count: int, window: Any, divisor: int,
        counts_padding: bool,
    ) -> Inferred:  # fmt: skip
        out = contiguous(tuple(shape), grad.dtype, grad.device)
        attributes = {
            "shape": tuple(shape), "count": count, "window": window, "divisor": divisor,
            "counts_padding": counts_padding,
        }  # fmt: skip
        return Inferred((out,), attributes)

    def lower(
        self, b: Any, grad: Any, shape: Any, count: int, window: Any, divisor: int,
        counts_padding: bool,
    ) -> Any:  # fmt: skip
        element = kernel_dtype(grad.dtype)
        if 0 in shape or 0 in grad.shape:
            return b.full(tuple(shape), 0, element)
        planes = prod(shape[: len(shape) - count])
        made = b.temporary((planes, *(1,) * (3 - count), *shape[len(shape) - count :]), element)
        b.kernel(
            "pooling.average_gradient", (as_planes(b, grad, count, element),), (made,),
            window=window, divisor=divisor, counts_padding=counts_padding,
        )  # fmt: skip
        return b.reshape(made, tuple(shape))

    def vjp(
        self, t: Any, grad: Any, grad_layout: Any, count: int, window: Any, divisor: int,
        counts_padding: bool,
    ) -> Any:  # fmt: skip
        return t.mean_of_windows(
            grad, grad_layout.shape[grad_layout.ndim - count :], count, window, divisor,
            counts_padding,
        )  # fmt: skip

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(2, 3, 2, 3), (2, 3, 4, 6), 2, _TWO, 0, True),
            s(s.real(3, 2, 2), (3, 4, 4), 2, _TWO, 3, False),
        ]


@operator("mean_of_windows", function=False)
class MeanOfGivenWindows(MeanOfWindows):
    """Means over windows that are known already: the second order of the pools."""

    def infer(
        self, input: Tensor, sizes: Sizes, count: int, window: Any, divisor: int,
        counts_padding: bool,
    ) -> Inferred:  # fmt: skip
        shape = (*input.shape[: input.ndim - count], *sizes)
        attributes = {
            "sizes": tuple(sizes), "count": count, "window": window, "divisor": divisor,
            "counts_padding": counts_padding,
        }  # fmt: skip
        return Inferred((contiguous(shape, input.dtype, input.device),), attributes)

    def lower(
        self, b: Any, input: Any, window: Any, divisor: int, counts_padding: bool, count: int,
        **_: Any,
    ) -> Any:  # fmt: skip
        return _averaged(b, input, count, window, divisor, counts_padding)

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, count: int, window: Any, divisor: int,
        counts_padding: bool,
    ) -> Any:  # fmt: skip
        return t.mean_of_windows_backward(
            grad, input_layout.shape, count, window, divisor, counts_padding
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(2, 3, 4, 6), (2, 3), 2, _TWO, 0, True),
            s(s.real(3, 4, 4), (2, 2), 2, _TWO, 3, False),
        ]
