"""Batches out of samples.

Keeps     torch's rules by type: tensors are stacked, numbers and arrays become tensors, strings
          stay, containers are taken apart.
Touches   tensor; NumPy only where samples are NumPy's.
Not here  fetching samples (fetch.py)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from flambeau.base import dtypes
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t

_MESSAGE = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_text_array(data: Any) -> bool:
    return data.dtype.kind in "SUaO"


def default_convert(data: Any) -> Any:
    """Arrays and numbers of NumPy as tensors, in containers too; the rest as it is."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind.__name__ == "ndarray" and _is_text_array(data):
            return data
        return creation.as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(each) for each in data))
    if isinstance(data, tuple):
        return [default_convert(each) for each in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(each) for each in data])
    return data


def _mapping(model: Any, values: dict[Any, Any]) -> Any:
    """Values in a mapping of the model's type, where that can be."""
    try:
        if isinstance(model, MutableMapping):
            made = copy.copy(model)
            made.update(values)
            return made
        return type(model)(values)
    except TypeError:
        return values


def _sequence(model: Any, values: list[Any]) -> Any:
    """Values in a sequence of the model's type, where that can be."""
    try:
        if isinstance(model, MutableSequence):
            made = copy.copy(model)
            for position, value in enumerate(values):
                made[position] = value
            return made
        return type(model)(values)
    except TypeError:
        return values


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """A batch by the rules of `collate_fn_map` (type or types -> function), containers by their
    elements."""
    element = batch[0]
    kind = type(element)
    table = collate_fn_map or {}
    if kind in table:
        return table[kind](batch, collate_fn_map=collate_fn_map)
    for each, function in table.items():
        if isinstance(element, each):
            return function(batch, collate_fn_map=collate_fn_map)
    if kind.__module__ == "numpy":
        return _collated_numpy(batch, collate_fn_map)

    def inner(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(element, Mapping):
        return _mapping(element, {key: inner([each[key] for each in batch]) for key in element})
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return kind(*(inner(samples) for samples in zip(*batch, strict=False)))
    if isinstance(element, Sequence):
        size = len(element)
        if not all(len(each) == size for each in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = list(zip(*batch, strict=False))
        values = [inner(samples) for samples in columns]
        return values if isinstance(element, tuple) else _sequence(element, values)
    if getattr(element, "is_sparse", False):
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    raise TypeError(_MESSAGE.format(kind))


def _collated_numpy(batch: Any, table: Any) -> Any:
    """NumPy's arrays and numbers; text is refused."""
    import numpy

    element = batch[0]
    if isinstance(element, numpy.ndarray):
        if _is_text_array(element):
            raise TypeError(_MESSAGE.format(element.dtype))
        return collate([creation.as_tensor(each) for each in batch], collate_fn_map=table)
    if isinstance(element, (numpy.bool_, numpy.number, numpy.object_)):
        return creation.as_tensor(numpy.array(batch))
    raise TypeError(_MESSAGE.format(type(element)))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Tensors stacked."""
    return t.stack(list(batch), 0)


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Python floats as float64."""
    return creation.tensor(list(batch), dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Python ints and bools."""
    return creation.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Strings as they are."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """A batch out of a list of samples.

    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
