"""Sizes given once for all dims or one each: kernel sizes, strides, paddings; prefixes of keys.

Keeps     what torch.nn.modules.utils offers, by torch's names too.
Touches   nothing.
Not here  the layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


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


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(value: Any) -> tuple[Any, ...]:
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _reverse_repeat_tuple(t: Any, n: int) -> tuple[Any, ...]:
    return tuple(value for value in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: Any, prefix: str) -> None:
    """Take a prefix (`module.`) off the keys that have it, in place and in order."""
    for key in list(state_dict):
        value = state_dict.pop(key)
        state_dict[key.removeprefix(prefix)] = value
    metadata: Any = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        if key.startswith(prefix) or key == prefix.rstrip("."):
            metadata[key.removeprefix(prefix) if key.startswith(prefix) else ""] = metadata.pop(key)
