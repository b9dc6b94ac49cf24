"""torch.mps on a machine without Metal.

Keeps     questions are answered; seeds are ignored, as torch ignores them without a device.
Touches   flambeau.xpu, whose answers are the same.
Not here  a device."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.xpu import device_count, is_available, manual_seed

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]


def empty_cache() -> None:
    """Give cached memory back: refused, there is no device.

    >>> is_available(), device_count()
    (False, 0)
    """
    raise RuntimeError(
        "Cannot execute emptyCache() without MPS backend.\n"
        "  fix       ask torch.backends.mps.is_available() before"
    )


__getattr__ = module_getattr(__name__)
