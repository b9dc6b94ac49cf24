"""Optimizers whose state is divided among ranks, of which there is one."""

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.optim import ZeroRedundancyOptimizer


def test_one_rank_has_the_optimizer_that_was_asked_for():
    parameter = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        ZeroRedundancyOptimizer([parameter], torch.optim.SGD, lr=0.5)
    dist.init_process_group(rank=0, world_size=1)
    try:
        optimizer = ZeroRedundancyOptimizer([parameter], torch.optim.SGD, lr=0.5, momentum=0.9)
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        other = torch.nn.Parameter(torch.zeros(1))
        optimizer.add_param_group({"params": [other], "lr": 0.25})
        (parameter.sum() + other.sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
        optimizer.consolidate_state_dict()
        again = ZeroRedundancyOptimizer([parameter], torch.optim.SGD, lr=1.0, momentum=0.9)
        state = optimizer.state_dict()
        assert list(state["state"]) == [0, 1]
        with pytest.raises(ValueError, match="different number of parameter groups"):
            again.load_state_dict(state)
    finally:
        dist.destroy_process_group()
    assert parameter.tolist() == [0.5, 0.5]
    assert other.tolist() == [-0.25]
