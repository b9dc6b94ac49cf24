"""Calls in other processes, of which there are none."""

from datetime import timedelta

from flambeau import distributed


def test_there_is_none_and_groups_wait_half_an_hour():
    assert distributed.rpc.is_available() is False
    assert not hasattr(distributed.rpc, "init_rpc")
    assert distributed.constants.default_pg_timeout == timedelta(minutes=30)
    assert distributed.ReduceOp.RedOpType is distributed.ReduceOp
