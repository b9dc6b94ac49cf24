"""torch.futures: values that may not be there yet.

Keeps     only where things are.
Touches   jit.futures.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.jit.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]

__getattr__ = module_getattr(__name__)
