"""Indexing by tensors inside mask functions, which a tracer would have to be told of.

Keeps     x[tensor] is what it is outside.
Touches   nothing.
Not here  indexing (tensor/indexing)."""

from __future__ import annotations

from typing import Self

from flambeau.base.missing import module_getattr

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A block in which tensors may be indices: they may be anywhere."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


__getattr__ = module_getattr(__name__)
