"""Storage: bytes on a device, in memory or still to be computed by a segment.

Keeps     one stream at most has pending work on a storage, reads included; `version` counts the
          in-place writes that autograd must know of.
Touches   base.layout.
Not here  views of it (view.py), memory shared with the outside (external.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flambeau.base.layout import Layout

if TYPE_CHECKING:
    from flambeau.engine.callsite import Site
    from flambeau.engine.external import External
    from flambeau.engine.segment import Segment

# What a slot means that the recorder has not set: it sets as few as it can.
_DEFAULTS: Final = {"block": None, "bounds": None, "external": None, "write_site": None}


class Storage:
    """Memory that views share.

    block     devices' memory (address, n_bytes), or None: pending, or on meta
    layout    the layout it was made with: views of it, at offset 0, cover the storage whole
    segment   the open segment that has work on it, or None
    slot      slot of its whole view there; the storage is the `_place` of such views
    bounds    None, or (version, lowest, highest) of integers: tensor.index_bounds
    external  None, or why Python outside may see the memory (external.External)
    """

    __slots__ = (
        "__weakref__", "block", "bounds", "external", "layout", "segment", "slot", "version",
        "write_site",
    )  # fmt: skip

    block: Any
    bounds: tuple[int, int, int] | None
    external: External | None
    layout: Layout
    segment: Segment | None
    slot: int
    version: int
    write_site: Site | None

    @property
    def n_bytes(self) -> int:
        """Bytes from its first to its last element."""
        return self.layout.span_bytes

    def __getattr__(self, name: str) -> Any:
        try:
            return _DEFAULTS[name]
        except KeyError:
            raise AttributeError(f"Storage has no attribute {name!r}") from None


def new_storage(layout: Layout, block: Any = None) -> Storage:
    """A storage of no segment. (No __init__: the recorder makes storages by the thousand and
    calling a class without one is the quickest way Python has.)"""
    made = Storage()
    made.layout = layout
    made.block = block
    made.segment = None
    made.slot = 0
    made.external = None
    made.version = 0
    made.write_site = None
    return made
