"""Keys of containers: places in lists, and the pairs a dictionary is updated with.

Keeps     torch's errors.
Touches   nothing.
Not here  the containers (container.py, parameter_container.py)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any


def list_key(index: Any, count: int) -> str:
    """The name of a place in a list of `count`; places below 0 count from the end.

    >>> list_key(-1, 3)
    '2'
    """
    index = operator.index(index)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of range")
    return str(index % count)


def named_pairs(name: str, pairs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """(key, value) pairs; what is none is refused, in the name of a class."""
    for number, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{number} should be Iterable; is"
                f"{type(pair).__name__}"
            )
        count = len(pair)  # type: ignore[arg-type]
        if count != 2:
            raise ValueError(
                f"{name} update sequence element #{number} has length {count}; 2 is required"
            )
        key, value = pair
        yield key, value
