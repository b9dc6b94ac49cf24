"""Tensor and what is made from operators for it; importing this wires the rooms together."""

import ctypes
from typing import Any

from flambeau.devices.cpu import memory
from flambeau.engine import callsite, external
from flambeau.engine.storage import new_storage
from flambeau.engine.view import UNPLACED
from flambeau.gradients.runtime import RUNTIME
from flambeau.tensor import functions, methods
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.native import callables
from flambeau.tensor.tensor import Size, Tensor, new_tensor

__all__ = ["Size", "Tensor", "functions"]


def _snapshot(view: Tensor) -> Tensor:
    """A copy of the bytes a view spans, under the view's own layout."""
    layout = view._layout
    storage = new_storage(layout, memory.allocate(layout.span_bytes))
    made = new_tensor(storage, layout)
    if layout.low:
        made._offset = -layout.low
        made._place = UNPLACED
    start = (view._offset + layout.low) * layout.itemsize
    ctypes.memmove(storage.block.address, view._storage.block.address + start, layout.span_bytes)
    return made


def _fill(*arguments: Any) -> Any:
    from flambeau.tensor.public import fills

    RUNTIME.fill = fills.recorded
    return fills.recorded(*arguments)


external.install(_snapshot)
RUNTIME.install(Tensor, functions, callsite.describe)
RUNTIME.new = object.__new__
RUNTIME.fill = _fill
RUNTIME.takers = taken_over.HERE
RUNTIME.native_walk = callables.walk
RUNTIME.native_program = callables.program
methods.install()
