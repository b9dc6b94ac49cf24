"""torch.utils._pytree: the path by which programs import functions of nested values.

Keeps     torch's names.
Touches   base.trees.
Not here  any logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.base.trees import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten"]


def tree_map_only(kind: Any, fn: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of the same form, with fn of the leaves that are of a class, or one of several."""
    return tree_map(lambda leaf: fn(leaf) if isinstance(leaf, kind) else leaf, tree)


__getattr__ = module_getattr(__name__)
