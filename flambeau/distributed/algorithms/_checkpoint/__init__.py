"""torch.distributed.algorithms._checkpoint: modules whose inner values are computed twice.

Keeps     names are found when used.
Touches   the file beside it.
Not here  checkpointing of a function (utils/checkpoint.py)."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_MODULES = ("checkpoint_wrapper",)

__getattr__, __dir__ = lazy_names(__name__, {}, _MODULES)
