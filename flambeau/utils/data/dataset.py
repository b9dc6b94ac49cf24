"""Datasets: samples by index, or one after the other.

Keeps     nothing is copied: a dataset holds what it was given.
Touches   draws.py (random_split).
Not here  batches (dataloader.py)."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from flambeau.utils.data import draws

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by index; subclasses give __getitem__ and, for samplers, __len__."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample], Iterable[Sample]):
    """Samples one after the other; subclasses give __iter__."""

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[Any]):
    """Rows of tensors of equal length.

    >>> import flambeau as torch
    >>> len(TensorDataset(torch.zeros(5, 2), torch.arange(5)))
    5
    """

    def __init__(self, *tensors: Any) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)  # type: ignore[no-any-return]


class StackDataset(Dataset[Any]):
    """Samples of several datasets at the same index, as a tuple or a dict."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        members = list(args or kwargs.values())
        self._length = len(members[0])
        if any(self._length != len(each) for each in members):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: each[index] for key, each in self.datasets.items()}
        return tuple([each[index] for each in self.datasets])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Samples at several indices; members that offer __getitems__ are asked once."""
        is_dict = isinstance(self.datasets, dict)
        members = self.datasets.values() if is_dict else self.datasets
        columns = []
        for each in members:
            if callable(getattr(each, "__getitems__", None)):
                column = each.__getitems__(indices)
                if len(column) != len(indices):
                    raise ValueError(
                        "Nested dataset's output size mismatch. "
                        f"Expected {len(indices)}, got {len(column)}"
                    )
            else:
                column = [each[index] for index in indices]
            columns.append(column)
        rows = zip(*columns, strict=True)
        if is_dict:
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return list(rows)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Several datasets one after the other."""

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Ends of the datasets."""
        return list(itertools.accumulate(len(each) for each in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        for each in self.datasets:
            if isinstance(each, IterableDataset):
                raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx = len(self) + idx
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]

    @property
    def cummulative_sizes(self) -> list[int]:
        """torch's old spelling of cumulative_sizes."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning,
            stacklevel=2,
        )  # fmt: skip
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Several iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def _members(self) -> Iterator[Any]:
        for each in self.datasets:
            if not isinstance(each, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield each

    def __iter__(self) -> Iterator[Any]:
        for each in self._members():
            yield from each

    def __len__(self) -> int:
        return sum(len(each) for each in self._members())


class Subset(Dataset[Sample]):
    """Some samples of a dataset, by index."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. When subclassing "
                "Subset and overriding __getitem__, you must also override __getitems__ to ensure "
                "DataLoader works correctly with your custom logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[each] for each in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Samples at several indices."""
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(  # type: ignore[no-any-return]
                [self.indices[each] for each in indices]
            )
        return [self.dataset[self.indices[each]] for each in indices]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Any]:
    """Subsets of given lengths, or of given shares, drawn without repetition."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for number, share in enumerate(lengths):
            if share < 0 or share > 1:
                raise ValueError(f"Fraction at index {number} is not between 0 and 1")
            sizes.append(math.floor(len(dataset) * share))
        for number in range(len(dataset) - sum(sizes)):
            sizes[number % len(sizes)] += 1
        for number, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {number} is 0. This might result in an empty "
                    "dataset.",
                    stacklevel=2,
                )
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = draws.permutation(int(sum(lengths)), generator)
    ends = itertools.accumulate(int(each) for each in lengths)
    return [
        Subset(dataset, indices[end - int(length) : end])
        for end, length in zip(ends, lengths, strict=True)
    ]
