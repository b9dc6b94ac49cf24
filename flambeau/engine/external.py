"""Memory that Python outside can read or write: NumPy arrays, buffers, shared memory.

Keeps     what such memory holds at the moment an operator is recorded is what the operator sees;
          writes into it are done when the call returns. Memory is shared only while an outside
          owner exists.
Touches   segment, storage, stream.
Not here  making tensors from arrays and arrays from tensors (tensor/sharing.py)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from flambeau.devices.cpu import memory
from flambeau.engine.storage import Storage
from flambeau.engine.view import View

if TYPE_CHECKING:
    from flambeau.engine.callsite import Site
    from flambeau.engine.signature import Signature
    from flambeau.engine.stream import Stream

# Views up to this many bytes are copied when recorded, so that the segment goes on.
SNAPSHOT_BYTES: Final = 1 << 20
# Kernels may read this far past the end of a view; foreign memory may end at the end of a page.
OVER_READ_BYTES: Final = 512
PAGE_BYTES: Final = 4096


class External:
    """Why a storage is shared: the Python object on the other side of its memory.

    owner      the array or buffer object flambeau holds
    references what sys.getrefcount says of it while nobody outside holds it
    """

    __slots__ = ("owner", "references")

    def __init__(self, owner: Any, references: int) -> None:
        self.owner = owner
        self.references = references

    def is_shared(self) -> bool:
        """Whether anybody outside can still see the memory."""
        return sys.getrefcount(self.owner) > self.references


class OutsideBlock:
    """Memory that something else owns: kept alive through `owner`, never given back by us."""

    __slots__ = ("address", "n_bytes", "owner")

    def __init__(self, address: int, n_bytes: int, owner: Any) -> None:
        self.address = address
        self.n_bytes = n_bytes
        self.owner = owner


def is_cramped(block: Any) -> bool:
    """Whether reading whole vectors past the end could leave the last page of foreign memory."""
    if type(block) is not OutsideBlock:
        return False
    return -(block.address + block.n_bytes) % PAGE_BYTES < OVER_READ_BYTES


def _copied(block: OutsideBlock) -> Any:
    """Memory of our own with the same bytes."""
    made = memory.allocate(block.n_bytes)
    ctypes.memmove(made.address, block.address, block.n_bytes)
    return made


def is_shared(storage: Storage) -> bool:
    """Whether the storage is visible outside now; forgets owners that are gone."""
    external = storage.external
    if external is None:
        return False
    if external.is_shared():
        return True
    if is_cramped(storage.block):
        storage.block = _copied(storage.block)
    storage.external = None
    return False


_snapshot: Any = None


def install(snapshot: Any) -> None:
    """Tell how to copy a view at once: snapshot(view) -> View with memory of its own."""
    global _snapshot
    _snapshot = snapshot


def snapshot(view: View) -> View:
    """A copy of what the view shows now."""
    made: View = _snapshot(view)
    return made


def write_at_once(
    current: Stream,
    signature: Signature,
    tensors: Sequence[View],
    numbers: tuple[Any, ...],
    site: Site | None,
    targets: Sequence[View],
) -> None:
    """Record a write into shared memory and run it before returning."""
    still = [target._storage for target in targets if is_shared(target._storage)]
    if current.segment.records:
        _flush(current.segment, "a write into memory shared with Python outside")
    segment = current.segment
    # Cramped memory is computed in a copy of its own and written back.
    cramped = [(s, s.block) for s in dict.fromkeys(still) if is_cramped(s.block)]
    for storage, block in cramped:
        storage.block = _copied(block)
    segment.direct = True
    try:
        _record(current, signature, tensors, numbers, site)
        if still:
            _flush(segment, "a write into memory shared with Python outside")
    finally:
        segment.direct = False
        for storage, block in cramped:
            ctypes.memmove(block.address, storage.block.address, block.n_bytes)
            storage.block = block


_record: Any = None
_flush: Any = None


def install_recorder(record: Any, flush: Any) -> None:
    """Tell how to record (stream.record) and flush (run.flush), which are above this file."""
    global _record, _flush
    _record, _flush = record, flush
