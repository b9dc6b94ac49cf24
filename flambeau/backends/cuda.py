"""torch.backends.cuda: remembered settings of a device that is not there.

Keeps     matmul.allow_tf32 and its like can be set and read.
Touches   nothing.
Not here  the device (cuda)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.base.missing import module_getattr


def is_built() -> bool:
    """Whether CUDA is built in: no."""
    return False


class _Products:
    """Settings of matrix products."""

    allow_tf32: bool = False
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True
    allow_fp16_accumulation: bool = False
    fp32_precision: str = "none"


matmul = _Products()


class _Attention:
    """Which kernels of attention may be used."""

    flash: bool = True
    math: bool = True
    mem_efficient: bool = True
    cudnn: bool = True


def flash_sdp_enabled() -> bool:
    """Whether flash attention may be used."""
    return _Attention.flash


def math_sdp_enabled() -> bool:
    """Whether attention may be made of products."""
    return _Attention.math


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention may be used."""
    return _Attention.mem_efficient


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention may be used."""
    return _Attention.cudnn


def enable_flash_sdp(enabled: bool) -> None:
    """Remembered."""
    _Attention.flash = enabled


def enable_math_sdp(enabled: bool) -> None:
    """Remembered."""
    _Attention.math = enabled


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Remembered."""
    _Attention.mem_efficient = enabled


def enable_cudnn_sdp(enabled: bool) -> None:
    """Remembered."""
    _Attention.cudnn = enabled


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[Any]:  # fmt: skip
    """Choose kernels of attention for a while: here there is one, which gives the same bits."""
    yield {}


__getattr__ = module_getattr(__name__)
