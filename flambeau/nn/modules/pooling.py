"""Pools as layers.

Keeps     torch's settings, defaults and repr.
Touches   nn.functional.
Not here  the windows (functions/pooling.py)."""

from __future__ import annotations

from typing import Any

from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.utils import repeated


class _Pool(Module):
    """Windows of a size, a stride and a padding over the last dims."""

    n_spatial = 0

    def _named(self, kind: str) -> Any:
        """The function of this kind for as many dims."""
        return getattr(F, f"{kind}{self.n_spatial}d")

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_Pool):
    __constants__ = [
        "ceil_mode", "dilation", "kernel_size", "padding", "return_indices", "stride",
    ]  # fmt: skip

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._named("max_pool")(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPool):
    """The largest of windows of (N, C, L)."""

    n_spatial = 1


class MaxPool2d(_MaxPool):
    """The largest of windows of (N, C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    n_spatial = 2


class MaxPool3d(_MaxPool):
    """The largest of windows of (N, C, D, H, W)."""

    n_spatial = 3


class AvgPool1d(_Pool):
    """Means of windows of (N, C, L)."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = repeated(kernel_size, 1)
        self.stride = repeated(stride if stride is not None else kernel_size, 1)
        self.padding = repeated(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class _AvgPoolNd(_Pool):
    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return self._named("avg_pool")(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolNd):
    """Means of windows of (N, C, H, W)."""

    n_spatial = 2


class AvgPool3d(_AvgPoolNd):
    """Means of windows of (N, C, D, H, W)."""

    n_spatial = 3


class _AdaptiveAvgPool(_Pool):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return self._named("adaptive_avg_pool")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of as many windows as asked for."""

    n_spatial = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of as many windows as asked for.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool2d(1)(torch.ones(2, 3, 5, 7)).shape
    torch.Size([2, 3, 1, 1])
    """

    n_spatial = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of as many windows as asked for."""

    n_spatial = 3


class _AdaptiveMaxPool(_AdaptiveAvgPool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return self._named("adaptive_max_pool")(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest of as many windows as asked for."""

    n_spatial = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest of as many windows as asked for."""

    n_spatial = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest of as many windows as asked for."""

    n_spatial = 3


class _MaxUnpool(_Pool):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        count = self.n_spatial
        self.kernel_size = repeated(kernel_size, count)
        self.stride = repeated(stride if stride is not None else kernel_size, count)
        self.padding = repeated(padding, count)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return self._named("max_unpool")(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpool):
    """Values put back where MaxPool1d found them."""

    n_spatial = 1


class MaxUnpool2d(_MaxUnpool):
    """Values put back where MaxPool2d found them."""

    n_spatial = 2


class MaxUnpool3d(_MaxUnpool):
    """Values put back where MaxPool3d found them."""

    n_spatial = 3


class _LPPool(_Pool):
    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        pool = self._named("lp_pool")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Norms of windows of (N, C, L)."""

    n_spatial = 1


class LPPool2d(_LPPool):
    """Norms of windows of (N, C, H, W)."""

    n_spatial = 2


class LPPool3d(_LPPool):
    """Norms of windows of (N, C, D, H, W)."""

    n_spatial = 3


class _FractionalMaxPool(_Pool):
    __constants__ = ["kernel_size", "output_ratio", "output_size", "return_indices"]

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        count = self.n_spatial
        self.kernel_size = repeated(kernel_size, count)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else repeated(output_size, count)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, count)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling "
                "ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < each < 1 for each in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        return self._named("fractional_max_pool")(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return ""


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest of windows of (N, C, H, W) at places that are drawn."""

    n_spatial = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest of windows of (N, C, D, H, W) at places that are drawn."""

    n_spatial = 3
