"""Blocks in which ranks may have different numbers of inputs."""

import pytest

from flambeau import distributed as dist
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook


def test_one_rank_waits_for_nobody():
    class Own(Joinable):
        def join_hook(self, **kwargs):
            return JoinHook()

    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    dist.init_process_group(rank=0, world_size=1)
    try:
        with Join([Own()]) as join:
            assert join.notify_join_context(Own()) is None
    finally:
        dist.destroy_process_group()
    with pytest.raises(NotImplementedError):
        Joinable().join_hook()
