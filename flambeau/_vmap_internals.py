"""torch._vmap_internals: the path by which older programs import vmap.

Keeps     only where things are.
Touches   func.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.func.batches import vmap

__all__ = ["_vmap", "vmap"]

_vmap = vmap

__getattr__ = module_getattr(__name__)
