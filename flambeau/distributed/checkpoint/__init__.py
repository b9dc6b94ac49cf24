"""torch.distributed.checkpoint: states of trainings of many processes, of which there is one.

Keeps     names are found when used.
Touches   the files beside it.
Not here  files of several ranks: torch.save and torch.load have one's."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_MODULES = ("hf_storage", "state_dict")

__getattr__, __dir__ = lazy_names(__name__, {}, _MODULES)
