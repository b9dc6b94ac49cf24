"""torch.distributed.nn.functional: collectives that gradients pass through.

Keeps     with one rank, what comes back is the tensor itself, and so is its gradient.
Touches   world.py, collectives.py.
Not here  collectives that write into their tensors (collectives.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.distributed.collectives import ReduceOp, check_rank
from flambeau.distributed.world import default_group
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all ranks combined."""
    default_group()
    return t.alias(tensor)  # type: ignore[no-any-return]


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    return (all_reduce(tensor),)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all ranks combined, in one of them."""
    check_rank(dst, "destination")
    return all_reduce(tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """One rank's tensor, in all."""
    check_rank(src, "source")
    return all_reduce(tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, in one of them."""
    check_rank(dst, "destination")
    return all_gather(tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor that one rank has for each."""
    check_rank(src, "source")
    return all_reduce(tensors[0])


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The tensors that all ranks have for each, combined."""
    return all_reduce(input_list[0])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The tensors that all ranks have for each."""
    return tuple(map(all_reduce, input_tensor_list))


__getattr__ = module_getattr(__name__)
