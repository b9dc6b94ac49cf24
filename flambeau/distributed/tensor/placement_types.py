"""How a tensor lies on a dim of a mesh: in parts, whole, or as terms of a sum.

Keeps     placements are equal where they say the same.
Touches   nothing.
Not here  the tensors (__init__.py)."""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.base.missing import module_getattr

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies on one dim of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has a part, along `dim` where it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each rank has a term of it."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along dim `dim`."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Each rank has parts that others' parts lie between."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a term; combined by `reduce_op` they are the tensor."""

    reduce_op: str = "sum"


__getattr__ = module_getattr(__name__)
