"""Collectives with one rank."""

import pytest

import flambeau as torch
from flambeau import distributed as dist


@pytest.fixture(autouse=True)
def world():
    dist.init_process_group(rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_each_rank_gets_what_it_sent():
    x = torch.arange(4.0)
    assert dist.all_reduce(x) is None
    assert dist.broadcast(x, 0, async_op=True).wait()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    gathered, into, scattered = [torch.zeros(4)], torch.zeros(4), torch.zeros(4)
    dist.all_gather(gathered, x)
    dist.all_gather_into_tensor(into, x)
    dist.scatter(scattered, [x], src=0)
    dist.barrier()
    for each in (gathered[0], into, scattered):
        assert torch.equal(each, x)


def test_objects_are_copied():
    objects = [None]
    given = {"a": [1]}
    dist.all_gather_object(objects, given)
    given["a"].append(2)
    assert objects == [{"a": [1]}]


def test_what_needs_another_rank_is_refused():
    with pytest.raises(ValueError, match="no other rank"):
        dist.send(torch.ones(1), 1)
    with pytest.raises(ValueError, match="Invalid source rank 3"):
        dist.broadcast(torch.ones(1), 3)
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch.Tensor"):
        dist.all_reduce([1.0])
