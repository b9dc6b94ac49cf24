"""unique and unique_consecutive, and what undoes them: repeat_interleave.

Keeps     elements are sorted and compared natively; along a dim, slices are compared as Python
          tuples.
Touches   functions, indexing.keys, fills.
Not here  sort itself (ops/indexing)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.errors import helped
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
    given = input._layout.shape
    if not given:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    others = [size for place, size in enumerate(given) if place != at]
    if 0 in others:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    if input._layout.dtype.is_complex:
        raise not_implemented("unique_dim", input._layout.dtype)
    slices = functions.movedim(input, at, 0)
    rows = slices.detach().reshape(given[at], prod(others)).tolist()
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
        places = {key: place for place, key in reversed(list(enumerate(keys)))}
        first = [places[key] for key in number]
    counts = [0] * len(first)
    for kind in kinds:
        counts[kind] += 1
    found = functions.index_select(slices, 0, creation.tensor(first, dtype=dtypes.int64))
    return _chosen(
        functions.movedim(found, 0, at), creation.tensor(kinds, dtype=dtypes.int64),
        creation.tensor(counts, dtype=dtypes.int64), wants_inverse, wants_counts,
    )  # fmt: skip


def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element repeated, one after the other; `output_size` is checked against the result."""
    if repeats is None:
        counts = _repeats(input)
        if input._layout.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        _check_total(sum(counts), output_size)
        flat = [place for place, count in enumerate(counts) for _ in range(count)]
        return creation.tensor(flat, dtype=input._layout.dtype)
    if not isinstance(repeats, (int, Tensor)):
        kind = type(repeats).__name__
        raise TypeError(
            f"repeat_interleave() received an invalid combination of arguments - got ({kind}), but "
            "expected one of:\n * (Tensor repeats, int dim, *, int output_size)\n * (int repeats, "
            "int dim, *, int output_size)"
        )
    if dim is None:
        input, dim = input.reshape(-1), 0
    at = shapes.wrap_dim(dim, input._layout.ndim)
    if not input._layout.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    size = input._layout.shape[at]
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        if output_size not in (None, size * repeats):
            wrong = f"expected {size * repeats} but got {output_size}"
            raise RuntimeError(f"repeat_interleave: Invalid output_size, {wrong}")
        shape = input._layout.shape
        apart = functions.unsqueeze(input, at + 1)
        apart = functions.expand(apart, (*shape[: at + 1], repeats, *shape[at + 1 :]))
        made: Tensor = apart.reshape((*shape[:at], size * repeats, *shape[at + 1 :]))
        return functions.clone(made) if made._storage is input._storage else made
    if repeats._layout.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    counts = _repeats(repeats)
    if len(counts) == 1:
        counts = counts * size
    if len(counts) != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{len(counts)} and input.size({at}) = {size}"
        )
    _check_total(sum(counts), output_size)
    flat = [place for place, count in enumerate(counts) for _ in range(count)]
    other: Tensor = functions.index_select(input, at, creation.tensor(flat, dtype=dtypes.int64))
    return other


def _repeats(given: Tensor) -> list[int]:
    """How often each element is to be repeated."""
    if given._layout.dtype not in (dtypes.int32, dtypes.int64):
        raise not_implemented("repeat_interleave_cpu", given._layout.dtype)
    counts: list[int] = given.reshape(-1).tolist()
    if any(each < 0 for each in counts):
        raise RuntimeError("repeats can not be negative")
    return counts


def _check_total(total: int, output_size: int | None) -> None:
    if output_size not in (None, total):
        raise RuntimeError(
            helped("allocated size does not match required size", expected=f"output_size={total}")
        )
