"""torch.distributed.algorithms: what trainings of many processes are made of.

Keeps     names are found when used.
Touches   the folder beside it.
Not here  averaging over ranks: there is one."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_MODULES = ("_checkpoint", "join")

__getattr__, __dir__ = lazy_names(__name__, {}, _MODULES)
