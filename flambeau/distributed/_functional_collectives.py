"""torch.distributed._functional_collectives: collectives that return their tensors.

Keeps     with one rank, what comes back is the tensor, and its gradient goes through.
Touches   nn.functional beside it.
Not here  collectives that write into their tensors (collectives.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.distributed.world import default_group
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = [
    "all_gather_tensor", "all_reduce", "all_to_all_single", "all_to_all_single_autograd",
    "broadcast", "reduce_scatter_tensor", "wait_tensor",
]  # fmt: skip


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, when it is there: at once."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks combined."""
    default_group()
    return t.alias(self)  # type: ignore[no-any-return]


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """One rank's tensor, in all."""
    return all_reduce(self, "sum", group)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks along a dim."""
    return all_reduce(self, "sum", group)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:  # fmt: skip
    """The tensors of all ranks combined, a part to each."""
    return all_reduce(self, "sum", group)


def all_to_all_single(
    self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Tensor:
    """Each rank's tensor, one part to each rank."""
    return all_reduce(self, "sum", group)


all_to_all_single_autograd = all_to_all_single

__getattr__ = module_getattr(__name__)
