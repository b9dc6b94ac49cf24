"""Sizes given once for all dims or one each: kernel sizes, strides, paddings.

Keeps     what torch.nn.modules.utils offers.
Touches   nothing.
Not here  the layers."""

from __future__ import annotations

from typing import Any


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """`value` for each of `count` dims.

    >>> repeated(3, 2), repeated([1, 2], 2)
    ((3, 3), (1, 2))
    """
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * count


def reversed_twice(values: tuple[int, ...]) -> list[int]:
    """Paddings as nn.functional.pad counts them: last dim first, both ends."""
    return [value for value in reversed(values) for _ in range(2)]
