"""torch.nn.attention: which kernels of attention may be used.

Keeps     the choice can be made and read back in torch.backends.cuda; no bit of a result depends
          on it, because there is one kernel.
Touches   backends.cuda's settings.
Not here  attention itself (nn.functional.scaled_dot_product_attention)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from flambeau.backends import cuda
from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """torch's names of kernels of attention.

    >>> SDPBackend.MATH
    <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_SETTINGS = {
    SDPBackend.MATH: (cuda.math_sdp_enabled, cuda.enable_math_sdp),
    SDPBackend.FLASH_ATTENTION: (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
    SDPBackend.EFFICIENT_ATTENTION: (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
    SDPBackend.CUDNN_ATTENTION: (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
}


@contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[str, object]]:
    """Allow these kernels alone until the block ends: here there is one, which is used anyway."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            helped(
                "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
                f"{type(backends).__name__}",
                given=repr(backends),
                fix="torch.nn.attention.SDPBackend.MATH, or a list of such",
            )
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    before = {kernel: enabled() for kernel, (enabled, _) in _SETTINGS.items()}
    try:
        for kernel, (_, enable) in _SETTINGS.items():
            enable(kernel in chosen)
        yield {}
    finally:
        for kernel, (_, enable) in _SETTINGS.items():
            enable(before[kernel])


def __getattr__(name: str) -> object:
    if name != "flex_attention":
        return _missing(name)
    from importlib import import_module

    return import_module(f"{__name__}.flex_attention")


_missing = module_getattr(__name__, names=__all__)
