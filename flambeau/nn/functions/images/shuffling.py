"""Channels of images rearranged: to pixels and back, and among themselves.

Keeps     a rearrangement is a view of a view and one copy.
Touches   nothing but the tensor's own methods.
Not here  the layers (modules/pixelshuffle.py, channelshuffle.py), resizing (resizing.py)."""

from __future__ import annotations

from typing import Any

from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t


def _check(name: str, input: Any, what: str, factor: int) -> None:
    """Refuse what is no image, and a factor that cannot be one."""
    if input.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {what}, but got {factor}")


@shows("PixelShuffleBackward0")
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """(..., C r^2, H, W) as (..., C, H r, W r)."""
    factor = upscale_factor
    _check("pixel_shuffle", input, "upscale_factor", factor)
    *lead, channels, height, width = input.shape
    if channels % factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {factor**2}"
        )
    out = channels // factor**2
    n = len(lead)
    parts = input.reshape(*lead, out, factor, factor, height, width)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    copied = t.contiguous_copy(parts.permute(order))
    return copied.reshape(*lead, out, height * factor, width * factor)


@shows("PixelUnshuffleBackward0")
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """(..., C, H r, W r) as (..., C r^2, H, W)."""
    factor = downscale_factor
    _check("pixel_unshuffle", input, "downscale_factor", factor)
    *lead, channels, height, width = input.shape
    for word, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but "
                f"input.size({dim})={size} is not divisible by {factor}"
            )
    n = len(lead)
    parts = input.reshape(*lead, channels, height // factor, factor, width // factor, factor)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return t.contiguous_copy(parts.permute(order)).reshape(
        *lead, channels * factor**2, height // factor, width // factor
    )


@shows("ChannelShuffleBackward0")
def channel_shuffle(input: Any, groups: int) -> Any:
    """Channels of all groups in turn."""
    if input.dim() <= 2:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    batch, channels = input.shape[:2]
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} "
            "groups."
        )
    parts = input.reshape(batch, groups, channels // groups, *input.shape[2:])
    return parts.transpose(1, 2).reshape(input.shape)
