"""torch.distributed._composable: an older path of fully_shard.

Keeps     the same functions.
Touches   fsdp.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_MODULES = ("fsdp",)

__getattr__, __dir__ = lazy_names(__name__, {}, _MODULES)
