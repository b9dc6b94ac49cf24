"""Tensors on a mesh of one process."""

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import _functional_collectives
from flambeau.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)


@pytest.fixture
def mesh():
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_placements_say_how_a_tensor_lies():
    assert Shard(1) == Shard(1) != Shard(0)
    assert (Shard(1).is_shard(1), Shard(1).is_shard(0), Replicate().is_replicate()) == (
        True, False, True,
    )  # fmt: skip
    assert Partial().is_partial("sum")


def test_a_tensor_on_the_mesh_is_whole(mesh):
    x = torch.arange(4.0, requires_grad=True)
    placed = distribute_tensor(x, mesh, [Shard(0)])
    assert isinstance(placed, DTensor)
    assert (placed.requires_grad, placed.placements, placed.device_mesh) == (
        True,
        (Shard(0),),
        mesh,
    )
    assert type(placed.to_local()) is torch.Tensor
    assert placed.full_tensor().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert placed.redistribute(placements=[Replicate()]).placements == (Replicate(),)
    (placed.to_local() * 2).sum().backward()
    assert placed.grad.tolist() == [2.0] * 4


def test_a_module_on_the_mesh_computes_what_it_computes(mesh):
    module, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    want = module(x)
    assert torch.equal(distribute_module(module, mesh)(x), want)


def test_collectives_give_the_tensor_back(mesh):
    x = torch.ones(2, requires_grad=True)
    _functional_collectives.all_reduce(x, "sum", mesh.get_group()).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert _functional_collectives.wait_tensor(x) is x
