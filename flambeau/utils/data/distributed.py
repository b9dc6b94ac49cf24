"""DistributedSampler: each of several replicas gets its share of the indices.

Keeps     the same permutation on every replica, seeded by seed + epoch.
Touches   draws.py.
Not here  processes (distributed)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from flambeau.utils.data import draws
from flambeau.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index, from `rank` on."""

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
        shuffle: bool = True, seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group."
            )
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(dataset)
        if drop_last and count % num_replicas != 0:
            self.num_samples = math.ceil((count - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            indices = draws.permutation(count, draws.seeded(self.seed + self.epoch))
        else:
            indices = list(range(count))
        if self.drop_last:
            indices = indices[: self.total_size]
        else:
            missing = self.total_size - len(indices)
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle differently in another epoch."""
        self.epoch = epoch
