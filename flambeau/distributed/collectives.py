"""Collectives of a group of one process: what each rank sends is what it receives.

Keeps     tensors are checked and written as with more ranks; async_op=True gives a Work.
Touches   world.py, tensor.
Not here  groups (world.py)."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed.world import Work, default_group
from flambeau.tensor import Tensor

__all__ = [
    "ReduceOp", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather",
    "gather_object", "irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_op",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
]  # fmt: skip


class ReduceOp(Enum):
    """How values of several ranks become one; with one rank, each keeps its value."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


reduce_op = ReduceOp
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # the class of its members, in torch


def _check(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _check_list(values: Any, name: str) -> None:
    if not isinstance(values, list) or not all(isinstance(each, Tensor) for each in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type "
            f"{[type(each) for each in values]}."
        )


def check_rank(rank: Any, what: str) -> None:
    default_group()
    if rank not in (None, 0):
        raise ValueError(f"Invalid {what} rank {rank}: the world has one process, of rank 0")


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all ranks combined, into each: with one rank, nothing changes."""
    _check(tensor, "tensor")
    default_group()
    return _done(async_op)


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """The tensors of all ranks combined, into one of them."""
    _check(tensor, "tensor")
    check_rank(dst, "destination")
    return _done(async_op)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """One rank's tensor into all."""
    _check(tensor, "tensor")
    check_rank(src, "source")
    return _done(async_op)


def _copy_one(targets: Any, source: Any, name: str) -> None:
    _check_list(targets, name)
    if len(targets) != 1:
        raise ValueError(f"`{name}` must have one tensor for each rank, 1, but has {len(targets)}")
    with no_grad():
        targets[0].copy_(source)


def all_gather(
    tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all ranks, one after the other, in each."""
    _check(tensor, "tensor")
    default_group()
    _copy_one(tensor_list, tensor, "tensor_list")
    return _done(async_op)


def gather(
    tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """The tensors of all ranks, one after the other, in one of them."""
    _check(tensor, "tensor")
    check_rank(dst, "destination")
    if gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _copy_one(gather_list, tensor, "gather_list")
    return _done(async_op)


def scatter(
    tensor: Any, scatter_list: Any = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """One rank's list of tensors, one to each."""
    _check(tensor, "tensor")
    check_rank(src, "source")
    if scatter_list is None:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _check_list(scatter_list, "scatter_list")
    _copy_one([tensor], scatter_list[0], "tensor")
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all ranks in one."""
    _check(input_tensor, "input_tensor")
    _check(output_tensor, "output_tensor")
    default_group()
    with no_grad():
        output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return _done(async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Lists combined, one part to each rank."""
    _check(output, "output")
    default_group()
    _check_list(input_list, "input_list")
    _copy_one([output], input_list[0], "output")
    return _done(async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Tensors combined, one part to each rank."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Each rank's list, one tensor to each rank."""
    default_group()
    _check_list(input_tensor_list, "input_tensor_list")
    _copy_one(output_tensor_list, input_tensor_list[0], "output_tensor_list")
    return _done(async_op)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Each rank's tensor, one part to each rank."""
    return all_gather_into_tensor(output, input, group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for all ranks."""
    default_group()
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all ranks."""
    default_group()


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None, weights_only: bool = True,
) -> None:  # fmt: skip
    """One rank's objects into all."""
    check_rank(src, "source")


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all ranks, in each: copies, as with more ranks."""
    default_group()
    object_list[0] = copy.deepcopy(obj)


def gather_object(
    obj: Any, object_gather_list: Any = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """The objects of all ranks, in one of them."""
    check_rank(dst, "destination")
    if object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    all_gather_object(object_gather_list, obj)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: Any = None,
    src: int | None = None, group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """One rank's objects, one to each."""
    check_rank(src, "source")
    all_gather_object(scatter_object_output_list, scatter_object_input_list[0])


def _no_other_rank(name: str) -> Any:
    def function(tensor: Any, *arguments: Any, **named: Any) -> Any:
        _check(tensor, "tensor")
        default_group()
        raise ValueError(f"{name}: there is no other rank, the world has one process")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} a tensor between two ranks: there is no other."
    return function


send, recv, isend, irecv = (_no_other_rank(name) for name in ("send", "recv", "isend", "irecv"))
