"""Collectives with gradients, with one rank."""

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import nn


def test_gradients_pass():
    dist.init_process_group(rank=0, world_size=1)
    try:
        x = torch.arange(2.0, requires_grad=True)
        parts = [nn.all_reduce(x), *nn.all_gather(x), nn.broadcast(x, 0), nn.reduce(x, 0),
                 *nn.gather(x), nn.scatter([x]), nn.reduce_scatter(x, [x]),
                 *nn.all_to_all([x], [x])]  # fmt: skip
        torch.stack(parts).sum().backward()
        assert x.grad.tolist() == [8.0, 8.0]
        with pytest.raises(ValueError, match="Invalid source rank 1"):
            nn.broadcast(x, 1)
    finally:
        dist.destroy_process_group()


def test_without_a_group_it_is_an_error():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.all_reduce(torch.ones(1))
