"""torch.backends.mkl: whether MKL is there: no.

Keeps     questions are answered for this machine.
Touches   nothing.
Not here  the threads that kernels run on (devices.cpu.team)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr


def is_available() -> bool:
    """Whether MKL can be used: no."""
    return False


__getattr__ = module_getattr(__name__)
