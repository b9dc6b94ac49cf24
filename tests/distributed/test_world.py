"""A world of one process: what may be asked before and after it is made."""

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn


@pytest.fixture
def world():
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_without_a_group_ranks_are_refused():
    assert dist.is_available()
    assert not dist.is_initialized()
    for ask in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2))


def test_one_process(world):
    assert dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert dist.group.WORLD.size() == 1
    with pytest.raises(ValueError, match="initialize the default process group twice"):
        dist.init_process_group("gloo", rank=0, world_size=1, store=object())


def test_ranks_from_the_environment(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group()
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_larger_worlds_and_other_backends_are_refused():
    with pytest.raises(RuntimeError, match="groups have one process"):
        dist.init_process_group(rank=0, world_size=2)
    with pytest.raises(RuntimeError, match="doesn't have NCCL built in"):
        dist.init_process_group("nccl", rank=0, world_size=1)
    assert not dist.is_initialized()


def test_data_parallel(world):
    inner = nn.Linear(2, 1)
    model = nn.parallel.DistributedDataParallel(inner)
    with model.no_sync():
        model(torch.ones(1, 2)).sum().backward()
    assert inner.weight.grad.tolist() == [[1.0, 1.0]]
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
