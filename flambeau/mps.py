"""torch.mps on a machine without Metal.

Keeps     questions are answered; seeds are ignored, as torch ignores them without a device.
Touches   nothing.
Not here  a device."""

from __future__ import annotations

from flambeau.base.missing import module_getattr


def is_available() -> bool:
    """Whether a device can be used: no.

    >>> is_available(), device_count()
    (False, 0)
    """
    return False


def device_count() -> int:
    """Number of devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds of the device's generator: there is none."""
    int(seed)


def empty_cache() -> None:
    """Give cached memory back: there is none."""


__getattr__ = module_getattr(__name__)
