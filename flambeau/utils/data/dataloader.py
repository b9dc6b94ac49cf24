"""DataLoader: batches of a dataset, in this process or by worker processes.

Keeps     torch's draws: a base seed when iteration starts, the sampler's own at its first index.
Touches   sampler, fetch, workers.
Not here  collating (_utils/collate.py), the processes (workers.py)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from flambeau.base import dtypes
from flambeau.base.layout import Layout, contiguous
from flambeau.tensor.binding import view_of
from flambeau.utils.data import draws
from flambeau.utils.data._utils import fetch
from flambeau.utils.data._utils.collate import default_collate, default_convert
from flambeau.utils.data._utils.worker import get_worker_info
from flambeau.utils.data.dataset import Dataset, IterableDataset
from flambeau.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = [
    "BatchSampler", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "default_collate", "default_convert", "get_worker_info",
]  # fmt: skip

Batch = TypeVar("Batch", covariant=True)
_FIXED = (
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """The iterator over worker processes, found when it is asked for: it stands on this module."""
    if name == "_MultiProcessingDataLoaderIter":
        from flambeau.utils.data.workers import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _InfiniteConstantSampler(Sampler[Any]):
    """None for ever: the index of samples that have none."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield None


class DataLoader(Generic[Batch]):
    """Batches of `batch_size` samples, in order or shuffled.

    >>> import flambeau as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch[0].tolist() for batch in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    _is_ready = False

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
        collate_fn: Any = None, pin_memory: bool = False, drop_last: bool = False,
        timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        prefetch_factor = _checked_workers(
            num_workers, timeout, prefetch_factor, persistent_workers
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._is_iterable = isinstance(dataset, IterableDataset)
        shuffle = self._checked_order(shuffle, sampler, batch_sampler)
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._is_iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._length_seen: int | None = None
        self._iterator: Any = None
        self._is_ready = True
        self._check_workers()

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started; None for the system's way."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, given: Any) -> None:
        self._multiprocessing_context = _context(given, self.num_workers)

    def _checked_order(self, shuffle: Any, sampler: Any, batch_sampler: Any) -> bool:
        if self._is_iterable:
            for name, given, allowed in (
                ("shuffle", shuffle, (False, None)), ("sampler", sampler, (None,)),
                ("batch_sampler", batch_sampler, (None,)),
            ):  # fmt: skip
                if not any(given is each for each in allowed):
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but "
                        f"got {name}={given}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        return bool(shuffle)

    def _check_workers(self) -> None:
        available = len(os.sched_getaffinity(0))
        if self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {available}, which is "
                "smaller than what this DataLoader is going to create. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze, lower "
                "the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_ready and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Any:
        if self.num_workers == 0:
            return _single_process(self)
        from flambeau.utils.data.workers import _MultiProcessingDataLoaderIter

        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator.reset(self)
        return self._iterator

    def __len__(self) -> int:
        if not self._is_iterable:
            return len(self._index_sampler)
        length = self._length_seen = len(self.dataset)
        if self.batch_size is not None:
            if self.drop_last:
                return length // self.batch_size
            return -(-length // self.batch_size)
        return length

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than CPUs."""
        self._check_workers()


def _checked_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> int | None:
    """Refuse settings of workers that do not fit; returns how many batches each makes ahead."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


def _context(given: Any, num_workers: int) -> Any:
    if given is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(given, str):
        methods = multiprocessing.get_all_start_methods()
        if given not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={given}"
        )
    return given


class _BaseDataLoaderIter:
    """One pass over a loader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        self._yielded = 0
        # What was asked for before: list() asks for the length while it iterates.
        self._length_seen = loader._length_seen
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        self._sampler_iter = iter(loader._index_sampler)
        self._base_seed = draws.seed(loader.generator)

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        data = self.next_data()
        self._yielded += 1
        loader = self._loader
        length = self._length_seen
        if loader._is_iterable and length is not None and self._yielded > length:
            warnings.warn(
                f"Length of IterableDataset {loader.dataset} was reported to be "
                f"{length}(when accessing len(dataloader)), but {self._yielded} "
                "samples have been fetched. ",
                stacklevel=2,
            )
        return data

    def next_data(self) -> Any:
        """The next batch. Raises StopIteration."""
        raise NotImplementedError


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetcher = fetch.fetcher(
            loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def next_data(self) -> Any:
        return self._fetcher.fetch(next(self._sampler_iter))


class TensorIterator(_SingleProcessDataLoaderIter):
    """A pass over tensors in memory, in order or shuffled: every batch is a gather of rows, or a
    copy of a slice. Draws, and values, are those of a _SingleProcessDataLoaderIter."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        fetch.learn_bounds(loader.dataset)
        self._batches = self._of(loader.sampler)

    def _of(self, sampler: Any) -> Iterator[Any]:
        loader = self._loader
        dataset, size, count = loader.dataset, loader.batch_sampler.batch_size, len(loader.dataset)
        generator = sampler.generator if type(sampler) is RandomSampler else None
        order = None
        if type(sampler) is RandomSampler:
            generator = draws.seeded(draws.seed()) if generator is None else generator
            order = draws.permutation_tensor(count, generator)
        end = count - count % size if loader.drop_last else count
        whole = fetch.whole_batch
        for start in range(0, end, size):
            stop = min(start + size, count)
            if order is not None:
                yield whole(dataset, view_of(order, _vector(stop - start), start))
            else:
                yield [tensor[start:stop].clone() for tensor in dataset.tensors]
        if order is not None and sampler.generator is not None:
            draws.permutation(count, generator)  # as the sampler does when it is exhausted

    def next_data(self) -> Any:
        return next(self._batches)


# To the user there is one way to pass over a loader in this process
TensorIterator.__name__ = TensorIterator.__qualname__ = _SingleProcessDataLoaderIter.__name__


def _vector(count: int) -> Layout:
    return contiguous((count,), dtypes.int64)


def _single_process(loader: DataLoader[Any]) -> _BaseDataLoaderIter:
    sampler, batches = loader.sampler, loader.batch_sampler
    plain = (
        type(batches) is BatchSampler
        and batches.sampler is sampler
        and loader.timeout == 0
        and fetch.takes_whole_batches(loader.dataset, loader.collate_fn)
        and len(loader.dataset) > 0
    )
    if plain and type(sampler) is RandomSampler:
        plain = (
            not sampler.replacement
            and sampler._num_samples is None
            and sampler.data_source is loader.dataset
        )
    elif plain:
        plain = type(sampler) is SequentialSampler and sampler.data_source is loader.dataset
    return TensorIterator(loader) if plain else _SingleProcessDataLoaderIter(loader)
