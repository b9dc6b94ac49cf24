"""torch.utils.data: datasets, samplers, the loader.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__, _WHERE, _MODULES)
