"""torch.backends.mps: whether Metal is there: no.

Keeps     questions are answered for this machine.
Touches   nothing.
Not here  the threads that kernels run on (devices.cpu.team)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr


def is_available() -> bool:
    """Whether Metal can be used: no."""
    return False


def is_built() -> bool:
    """Whether Metal is built in: no."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13 or later, which only Metal asks."""
    return False


__getattr__ = module_getattr(__name__)
