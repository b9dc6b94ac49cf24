"""torch.backends.mkldnn: oneDNN, which is not used here.

Keeps     settings can be made and read.
Touches   nothing.
Not here  convolutions (ops.convolution)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.base.missing import module_getattr

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True


def is_available() -> bool:
    """Whether oneDNN can be used: no."""
    return False


@contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:  # fmt: skip
    """Settings for a while, which change nothing."""
    yield


__getattr__ = module_getattr(__name__)
