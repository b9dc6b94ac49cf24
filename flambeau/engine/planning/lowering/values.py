"""What lowering reads: views of memory, run-time numbers, constants, positions.

Keeps     plain data; strides and offsets count elements.
Touches   base, statement.
Not here  statements (maps.py, lower.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base.dtypes import dtype, float64
from flambeau.base.layout import contiguous_strides
from flambeau.engine.statement import FIRST_PIECE


class Value:
    """Something lowering can read: a view of memory, a run-time number, a constant, a position.

    kind  "memory" (reference, strides, offset), "number" (payload: index of the record's number, or
          a SizeNumber),
          "constant" (payload: Python number), "iota" (payload: dimension of shape)
    part  of complex memory, seen as the reals it is made of: the real parts 1, the imaginary ones
          2; see statement.Place
    """

    __slots__ = ("dtype", "kind", "offset", "part", "payload", "reference", "shape", "strides")

    def __init__(
        self,
        kind: str,
        shape: tuple[int, ...],
        element: dtype,
        reference: int = -1,
        strides: tuple[int, ...] = (),
        offset: int = 0,
        payload: Any = None,
        part: int = 0,
    ) -> None:
        self.kind = kind
        self.shape = shape
        self.dtype = element
        self.reference = reference
        self.strides = strides
        self.offset = offset
        self.payload = payload
        self.part = part

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def with_view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Value:
        """Same memory seen through other strides; offset is added."""
        return Value(
            "memory", shape, self.dtype, self.reference, strides, self.offset + offset,
            None, self.part,
        )  # fmt: skip

    def as_piece(self, number: int) -> Value:
        """The same memory as piece `number` of a result, which meets no other piece."""
        return Value(
            "memory", self.shape, self.dtype, self.reference, self.strides, self.offset,
            None, FIRST_PIECE + number,
        )  # fmt: skip


def halves(value: Value) -> tuple[Value, Value]:
    """Real and imaginary parts of complex memory, which are every second of the reals it is made
    of, or of a complex number, which is two run-time numbers."""
    if value.kind == "number":
        index, wide = value.payload, float64
        return Value("number", (), wide, payload=index), Value(
            "number", (), wide, payload=index + 1
        )
    element, strides = value.dtype.to_real(), tuple([2 * stride for stride in value.strides])
    real, imag = (
        Value(
            "memory", value.shape, element, value.reference, strides,
            2 * value.offset + part - 1, None, part,
        )
        for part in (1, 2)
    )  # fmt: skip
    return real, imag


def as_reals(value: Value) -> Value:
    """Complex memory as its parts, in a last dimension of 2."""
    strides = tuple([2 * stride for stride in value.strides])
    return Value(
        "memory", (*value.shape, 2), value.dtype.to_real(), value.reference, (*strides, 1),
        2 * value.offset,
    )  # fmt: skip


def reduction_order(ndim: int, axes: set[int]) -> tuple[list[int], list[int], list[int]]:
    """Dims in the order that a reduction over `axes` walks them: outer, reduced, inner."""
    last, first = max(axes) == ndim - 1, min(axes)
    outer = [d for d in range(ndim) if d not in axes and (last or d < first)]
    inner = [d for d in range(ndim) if d not in axes and d not in outer]
    if not last and any(d < max(axes) for d in inner):
        # Kept dims between reduced ones join the outer dims: only the tail is vectorised over.
        outer = [d for d in range(ndim) if d not in axes and d < max(axes)]
        inner = list(range(max(axes) + 1, ndim))
    return outer, sorted(axes), inner


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


def expanded_strides(value: Value, shape: tuple[int, ...]) -> list[int]:
    """Strides that show a value broadcast to `shape`."""
    lead = len(shape) - len(value.shape)
    strides = [0] * lead
    for size, stride, target in zip(value.shape, value.strides, shape[lead:], strict=True):
        strides.append(stride if size == target else 0)
    return strides


class Views:
    """What the builder `b` offers that moves nothing: other shapes and strides."""

    def memory(self, value: Value) -> Value:
        """The value as memory."""
        raise NotImplementedError

    def copied(self, value: Value) -> Value:
        """The value in fresh contiguous memory."""
        raise NotImplementedError

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Broadcast to `shape`, no copy."""
        if value.kind != "memory":
            if value.kind in ("number", "constant"):
                return Value(value.kind, tuple(shape), value.dtype, payload=value.payload)
            value = self.memory(value)
        return value.with_view(tuple(shape), tuple(expanded_strides(value, tuple(shape))))

    def permute(self, value: Value, dims: Sequence[int]) -> Value:
        """Dimensions in another order."""
        value = self.memory(value)
        return value.with_view(
            tuple(value.shape[d] for d in dims), tuple(value.strides[d] for d in dims)
        )

    def transpose(self, value: Value, first: int, second: int) -> Value:
        """Two dimensions swapped; negative dims count from the end."""
        dims = list(range(value.ndim))
        dims[first], dims[second] = dims[second], dims[first]
        return self.permute(value, dims)

    def unsqueeze(self, value: Value, dim: int) -> Value:
        """A dimension of size 1 inserted."""
        value = self.memory(value)
        if dim < 0:
            dim += value.ndim + 1
        shape, strides = list(value.shape), list(value.strides)
        shape.insert(dim, 1)
        strides.insert(dim, 0)
        return value.with_view(tuple(shape), tuple(strides))

    def squeeze(self, value: Value, dim: int) -> Value:
        """A dimension of size 1 removed."""
        return self.select(value, dim, 0)

    def select(self, value: Value, dim: int, index: int) -> Value:
        """One position along `dim`."""
        value = self.memory(value)
        dim %= value.ndim
        return value.with_view(
            value.shape[:dim] + value.shape[dim + 1 :],
            value.strides[:dim] + value.strides[dim + 1 :],
            index * value.strides[dim],
        )

    def narrow(self, value: Value, dim: int, start: int, length: int, step: int = 1) -> Value:
        """Positions start, start + step, ... along `dim`."""
        value = self.memory(value)
        dim %= value.ndim
        shape, strides = list(value.shape), list(value.strides)
        offset = start * strides[dim]
        shape[dim] = length
        strides[dim] *= step
        return value.with_view(tuple(shape), tuple(strides), offset)

    def windows(
        self, value: Value, counts: Sequence[int], sizes: Sequence[int], steps: Sequence[int],
        apart: Sequence[int],
    ) -> Value:  # fmt: skip
        """The last dims as `counts` windows that start `steps` apart, of `sizes` positions that lie
        `apart`: (..., *counts, *sizes)."""
        value = self.memory(value)
        plain = value.ndim - len(counts)
        along = value.strides[plain:]
        moves = [each * stride for each, stride in zip(steps, along, strict=True)]
        within = [each * stride for each, stride in zip(apart, along, strict=True)]
        return value.with_view(
            (*value.shape[:plain], *counts, *sizes), (*value.strides[:plain], *moves, *within)
        )

    def flip(self, value: Value, dims: Sequence[int]) -> Value:
        """Positions along `dims` in reverse."""
        value = self.memory(value)
        for dim in dims:
            value = self.narrow(value, dim, value.shape[dim] - 1, value.shape[dim], -1)
        return value

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Same elements in row-major order under another shape; a copy where strides need one."""
        value = self.memory(value)
        shape = tuple(shape)
        strides = reshaped_strides(value.shape, value.strides, shape)
        if strides is None:
            value = self.copied(value)
            strides = contiguous_strides(shape)
        return value.with_view(shape, strides)

    def can_view(self, value: Value, shape: Sequence[int]) -> bool:
        """Whether reshaping takes no copy."""
        if value.kind != "memory":
            return True
        return reshaped_strides(value.shape, value.strides, tuple(shape)) is not None
