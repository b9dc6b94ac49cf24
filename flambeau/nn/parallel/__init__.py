"""torch.nn.parallel: modules that would be run on several devices or by several processes.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_WHERE = {
    "DataParallel": "data_parallel",
    "DistributedDataParallel": "distributed",
    **dict.fromkeys(("gather", "parallel_apply", "replicate", "scatter"), "scatter_gather"),
}

__getattr__, __dir__ = lazy_names(__name__, _WHERE, ("distributed", "scatter_gather"))
