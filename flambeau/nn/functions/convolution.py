"""Convolutions under torch's names: inputs without a batch, padding by name; unfold and fold.

Keeps     what is convolved is one operator, whatever the number of dims.
Touches   tensor.functions, windows.py.
Not here  the operator (ops.convolution)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.gradients.recording.drawn import shows
from flambeau.nn.functions.windows import out_size, overlap_added, windows
from flambeau.nn.modules.utils import repeated
from flambeau.tensor import functions as t


def _batched(name: str, input: Any, count: int) -> tuple[Any, bool]:
    """(input with a batch, whether it came without)."""
    if input.dim() not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {list(input.shape)}"
        )
    is_single = input.dim() == count + 1
    return (input.unsqueeze(0) if is_single else input), is_single


def _conv(
    count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    groups: int,
) -> Any:  # fmt: skip
    input, is_single = _batched(f"conv{count}d", input, count)
    if isinstance(padding, str):
        input, padding = _padded_by_name(input, weight, padding, stride, dilation, count)
    steps = repeated(stride, count)
    result = t.convolution(
        input, weight, bias, steps, padding, dilation, False, (0,) * count, groups
    )
    return result.squeeze(0) if is_single else result


def _padded_by_name(
    input: Any, weight: Any, padding: str, stride: Any, dilation: Any, count: int
) -> tuple[Any, tuple[int, ...]]:
    """(input, padding) for "same" and "valid"; what is more on one side is padded first."""
    if padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if padding == "valid":
        return input, (0,) * count
    if input.dim() != weight.dim():
        raise RuntimeError(
            f"Expected {weight.dim()}-dimensional input for {weight.dim()}-dimensional weight"
            f"{list(weight.shape)}, but got {input.dim()}-dimensional input of size "
            f"{list(input.shape)} instead"
        )
    if any(each != 1 for each in repeated(stride, count)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    steps = repeated(dilation, count)
    totals = [far * (k - 1) for far, k in zip(steps, weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        sides = [side for total in reversed(totals) for side in (0, total % 2)]
        input = t.constant_pad_nd(input, tuple(sides), 0.0)
    return input, tuple(total // 2 for total in totals)


def _padded(input: Any, padding: Any) -> Any:
    sides = [each for side in reversed(padding) for each in (side, side)]
    return t.constant_pad_nd(input, tuple(sides), 0.0) if any(sides) else input


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    tensor([[[2., 2., 2.]]])
    """
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution of (N, C, H, W) or (C, H, W)."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Any:  # fmt: skip
    input, is_single = _batched(f"conv_transpose{count}d", input, count)
    steps, fars = repeated(stride, count), repeated(dilation, count)
    extra = repeated(output_padding, count)
    if any(
        more >= step and more >= far for more, step, far in zip(extra, steps, fars, strict=True)
    ):
        raise RuntimeError(_too_much_output_padding(extra, steps, fars))
    result = t.convolution(input, weight, bias, stride, padding, dilation, True, extra, groups)
    return result.squeeze(0) if is_single else result


def _too_much_output_padding(extra: Any, steps: Any, fars: Any) -> str:
    names = ("depth", "height", "width")[-max(2, len(extra)) :]
    text = "output padding must be smaller than either stride or dilation, but got"
    for what, given in (("output_padding", extra), ("stride", steps), ("dilation", fars)):
        lead = (0 if what == "output_padding" else 1,) * (len(names) - len(given))
        for where, number in zip(names, (*lead, *given), strict=True):
            text += f" {what}_{where}: {number}"
    return text


def conv_transpose1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The transpose of conv1d."""
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The transpose of conv2d."""
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The transpose of conv3d."""
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def _check_windows(**named: Any) -> None:
    """Refuse windows of no size, and steps that lead nowhere."""
    for name, numbers in named.items():
        word, least = name.replace("_", " "), 0 if name == "padding" else 1
        if min(numbers) < least:
            short = {"kernel_size": "kernel", "padding": "pad"}.get(name, name)
            rule = "non-negative" if name == "padding" else "greater than zero"
            raise RuntimeError(
                f"{word} should be {rule}, but got {short}_height: {numbers[0]} {short}_width: "
                f"{numbers[1]}"
            )


@shows("Im2ColBackward0")
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Windows of (N, C, H, W) as columns: (N, C * places, windows).

    >>> import flambeau as torch
    >>> torch.nn.functional.unfold(torch.arange(9.0).reshape(1, 1, 3, 3), 2)[0, 0]
    tensor([0., 1., 3., 4.])
    """
    kernel, far, pad, step = (
        repeated(each, 2) for each in (kernel_size, dilation, padding, stride)
    )
    if input.dim() < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, "
            f"{input.dim() - 1}], but got {input.dim()})"
        )
    _check_windows(kernel_size=kernel, dilation=far, padding=pad, stride=step)
    is_single = input.dim() == 3
    if input.dim() > 4 or 0 in input.shape[input.dim() - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    spatial = tuple(input.shape[-2:])
    input = _padded(input.unsqueeze(0) if is_single else input, pad)
    sizes = tuple(map(out_size, input.shape[2:], kernel, step, far))
    if min(sizes) < 1:
        raise RuntimeError(
            f"Given input with spatial size {spatial}, kernel_size={kernel}, dilation={far}, "
            f"padding={pad}, calculated shape of the array of sliding blocks as {sizes}, but its "
            "components must be at least one."
        )
    view = windows(input, kernel, step, far, sizes).permute(0, 1, 4, 5, 2, 3)
    columns = view.reshape(input.shape[0], input.shape[1] * math.prod(kernel), math.prod(sizes))
    return columns.squeeze(0) if is_single else columns


@shows("Col2ImBackward0")
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Any:  # fmt: skip
    """Columns of windows added up into (N, C, H, W): the transpose of unfold."""
    size, kernel, far, pad, step = (
        repeated(each, 2) for each in (output_size, kernel_size, dilation, padding, stride)
    )
    _check_windows(kernel_size=kernel, dilation=far, padding=pad, stride=step)
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
