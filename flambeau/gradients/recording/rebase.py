"""Histories after an in-place write through a view: of the base, and of its other views.

Keeps     torch's scheme: the base's history becomes CopySlices (the base with one region replaced);
          a view that was made before reads it through AsStridedBackward0.
Touches   graph, runtime; records ordinary operators.
Not here  when histories change (inplace.py) and when views notice (members.py).
Source    torch/csrc/autograd/functions/tensor.cpp, CopySlices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.gradients.graph import Node, next_sequence
from flambeau.gradients.runtime import RUNTIME


def zeros(layout: Any) -> Any:
    """Zeros of a layout's shape and strides, at the start of memory of their own."""
    t = RUNTIME.functions
    if layout.is_contiguous:
        return t.zeros(layout.shape, dtype=layout.dtype, device=layout.device)
    flat = t.zeros((layout.span,), dtype=layout.dtype, device=layout.device)
    return flat.as_strided(layout.shape, layout.strides, 0)


def copied(value: Any, layout: Any) -> Any:
    """The value in fresh memory with this layout's strides."""
    if not layout.is_contiguous:
        return zeros(layout).copy_(value)
    packed = value.contiguous()
    return value.clone() if packed._storage is value._storage else packed


def _as_parts(base: Any) -> Any:
    """Complex memory as its real and imaginary parts."""
    return RUNTIME.functions.view_as_real(base)


def _as_pairs(base: Any) -> Any:
    """Real memory as complex numbers, one behind the other."""
    pairs = base.as_strided((base._layout.span // 2, 2), (2, 1), 0)
    return RUNTIME.functions.view_as_complex(pairs)


class Region:
    """Where a view lies in its base."""

    __slots__ = ("layout", "offset", "recipe")

    def __init__(self, view: Any, base: Any) -> None:
        self.layout = view._layout
        size = base._layout.itemsize
        self.offset = view._offset - base._offset * size // view._layout.itemsize
        self.recipe = view._view_recipe

    def of(self, base: Any) -> Any:
        """The same region of another tensor that has the base's strides and starts its memory."""
        if self.recipe is not None:
            return self.recipe(base)
        if self.layout.itemsize != base._layout.itemsize:
            base = _as_parts(base) if base._layout.dtype.is_complex else _as_pairs(base)
        seen = base.as_strided(self.layout.shape, self.layout.strides, self.offset)
        return RUNTIME.functions.conj(seen) if self.layout.is_conj else seen

    @property
    def overlaps(self) -> bool:
        """Whether two elements of the region share memory."""
        reach = 1
        for stride, size in sorted(zip(self.layout.strides, self.layout.shape, strict=True)):
            if size > 1:
                if stride < reach:
                    return True
                reach = stride * (size - 1) + reach
        return False


class StridedNode(Node):
    """History of a view of a base that was written in place after the view was made."""

    __slots__ = ("region",)

    def __init__(self, view: Any, base: Any) -> None:
        self.edges = (base._autograd,)
        self.layouts = (base._layout,)
        self.extras = None
        self.site = None
        self.sequence = next_sequence()
        self.region = Region(view, base)

    def node_name(self) -> str:
        """torch's name."""
        return "AsStridedBackward0"

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """Zeros of the base with the cotangent added into the region."""
        layout = self.layouts[0]
        region = self.region
        if not region.overlaps:
            whole = zeros(layout)
            region.of(whole).copy_(cotangent)
            return (whole,)
        t = RUNTIME.functions
        flat = t.zeros((layout.span,), dtype=layout.dtype, device=layout.device)
        places = t.arange(layout.span, device=layout.device)
        places = places.as_strided(region.layout.shape, region.layout.strides, region.offset)
        flat = flat.index_add(0, places.reshape(-1), cotangent.reshape(-1))
        return (flat.as_strided(layout.shape, layout.strides, 0),)


StridedNode.__name__ = StridedNode.__qualname__ = "AsStridedBackward0"


class CopySlices(Node):
    """History of a base of which one region was written by `function`.

    The first edge is the base's history before; the others are the function's.
    """

    __slots__ = ("function", "region")

    def __init__(self, base: Any, target: Any, function: Node) -> None:
        self.edges = (base._autograd, *function.edges[1:])
        self.layouts = (base._layout, *function.layouts[1:])
        self.extras = None
        self.site = function.site
        self.sequence = next_sequence()
        self.function = function
        self.region = Region(target, base)

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """The cotangent outside the region; inside, what the function makes of it."""
        layout = self.layouts[0]
        if self.edges[0] is None:
            whole = cotangent
            if whole._layout is not layout or whole._offset != 0:
                whole = copied(cotangent, layout)
            return self._inner(self.region.of(whole))
        whole = copied(cotangent, layout)
        region = self.region.of(whole)
        found = self._inner(region.clone())
        if found[0] is None:
            region.zero_()
        else:
            region.copy_(found[0])
        return (whole, *found[1:])

    def name(self) -> str:
        """torch's qualified name."""
        return "torch::autograd::CopySlices"

    def _inner(self, cotangent: Any) -> list[Any]:
        several = self.function.no_cotangents()
        if several is not None:
            several[0] = cotangent
            cotangent = several
        return self.function.conformed(cotangent)

    def release(self) -> None:
        """Drop what the function saved."""
        self.function.release()
