"""Convolution layers, plain and transposed.

Keeps     torch's initial values; padding modes other than zeros pad first.
Touches   nn.functional, nn.init.
Not here  the products (functions/convolution.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.utils import repeated, reversed_twice
from flambeau.nn.parameter import undrawn

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    n_spatial = 0
    is_transposed = False
    __constants__ = [
        "dilation", "groups", "in_channels", "kernel_size", "out_channels", "output_padding",
        "padding", "padding_mode", "stride",
    ]  # fmt: skip

    def _setup(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, output_padding: Any, groups: int, bias: bool, padding_mode: str,
        device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        count = self.n_spatial
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        self.stride = repeated(stride, count)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
                )
            if padding == "same" and any(each != 1 for each in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            modes = ", ".join(repr(mode) for mode in _MODES)
            raise ValueError(
                f"padding_mode must be one of {{{modes}}}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = repeated(kernel_size, count)
        self.padding = padding if isinstance(padding, str) else repeated(padding, count)
        self.dilation = repeated(dilation, count)
        self.transposed = self.is_transposed
        self.output_padding = repeated(output_padding, count)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        ends = (in_channels, out_channels // groups)
        if not self.is_transposed:
            ends = (out_channels, in_channels // groups)
        self.weight = undrawn((*ends, *self.kernel_size), device, dtype)
        self.register_parameter("bias", undrawn(out_channels, device, dtype) if bias else None)
        self.reset_parameters()

    def _sides(self) -> list[int]:
        if not isinstance(self.padding, str):
            return reversed_twice(self.padding)
        sides = [0, 0] * self.n_spatial
        if self.padding == "same":
            for dim, (step, size) in enumerate(zip(self.dilation, self.kernel_size, strict=True)):
                total = step * (size - 1)
                at = 2 * (self.n_spatial - 1 - dim)
                sides[at : at + 2] = [total // 2, total - total // 2]
        return sides

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self.n_spatial, (1,) * self.n_spatial
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != zeros:
            text += f", padding={self.padding}"
        if self.dilation != ones:
            text += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text + (
            f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else ""
        )


class _PlainConv(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        function = (F.conv1d, F.conv2d, F.conv3d)[self.n_spatial - 1]
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return function(
                padded, weight, bias, self.stride, (0,) * self.n_spatial, self.dilation,
                self.groups,
            )  # fmt: skip
        return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_PlainConv):
    """Convolution of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.Conv1d(2, 3, 5)(torch.zeros(1, 2, 9)).shape
    torch.Size([1, 3, 5])
    """

    n_spatial = 1


class Conv2d(_PlainConv):
    """Convolution of (N, C, H, W) or (C, H, W)."""

    n_spatial = 2


class Conv3d(_PlainConv):
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""

    n_spatial = 3


class _TransposedConv(_ConvNd):
    is_transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__()
        self._setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Any, output_size: Any) -> tuple[int, ...]:
        if output_size is None:
            return self.output_padding
        count = self.n_spatial
        n_plain = input.dim() - count
        if len(output_size) == n_plain + count:
            output_size = output_size[n_plain:]
        if len(output_size) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {input.dim()}D input, output_size must have {count} "
                f"or {n_plain + count} elements (got {len(output_size)})"
            )
        smallest = [
            (input.shape[n_plain + d] - 1) * self.stride[d] - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(count)
        ]  # fmt: skip
        largest = [low + step - 1 for low, step in zip(smallest, self.stride, strict=True)]
        for wanted, low, high in zip(output_size, smallest, largest, strict=True):
            if not low <= wanted <= high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from "
                    f"{smallest} to {largest} (for an input of {input.size()[2:]})"
                )
        return tuple(w - low for w, low in zip(output_size, smallest, strict=True))

    def forward(self, input: Any, output_size: Any = None) -> Any:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.n_spatial - 1]
        return function(
            input, self.weight, self.bias, self.stride, self.padding,
            self._output_padding(input, output_size), self.groups, self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_TransposedConv):
    """The gradient of Conv1d as a layer of its own."""

    n_spatial = 1


class ConvTranspose2d(_TransposedConv):
    """The gradient of Conv2d as a layer of its own."""

    n_spatial = 2


class ConvTranspose3d(_TransposedConv):
    """The gradient of Conv3d as a layer of its own."""

    n_spatial = 3
