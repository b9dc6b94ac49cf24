"""Dimensions of several operands at once, in fewer dimensions.

Keeps     plain ints; nothing here knows a kernel.
Touches   nothing.
Not here  text that walks the dimensions (writer.py and the families)."""

from __future__ import annotations

from collections.abc import Sequence

# A dimension: its size, then its stride for each operand.
Dim = tuple[int, ...]


def dims_of(shape: Sequence[int], *strides: Sequence[int]) -> list[Dim]:
    """Dimensions of more than one place, outermost first."""
    return [dim for dim in zip(shape, *strides, strict=True) if dim[0] != 1]


def collapsed(dims: Sequence[Dim]) -> list[Dim]:
    """Neighbours that one stride walks for every operand, taken as one."""
    result: list[Dim] = []
    for dim in dims:
        size = dim[0]
        if result and all(
            outer == inner * size for outer, inner in zip(result[-1][1:], dim[1:], strict=True)
        ):
            result[-1] = (result[-1][0] * size, *dim[1:])
        else:
            result.append(dim)
    return result


def ordered(dims: Sequence[Dim], operand: int) -> list[Dim]:
    """Largest stride of an operand first, and collapsed: for places that do not meet."""
    return collapsed(sorted(dims, key=lambda dim: -abs(dim[1 + operand])))


def count(dims: Sequence[Dim]) -> int:
    """Places in all dimensions."""
    result = 1
    for dim in dims:
        result *= dim[0]
    return result
