"""Samples of a batch fetched and collated.

Keeps     __getitems__ is used where a dataset offers it; in-memory tensors give whole batches.
Touches   collate.py.
Not here  which indices (sampler.py), processes (worker.py)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from flambeau.base.devices import CPU
from flambeau.engine import callsite, stream
from flambeau.engine.signature import Signature
from flambeau.gradients import modes
from flambeau.tensor import Tensor, creation, index_bounds
from flambeau.tensor.binding import binding
from flambeau.tensor.tensor import new_tensor
from flambeau.utils.data._utils.collate import default_collate
from flambeau.utils.data.dataset import IterableDataset, TensorDataset


class MapFetcher:
    """Samples by index."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.is_whole = auto_collation and takes_whole_batches(dataset, collate_fn)

    def fetch(self, index: Any) -> Any:
        """The batch of a list of indices, or the sample of one."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.is_whole and isinstance(index, list):
            length = len(self.dataset)
            if index and all(type(each) is int and 0 <= each < length for each in index):
                return whole_batch(self.dataset, creation.tensor(index))
        if getattr(self.dataset, "__getitems__", None):
            data = self.dataset.__getitems__(index)
        else:
            data = [self.dataset[each] for each in index]
        return self.collate_fn(data)


class IterableFetcher:
    """Samples one after the other."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.iterator: Iterator[Any] = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next batch of len(index) samples, or the next sample. Raises StopIteration."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.iterator))
        data = list(itertools.islice(self.iterator, len(index)))
        if len(data) < len(index):
            self.ended = True
            if not data or self.drop_last:
                raise StopIteration
        return self.collate_fn(data)


def fetcher(dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
    """The fetcher for a dataset."""
    if isinstance(dataset, IterableDataset):
        return IterableFetcher(dataset, auto_collation, collate_fn, drop_last)
    return MapFetcher(dataset, auto_collation, collate_fn)


def takes_whole_batches(dataset: Any, collate_fn: Any) -> bool:
    """Whether a batch is rows of plain tensors, gathered at once: the values are those of
    indexing sample by sample and stacking."""
    return (
        type(dataset) is TensorDataset
        and collate_fn is default_collate
        and all(
            type(each) is Tensor
            and each._layout.ndim > 0
            and each._layout.device is CPU
            and not each.requires_grad
            for each in dataset.tensors
        )
    )


def whole_batch(dataset: Any, index: Any) -> list[Any]:
    """Rows of all tensors at an index tensor whose values are known to be in range."""
    current = stream.LOCAL.stream
    site = callsite.site()
    made = []
    for each in dataset.tensors:
        signature = _gather(each, index)
        (storage,) = stream.record(current, signature, (each, index), (), site)
        rows = new_tensor(storage, signature.fresh_outputs[0])
        if rows._layout.dtype.category == 1:
            bounds = index_bounds.known(each)
            if bounds is not None:
                index_bounds.know(rows, *bounds)
        made.append(rows)
    if current.inference:
        for each in made:
            modes.mark_inference(each)
    return made


def learn_bounds(dataset: Any) -> None:
    """Look at integers once, so that batches of labels need not be looked at one by one."""
    for each in dataset.tensors:
        if each._layout.dtype.category == 1 and index_bounds.known(each) is None:
            index_bounds.first_outside(each, -(2**62), 2**62)


_GATHERS: dict[tuple[Any, Any], Signature] = {}


def _gather(source: Tensor, index: Tensor) -> Signature:
    """The signature of index_select(source, 0, index)."""
    key = (source._layout, index._layout)
    found = _GATHERS.get(key)
    if found is None:
        if len(_GATHERS) > 256:
            _GATHERS.clear()
        bound = binding("index_select")
        found = _GATHERS[key] = bound.signature(bound.taken_apart([source, 0, index]))
    return found


_MapDatasetFetcher = MapFetcher
_IterableDatasetFetcher = IterableFetcher
