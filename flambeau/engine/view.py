"""View: a storage seen through a layout at an offset; what the recorder records.

Keeps     `_place` is the recorder's cache: an object whose `slot` is the view's slot in its
          `segment`. The storage itself serves views that cover it whole.
Touches   nothing but names.
Not here  Tensor, which adds gradients and methods (tensor/tensor.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flambeau.base.layout import Layout
    from flambeau.engine.segment import Segment
    from flambeau.engine.storage import Storage


class Place:
    """A slot in a segment, for views that do not cover their storage."""

    __slots__ = ("segment", "slot")

    def __init__(self) -> None:
        self.segment: Segment | None = None
        self.slot = 0


class View:
    """Base of Tensor; offset in elements of the layout's dtype."""

    __slots__ = ("_layout", "_offset", "_place", "_storage")

    _storage: Storage
    _layout: Layout
    _offset: int
    _place: Place | Storage


# The place of views that have not been touched: of no segment.
UNPLACED: Final = Place()
