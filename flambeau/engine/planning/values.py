"""What lowering reads: views of memory, run-time numbers, constants, positions.

Keeps     plain data; strides and offsets count elements.
Touches   base, codegen.vocabulary.
Not here  the builder that makes them (lower.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base.dtypes import dtype
from flambeau.base.layout import contiguous_strides


class Value:
    """Something lowering can read: a view of memory, a run-time number, a constant, a position.

    kind  "memory" (reference, strides, offset), "number" (payload: index of the record's number, or
          a SizeNumber),
          "constant" (payload: Python number), "iota" (payload: dimension of shape)
    """

    __slots__ = ("dtype", "kind", "offset", "payload", "reference", "shape", "strides")

    def __init__(
        self,
        kind: str,
        shape: tuple[int, ...],
        element: dtype,
        reference: int = -1,
        strides: tuple[int, ...] = (),
        offset: int = 0,
        payload: Any = None,
    ) -> None:
        self.kind = kind
        self.shape = shape
        self.dtype = element
        self.reference = reference
        self.strides = strides
        self.offset = offset
        self.payload = payload

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def with_view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Value:
        """Same memory seen through other strides; offset is added."""
        return Value("memory", shape, self.dtype, self.reference, strides, self.offset + offset)


def collapses(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the dims can be walked with one stride in row-major order."""
    pairs = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    return 0 in sizes or all(
        pairs[i][1] == pairs[i + 1][1] * pairs[i + 1][0] for i in range(len(pairs) - 1)
    )


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that show the same elements under shape `wanted`, or None where a copy is needed."""
    if 0 in shape:
        return contiguous_strides(wanted)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    # Runs of old dims that one stride walks.
    runs: list[list[int]] = []
    for size, stride in old:
        if runs and runs[-1][1] == stride * size:
            runs[-1][0] *= size
            runs[-1][1] = stride
        else:
            runs.append([size, stride])
    result: list[int] = []
    remaining = list(reversed(runs))
    count, stride = remaining.pop() if remaining else (1, 1)
    for size in wanted:
        if size == 1:
            result.append(stride * max(count, 1))
            continue
        if count == 1 and remaining:
            count, stride = remaining.pop()
        if count % size:
            return None
        count //= size
        result.append(stride * count)
    return tuple(result)
