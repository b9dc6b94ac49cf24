"""scatter in all its forms: a tensor or a number, written, added or folded in; scatter_reduce.

Keeps     several values for one place are taken in the order of the index.
Touches   functions.
Not here  plain writes and sums (ops.indexing.scatters)."""

from __future__ import annotations

from typing import Any

from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions
from flambeau.tensor.inplace import stored
from flambeau.tensor.tensor import Tensor


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """A copy with values put, added or multiplied at index along a dim.

    >>> scatter(functions.zeros(3), 0, functions.arange(2), 5.0)
    tensor([5., 5., 0.])
    """
    given = value if src is None else src
    if reduce is None:
        found = functions.scatter(input, dim, index, given)
    elif reduce == "add":
        found = functions.scatter_add(input, dim, index, _like_index(given, index, input))
    elif reduce == "multiply":
        found = _multiplied(input, dim, index, _like_index(given, index, input))
    else:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return stored(found, out)


def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None,
) -> Tensor:  # fmt: skip
    """Values put, added or multiplied in place at index along a dim."""
    given = value if src is None else src
    if reduce is None:
        functions.scatter_(input, dim, index, given)
    elif reduce == "add":
        functions.scatter_add_(input, dim, index, _like_index(given, index, input))
    else:
        input.copy_(scatter(input, dim, index, given, reduce=reduce))
    return input


def _like_index(given: Any, index: Tensor, input: Tensor) -> Tensor:
    """A number for every place of the index."""
    if isinstance(given, Tensor):
        return given
    made: Tensor = functions.full(index._layout.shape, given, dtype=input._layout.dtype)
    return made


def _multiplied(input: Tensor, dim: int, index: Tensor, factors: Tensor) -> Tensor:
    """Products with factors at index: complex ones a step along the dim at a time, since they
    are two numbers each, and each is half of both factors."""
    made: Tensor
    if not input._layout.dtype.is_complex:
        made = functions.scatter_fold(input, dim, index, factors, "prod", True)
        return made
    if not input._layout.ndim:
        return input * factors
    made = input
    for step in range(index._layout.shape[dim]):
        at = functions.narrow(index, dim, step, 1)
        factor = functions.narrow(factors, dim, step, 1)
        for place, size in enumerate(at._layout.shape):
            factor = functions.narrow(factor, place, 0, size)
        made = functions.scatter(made, dim, at, functions.gather(made, dim, at) * factor)
    return made


# reduce= ---------------------------------------------------------------------------------


@shows("ScatterReduceBackward0")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
    include_self: bool = True, out: Any = None,
) -> Tensor:  # fmt: skip
    """A copy with sums, products, means or extremes of what is there and of src, at index.

    >>> values = functions.arange(4) + 1.0
    >>> scatter_reduce(functions.zeros(2), 0, functions.arange(4) // 2, values, "mean",
    ...                include_self=False)
    tensor([1.5000, 3.5000])
    """
    if reduce in ("sum", "mean"):
        start = input if include_self else functions.scatter(input, dim, index, 0)
        found = functions.scatter_add(start, dim, index, src)
        if reduce == "mean":
            found = _over_counts(found, input, dim, index, include_self)
    elif reduce == "prod" and input._layout.dtype.is_complex:
        start = input if include_self else functions.scatter(input, dim, index, 1)
        found = _multiplied(start, dim, index, src)
    elif reduce in ("prod", "amax", "amin"):
        found = functions.scatter_fold(input, dim, index, src, reduce, include_self)
    else:
        raise RuntimeError(
            "reduce argument must be either sum, prod, mean, amax or amin, got " + str(reduce)
        )
    return stored(found, out)


def _over_counts(total: Any, input: Tensor, dim: int, index: Tensor, include_self: bool) -> Any:
    start = functions.ones_like(input.detach())
    if not include_self:
        start = functions.scatter(start, dim, index, 0)
    ones = functions.ones(index._layout.shape, dtype=input._layout.dtype)
    counts = functions.scatter_add(start, dim, index, ones)
    counts = functions.masked_fill(counts, functions.eq(counts, 0), 1)
    if input._layout.dtype.is_floating_point or input._layout.dtype.is_complex:
        return total / counts
    return functions.div(total, counts, rounding_mode="floor")


def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """scatter_reduce in place."""
    before = functions.clone(input)  # what gradients read is not what is written to
    found = scatter_reduce(before, dim, index, src, reduce, include_self=include_self)
    return input.copy_(found)


@shows("IndexReduceBackward0")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True, out: Any = None,
) -> Tensor:  # fmt: skip
    """A copy with products, means or extremes of slices, at places `index` of a dim."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    at = dim % max(source._layout.ndim, 1)
    shape = [1] * source._layout.ndim
    if shape:
        shape[at] = index.numel()
    places = functions.expand(index.reshape(shape), source._layout.shape)
    return scatter_reduce(input, dim, places, source, reduce, include_self=include_self, out=out)


def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Tensor:  # fmt: skip
    """index_reduce in place."""
    before = functions.clone(input)
    found = index_reduce(before, dim, index, source, reduce, include_self=include_self)
    return input.copy_(found)
