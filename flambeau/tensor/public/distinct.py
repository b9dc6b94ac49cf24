"""unique and unique_consecutive.

Keeps     elements are sorted and compared natively; along a dim, slices are compared as Python
          tuples.
Touches   functions, indexing.keys, fills.
Not here  sort itself (ops/indexing)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.ops.define import not_implemented
from flambeau.tensor import creation, functions
from flambeau.tensor.indexing import keys as index_keys
from flambeau.tensor.public import composed, fills
from flambeau.tensor.tensor import Tensor


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False,
    return_counts: bool = False, dim: int | None = None,
) -> Any:  # fmt: skip
    """Distinct elements in order; with `return_inverse` where each went, and counts."""
    if dim is not None:
        return _slices(input, dim, return_inverse, return_counts, False)
    if input._layout.dtype.is_complex:
        raise not_implemented("unique", input._layout.dtype)
    flat = input.detach().reshape(-1)
    values, order = functions.sort(flat)
    found, inverse, counts = unique_consecutive(values, True, True)
    if return_inverse:
        places = fills.zeros_like(order)
        inverse = functions.scatter(places, 0, order, inverse).reshape(input._layout.shape)
    return _chosen(found, inverse, counts, return_inverse, return_counts)


def _chosen(found: Any, inverse: Any, counts: Any, wants_inverse: bool, wants_counts: bool) -> Any:
    results = [found]
    results += [inverse] if wants_inverse else []
    results += [counts] if wants_counts else []
    return results[0] if len(results) == 1 else tuple(results)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The first of each run of equal elements."""
    if dim is not None and input._layout.ndim != 1:
        return _slices(input, dim, return_inverse, return_counts, True)
    flat = input.detach().reshape(-1)
    size = flat._layout.n_elements
    if not size:
        none = fills.zeros(0, dtype=dtypes.int64)
        inverse = fills.zeros(input._layout.shape, dtype=dtypes.int64)
        return _chosen(functions.clone(flat), inverse, none, return_inverse, return_counts)
    differs = functions.ne(flat[1:], flat[:-1])
    starts = functions.cat([fills.ones(1, dtype=dtypes.bool_), differs])
    places = index_keys.nonzero(starts).reshape(-1)
    found = functions.index_select(flat, 0, places)
    counts: Any = None
    inverse = counts
    if return_inverse:
        inverse = (functions.cumsum(starts, 0) - 1).reshape(input._layout.shape)
    if return_counts:
        end = creation.tensor([size], dtype=dtypes.int64)
        counts = composed.diff(functions.cat([places, end]))
    return _chosen(found, inverse, counts, return_inverse, return_counts)


def _slices(
    input: Tensor, dim: int, wants_inverse: bool, wants_counts: bool, consecutive: bool
) -> Any:
    at = shapes.wrap_dim(dim, input._layout.ndim)
    size = input._layout.shape[at]
    rows = functions.movedim(input.detach(), at, 0).reshape(size, -1).tolist()
    keys = [tuple(row) for row in rows]
    first: list[int] = []  # place of the first slice of each kind
    kinds: list[int] = []  # of each slice
    if consecutive:
        for place, key in enumerate(keys):
            if place == 0 or key != keys[place - 1]:
                first.append(place)
            kinds.append(len(first) - 1)
    else:
        number = {key: n for n, key in enumerate(sorted(set(keys)))}
        kinds = [number[key] for key in keys]
        first = [keys.index(key) for key in number]
    counts = [0] * len(first)
    for kind in kinds:
        counts[kind] += 1
    found = functions.index_select(input, at, creation.tensor(first, dtype=dtypes.int64))
    return _chosen(
        found, creation.tensor(kinds, dtype=dtypes.int64),
        creation.tensor(counts, dtype=dtypes.int64), wants_inverse, wants_counts,
    )  # fmt: skip
