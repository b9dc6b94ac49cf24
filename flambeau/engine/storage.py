"""Storage: bytes on a device, in memory or still to be computed by a segment.

Keeps     one stream at most has pending work on a storage, reads included; `version` counts the
          in-place writes that autograd must know of.
Touches   base.layout.
Not here  views of it (view.py), memory shared with the outside (external.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.base.layout import Layout

if TYPE_CHECKING:
    from flambeau.engine.segment import Segment


class Storage:
    """Memory that views share.

    block     devices' memory (address, n_bytes), or None: pending, or on meta
    layout    the layout it was made with: views of it, at offset 0, cover the storage whole
    n_bytes   its size
    segment   the last segment that touched it; number, slot are valid while it is open
    external  None, or why Python outside may see the memory (external.External)
    """

    __slots__ = (
        "__weakref__", "block", "external", "layout", "n_bytes", "number", "segment", "slot",
        "version", "write_site",
    )  # fmt: skip

    block: Any
    external: Any
    layout: Layout
    n_bytes: int
    number: int
    segment: Segment | None
    slot: int
    version: int
    write_site: Any

    def __init__(self, layout: Layout, n_bytes: int, block: Any = None) -> None:
        self.layout = layout
        self.n_bytes = n_bytes
        self.block = block
        self.segment = None
        self.external = None
        self.version = 0
        self.write_site = None
        self.number = self.slot = -1
