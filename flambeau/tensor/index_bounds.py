"""Smallest and largest value of integer tensors that index others, read once per write.

Keeps     an index out of range is an error at the line that uses it; a storage whose bounds are
          known serves all its views. Memory that something uncounted may write is read each time.
Touches   engine.storage, conversion, functions.
Not here  the errors themselves, which differ from operator to operator."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable
from typing import Any, Final

from flambeau.base.devices import META
from flambeau.base.layout import Layout, contiguous
from flambeau.engine import stream
from flambeau.engine.storage import Storage
from flambeau.engine.view import UNPLACED
from flambeau.tensor import conversion, functions
from flambeau.tensor.tensor import Tensor, new_tensor

# Storages of which somebody has `.data`, whose writes no counter of theirs sees.
UNTRACKED: Final[weakref.WeakSet[Storage]] = weakref.WeakSet()
# A whole storage is read where it is at most this many times the view.
WHOLE_FACTOR: Final = 64
WHOLE_ELEMENTS: Final = 1 << 20
# Up to this many elements Python looks at them itself.
FEW: Final = 64


def know(index: Tensor, lowest: int, highest: int) -> None:
    """Note bounds that follow from how the values were made."""
    storage = index._storage
    storage.bounds = (storage.version, lowest, highest)


def is_counted(index: Tensor) -> bool:
    """Whether every write of a tensor's storage is seen in its version."""
    storage = index._storage
    return storage.external is None and storage not in UNTRACKED and index._versions is None


def known(index: Tensor) -> tuple[int, int] | None:
    """Bounds noted for the storage as it is now, or None."""
    found = index._storage.bounds
    if found is None or found[0] != index._storage.version or index._storage in UNTRACKED:
        return None
    return found[1], found[2]


# Operators whose result holds values of these operands and no others.
PASSED_ON: Final[dict[str, tuple[str, ...]]] = {
    "cat": ("tensors",), "clone": ("input",), "contiguous_copy": ("input",),
    "gather": ("input",), "index": ("input",), "index_select": ("input",), "repeat": ("input",),
    "stack": ("tensors",), "take": ("input",), "take_along_dim": ("input",),
    "flip": ("input",), "roll": ("input",),
}  # fmt: skip


# Operators whose result holds places along a dim of `input`.
PLACES: Final = frozenset(("argmax", "argmin"))


def follow(name: str, arguments: dict[str, Any], result: Any) -> None:
    """Note the bounds of an integer result that follow from how it was made."""
    if name in PLACES:
        know(result, 0, highest_place(arguments["input"]._layout, arguments.get("dim")))
        return
    sources: list[Tensor] = []
    for operand in PASSED_ON.get(name, ()):
        value = arguments[operand]
        sources.extend(value if isinstance(value, tuple) else (value,))
    found = of_all(sources)
    if found is not None:
        know(result, *found)


def highest_place(layout: Layout, dim: int | None) -> int:
    """The largest place along a dim, or in all elements in order."""
    size = layout.n_elements if dim is None or not layout.shape else layout.shape[dim]
    return max(size - 1, 0)


def of_all(sources: Iterable[Tensor]) -> tuple[int, int] | None:
    """Bounds of the values of some tensors together, where those of each are known."""
    ranges = [known(source) for source in sources]
    if not ranges or None in ranges:
        return None
    lowest = min(each[0] for each in ranges)  # type: ignore[index]
    highest = max(each[1] for each in ranges)  # type: ignore[index]
    return lowest, highest


def first_outside(
    index: Tensor, low: int | None, high: int | None, ignored: int | None = None
) -> int | None:
    """The first value outside [low, high) other than `ignored`, or None. Without bounds, 0 is what
    must not be there: a divisor. Runs what is pending on the index where its bounds are unknown."""
    if low is None or high is None:
        return 0 if _has_zero(index) else None
    found = _first_outside(index, low, high)
    if found is None or ignored is None or found != ignored:
        return found
    chosen = functions.masked_fill(index, index == ignored, low)
    return _first_outside(chosen, low, high)


def _has_zero(divisor: Tensor) -> bool:
    """Whether an integer tensor holds 0."""
    layout = divisor._layout
    if not layout.n_elements or layout.device is META:
        return False
    bounds = known(divisor)
    if bounds is not None and (bounds[0] > 0 or bounds[1] < 0):
        return False
    return not functions.all(functions.ne(divisor.detach(), 0)).item()


def _first_outside(index: Tensor, low: int, high: int) -> int | None:
    layout = index._layout
    if not layout.n_elements or layout.device is META:
        return None
    storage = index._storage
    counted = is_counted(index)
    if counted:
        known = storage.bounds
        if known is not None and known[0] == storage.version:
            _, lowest, highest = known
            if low <= lowest and highest < high:
                return None
    if counted and storage.layout.dtype is layout.dtype:
        whole = storage.layout.span
        if whole <= max(layout.n_elements * WHOLE_FACTOR, WHOLE_ELEMENTS):
            # Once for the storage, so that no later use of it has to run what is pending.
            if whole <= FEW:
                lowest, highest = _few(index)
            else:
                lowest, highest = _range(new_tensor(storage, contiguous((whole,), layout.dtype)))
            know(index, lowest, highest)
            if low <= lowest and highest < high:
                return None
    if layout.n_elements > FEW:
        lowest, highest = _range(index)
        if low <= lowest and highest < high:
            return None
    return _first_of(index, low, high)


def _first_of(index: Tensor, low: int, high: int) -> int | None:
    for value in conversion.flat_values(index):
        if not low <= value < high:
            return int(value)
    return None


def _few(index: Tensor) -> tuple[int, int]:
    """The range of all that the storage of a view holds."""
    storage = index._storage
    if storage.segment is not None:
        stream.materialize(index, "index bounds")
    raw = ctypes.string_at(storage.block.address, storage.layout.span_bytes)
    values = conversion.decoded(raw, storage.layout.dtype)
    return int(min(values)), int(max(values))


def _range(index: Tensor) -> tuple[int, int]:
    plain = new_tensor(index._storage, index._layout)
    plain._offset = index._offset
    if index._layout is not index._storage.layout or index._offset:
        plain._place = UNPLACED
    if index._layout.n_elements <= FEW:
        values = conversion.flat_values(plain)
        return int(min(values)), int(max(values))
    lowest, highest = functions.amin(plain), functions.amax(plain)
    return int(lowest.item()), int(highest.item())
