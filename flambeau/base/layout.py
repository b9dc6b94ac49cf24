"""Interned layouts: shape, strides, dtype and device of a view; facts about them worked out once.

Keeps     equal layouts are one object, so identity is equality and a dictionary hit is cheap; no
          offset, so that x[i] in a loop does not make new layouts.
Touches   base.dtypes, base.devices.
Not here  rules that make one layout from another (shapes.py)."""

from __future__ import annotations

import weakref
from typing import Final

from flambeau.base.devices import CPU, Device
from flambeau.base.dtypes import dtype


class Layout:
    """Shape and strides in elements, dtype and device of a view. Make one with `layout`.

    n_elements    product of the shape
    n_bytes       of the elements, packed
    is_contiguous row-major, as torch counts it (dims of size 1 do not matter)
    is_dense      the elements fill a gapless span, in some order of dims, none twice
    may_overlap   two elements may be one place in memory: some dim steps within the reach of those
                  with smaller steps
    span          number of elements from the first to one behind the last that a view touches
    low           offset of its lowest element (negative with negative strides)
    is_conj       the memory holds the conjugates of the numbers that the view shows; of real ones,
                  imaginary parts of such, the negated ones
    """

    __slots__ = (
        "__weakref__", "device", "dtype", "is_conj", "is_contiguous", "is_dense", "itemsize", "low",
        "may_overlap", "memo", "n_bytes", "n_elements", "ndim", "shape", "span", "span_bytes",
        "strides",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], element: dtype, device: Device,
        is_conj: bool = False,
    ) -> None:  # fmt: skip
        self.shape: Final = shape
        self.strides: Final = strides
        self.dtype: Final = element
        self.device: Final = device
        self.is_conj: Final = is_conj
        self.ndim: Final = len(shape)
        self.itemsize: Final = element.itemsize
        # Results of view and inference rules that start from this layout; bounded by its users.
        self.memo: dict[object, object] = {}
        n_elements = 1
        for size in shape:
            n_elements *= size
        self.n_elements: Final = n_elements
        self.n_bytes: Final = n_elements * element.itemsize
        expected = 1
        contiguous = True
        for size, stride in zip(reversed(shape), reversed(strides), strict=True):
            if size != 1:
                contiguous = contiguous and stride == expected
                expected *= size
        self.is_contiguous: Final = contiguous or n_elements == 0
        low = high = 0
        dense_expected = 1
        dense = True
        overlap = False
        for stride, size in sorted(zip(strides, shape, strict=True), key=lambda p: (p[0], p[1])):
            if size == 1:
                continue
            dense = dense and stride == dense_expected
            dense_expected *= size
            overlap = overlap or stride <= high - low
            low += min(0, stride * (size - 1))
            high += max(0, stride * (size - 1))
        self.is_dense: Final = dense or n_elements == 0
        self.may_overlap: Final = overlap and n_elements > 0
        self.low: Final = low
        self.span: Final = high - low + 1 if n_elements else 0
        self.span_bytes: Final = self.span * element.itemsize

    def conjugated(self) -> Layout:
        """Of the conjugates of the numbers that this one is of."""
        return layout(self.shape, self.strides, self.dtype, self.device, not self.is_conj)

    def __repr__(self) -> str:
        return f"{self.dtype.name} {self.shape} strides {self.strides} on {self.device}"


_INTERNED: weakref.WeakValueDictionary[object, Layout] = weakref.WeakValueDictionary()


def layout(
    shape: tuple[int, ...], strides: tuple[int, ...], element: dtype, device: Device = CPU,
    is_conj: bool = False,
) -> Layout:  # fmt: skip
    """The one layout with these parts."""
    key = (shape, strides, element, device, is_conj)
    found = _INTERNED.get(key)
    if found is None:
        found = Layout(shape, strides, element, device, is_conj)
        found = _INTERNED.setdefault(key, found)
    return found


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements, as torch gives them to a fresh tensor of this shape.

    >>> contiguous_strides((2, 3, 4)), contiguous_strides((2, 0, 4))
    ((12, 4, 1), (4, 4, 1))
    """
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


# Row-major layouts of late: a tensor that a loop makes and drops finds its own, and what is noted
# in its memo, when it is made again.
MAX_RECENT: Final = 1000
_RECENT: Final[dict[tuple[tuple[int, ...], dtype], Layout]] = {}


def contiguous(shape: tuple[int, ...], element: dtype, device: Device = CPU) -> Layout:
    """Row-major layout of a fresh tensor."""
    if device is not CPU:
        return layout(shape, contiguous_strides(shape), element, device)
    found = _RECENT.get((shape, element))
    if found is None:
        if len(_RECENT) >= MAX_RECENT:
            _RECENT.clear()
        found = layout(shape, contiguous_strides(shape), element)
        _RECENT[shape, element] = found
    return found
