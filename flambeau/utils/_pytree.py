"""torch.utils._pytree: the path by which programs import functions of nested values.

Keeps     torch's names.
Touches   base.trees.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.base.trees import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]

__getattr__ = module_getattr(__name__)
