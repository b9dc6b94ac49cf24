"""scatter and scatter_ in all their forms: a tensor or a number, written, added or multiplied in.

Keeps     products of several values for one place are taken in the order of the index.
Touches   functions.
Not here  plain writes and sums (ops.indexing.scatters)."""

from __future__ import annotations

from typing import Any

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
    return stored(found, out)  # type: ignore[no-any-return]


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


def _multiplied(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Products place by place: the indices of one place of the dim never meet."""
    found = functions.clone(input)
    if not index._layout.shape:
        return functions.scatter(found, dim, index, found * source)  # type: ignore[no-any-return]
    for place in range(index._layout.shape[dim]):
        row = functions.narrow(index, dim, place, 1)
        factor = functions.narrow(source, dim, place, 1)
        for other, size in enumerate(row._layout.shape):
            factor = functions.narrow(factor, other, 0, size)
        product = functions.gather(found, dim, row) * factor
        found = functions.scatter(found, dim, row, product)
    return found  # type: ignore[no-any-return]
