"""torch.storage: the names by which programs reach storages.

Keeps     only where things are.
Touches   tensor.public.typed.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.tensor.public.typed.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

__getattr__ = module_getattr(__name__)
