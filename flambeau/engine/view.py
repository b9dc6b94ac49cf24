"""View: a storage seen through a layout at an offset; what the recorder records.

Keeps     `_segment` and `_slot` are a cache of the recorder: the view's slot in that segment.
Touches   nothing but names.
Not here  Tensor, which adds gradients and methods (tensor/tensor.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flambeau.base.layout import Layout
    from flambeau.engine.storage import Storage


class View:
    """Base of Tensor; offset in elements of the layout's dtype."""

    __slots__ = ("_layout", "_offset", "_segment", "_slot", "_storage")

    _storage: Storage
    _layout: Layout
    _offset: int
    _segment: object
    _slot: int
