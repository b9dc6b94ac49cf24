"""Convolutions as matrix products over windows.

Keeps     every output is one chain of products over channels and places of the kernel, in that
          order, whatever the batch.
Touches   tensor.functions, windows.py.
Not here  the products (ops.contraction)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.base.errors import helped
from flambeau.nn.functions.windows import out_size, overlap_added, windows
from flambeau.nn.modules.sizes import repeated
from flambeau.tensor import functions as t


def _check(name: str, input: Any, weight: Any, count: int, groups: int, transposed: bool) -> None:
    if weight.dim() != count + 2 or input.dim() not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {list(input.shape)}"
        )
    if input.dtype is not weight.dtype:
        names = {"float32": "float", "float64": "double", "float16": "c10::Half"}
        given, wanted = (names.get(x.dtype.name, x.dtype.name) for x in (input, weight))
        raise RuntimeError(f"Input type ({given}) and bias type ({wanted}) should be the same")
    channels = input.shape[-count - 1]
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != expected:
        kind = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(
            helped(
                f"Given {kind}, weight of size {list(weight.shape)}, expected "
                f"input{list(input.shape)} to have {expected} channels, but got {channels} "
                "channels instead",
                fix=f"a layer with in_channels={channels}, or an input of {expected} channels",
            )
        )


def _conv(
    name: str, count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> Any:  # fmt: skip
    _check(name, input, weight, count, groups, False)
    stride, dilation = repeated(stride, count), repeated(dilation, count)
    kernel = tuple(weight.shape[2:])
    is_single = input.dim() == count + 1
    if is_single:
        input = input.unsqueeze(0)
    input = _padded(input, padding, kernel, stride, dilation, count)
    sizes = tuple(map(out_size, input.shape[2:], kernel, stride, dilation))
    if any(size <= 0 for size in sizes):
        reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, input.shape[2:]))}). "
            f"Kernel size: ({' x '.join(map(str, reach))}). Kernel size can't be greater than "
            "actual input size"
        )
    batch, outputs, places = input.shape[0], weight.shape[0], math.prod(sizes)
    per_group = weight.shape[1] * math.prod(kernel)
    view = windows(input, kernel, stride, dilation, sizes)  # (N, C, *sizes, *kernel)
    n = view.dim()
    order = (0, 1, *range(2 + count, n), *range(2, 2 + count))
    columns = view.permute(order).reshape(batch, groups, per_group, places)
    rows = weight.reshape(1, groups, outputs // groups, per_group)
    result = t.matmul(rows, columns).reshape(batch, outputs, *sizes)
    if bias is not None:
        result = result + bias.reshape(1, outputs, *(1,) * count)
    return result.squeeze(0) if is_single else result


def _padded(
    input: Any, padding: Any, kernel: Any, stride: Any, dilation: Any, count: int
) -> Any:
    if isinstance(padding, str):
        if padding == "valid":
            return input
        if padding != "same":
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if any(each != 1 for each in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        sides = []
        for step, size in reversed(list(zip(dilation, kernel, strict=True))):
            total = step * (size - 1)
            sides += [total // 2, total - total // 2]
    else:
        given = repeated(padding, count)
        if any(each < 0 for each in given):
            raise RuntimeError("negative padding is not supported")
        sides = [each for side in reversed(given) for each in (side, side)]
    return t.constant_pad_nd(input, tuple(sides), 0.0) if any(sides) else input


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution of (N, C, L) or (C, L)."""
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution of (N, C, H, W) or (C, H, W)."""
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    name: str, count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Any:  # fmt: skip
    _check(name, input, weight, count, groups, True)
    stride, dilation = repeated(stride, count), repeated(dilation, count)
    padding, extra = repeated(padding, count), repeated(output_padding, count)
    for more, step, far in zip(extra, stride, dilation, strict=True):
        if more >= step and more >= far:
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding: {list(extra)} stride: {list(stride)} dilation: {list(dilation)}"
            )
    kernel = tuple(weight.shape[2:])
    is_single = input.dim() == count + 1
    if is_single:
        input = input.unsqueeze(0)
    batch, channels, sizes = input.shape[0], input.shape[1], tuple(input.shape[2:])
    outputs = weight.shape[1] * groups
    rows = weight.reshape(1, groups, channels // groups, -1).transpose(2, 3)
    columns = input.reshape(batch, groups, channels // groups, math.prod(sizes))
    parts = t.matmul(rows, columns).reshape(batch, outputs, *kernel, *sizes)
    order = (0, 1, *range(2 + count, 2 + 2 * count), *range(2, 2 + count))
    # What the windows cover, padding included; output padding adds places that none may cover.
    spatial = tuple(
        (size - 1) * step + far * (k - 1) + 1 + more
        for size, step, far, k, more in zip(sizes, stride, dilation, kernel, extra, strict=True)
    )
    result = overlap_added(parts.permute(order), spatial, stride, dilation)
    cut: list[int] = []
    for side in reversed(padding):
        cut += [-side, -side]
    if any(cut):
        result = t.constant_pad_nd(result, tuple(cut), 0.0)
    if bias is not None:
        result = result + bias.reshape(1, outputs, *(1,) * count)
    return result.squeeze(0) if is_single else result


def conv_transpose1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The transpose of conv1d."""
    return _conv_transpose(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The transpose of conv2d."""
    return _conv_transpose(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


def conv_transpose3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The transpose of conv3d."""
    return _conv_transpose(
        "conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Windows of (N, C, H, W) as columns: (N, C * places, windows)."""
    kernel, far, step = (repeated(each, 2) for each in (kernel_size, dilation, stride))
    is_single = input.dim() == 3
    if input.dim() not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    input = _padded(input.unsqueeze(0) if is_single else input, padding, kernel, step, far, 2)
    sizes = tuple(map(out_size, input.shape[2:], kernel, step, far))
    view = windows(input, kernel, step, far, sizes).permute(0, 1, 4, 5, 2, 3)
    columns = view.reshape(input.shape[0], input.shape[1] * math.prod(kernel), math.prod(sizes))
    return columns.squeeze(0) if is_single else columns


def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Any:  # fmt: skip
    """Columns of windows added up into (N, C, H, W): the transpose of unfold."""
    size, kernel, far, pad, step = (
        repeated(each, 2) for each in (output_size, kernel_size, dilation, padding, stride)
    )
    is_single = input.dim() == 2
    if input.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )
    input = input.unsqueeze(0) if is_single else input
    spatial = tuple(s + 2 * p for s, p in zip(size, pad, strict=True))
    sizes = tuple(map(out_size, spatial, kernel, step, far))
    if input.shape[1] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={input.shape[1]} and kernel_size=({kernel[0]}, {kernel[1]})."
        )
    if input.shape[2] != math.prod(sizes):
        raise RuntimeError(
            f"Given output_size=({size[0]}, {size[1]}), kernel_size=({kernel[0]}, {kernel[1]}), "
            f"dilation=({far[0]}, {far[1]}), padding=({pad[0]}, {pad[1]}), stride=({step[0]}, "
            f"{step[1]}), expected size of input's dimension 2 to match the calculated number of "
            f"sliding blocks {sizes[0]} * {sizes[1]} = {math.prod(sizes)}, but got "
            f"input.size(2)={input.shape[2]}."
        )
    channels = input.shape[1] // math.prod(kernel)
    parts = input.reshape(input.shape[0], channels, *kernel, *sizes).permute(0, 1, 4, 5, 2, 3)
    result = overlap_added(parts, spatial, step, far)
    if any(pad):
        result = t.constant_pad_nd(result, (-pad[1], -pad[1], -pad[0], -pad[0]), 0.0)
    return result.squeeze(0) if is_single else result
