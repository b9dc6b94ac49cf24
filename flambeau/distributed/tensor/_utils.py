"""torch.distributed.tensor._utils: which part of a tensor lies on this rank.

Keeps     on a mesh of one process, all of it.
Touches   nothing.
Not here  the tensors (__init__.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base.missing import module_getattr

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any], **named: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's part, and where it begins.

    >>> compute_local_shape_and_global_offset((4, 3), None, ())
    ((4, 3), (0, 0))
    """
    return tuple(global_shape), (0,) * len(global_shape)


__getattr__ = module_getattr(__name__)
