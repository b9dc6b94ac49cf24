"""torch.distributed.rpc: calls of functions in other processes, of which there are none.

Keeps     is_available() says so, which is what libraries ask first.
Touches   nothing.
Not here  groups of processes (world.py)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether functions can be called in other processes: no.

    >>> is_available()
    False
    """
    return False


__getattr__ = module_getattr(__name__)
