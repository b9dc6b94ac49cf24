"""Modules whose parameters are divided among one rank."""

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._composable.fsdp import fully_shard
from flambeau.distributed.fsdp import FSDPModule, FullyShardedDataParallel, MixedPrecisionPolicy


def test_one_rank_has_all_parameters():
    module, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        fully_shard(module)
    dist.init_process_group(rank=0, world_size=1)
    try:
        want = module(x)
        assert fully_shard(module, mp_policy=MixedPrecisionPolicy()) is module
        assert isinstance(module, FSDPModule)
        assert type(module).__name__ == "FSDPLinear"
        wrapped = FullyShardedDataParallel(module)
        assert wrapped.module is module
        assert torch.equal(wrapped(x), want)
        wrapped(x).sum().backward()
        assert wrapped.clip_grad_norm_(1.0).item() > 1.0
    finally:
        dist.destroy_process_group()
