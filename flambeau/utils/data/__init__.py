"""torch.utils.data: datasets, samplers, the loader.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_FILES: dict[str, tuple[str, ...]] = {
    "dataset": (
        "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
        "TensorDataset", "random_split",
    ),
    "sampler": (
        "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
        "WeightedRandomSampler",
    ),
    "dataloader": ("DataLoader",),
    "distributed": ("DistributedSampler",),
    "_utils.collate": ("default_collate", "default_convert"),
    "_utils.worker": ("get_worker_info",),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}
__all__ = sorted(_WHERE)
_MODULES = ("_utils", "dataloader", "dataset", "distributed", "sampler")


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = getattr(import_module(f"flambeau.utils.data.{_WHERE[name]}"), name)
    elif name in _MODULES:
        found = import_module(f"flambeau.utils.data.{name}")
    else:
        raise missing_name(__name__, name, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_WHERE, *_MODULES})
