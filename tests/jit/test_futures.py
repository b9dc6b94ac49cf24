"""Futures: set once, waited for, continued."""

import threading

import pytest

import flambeau as torch
from flambeau.futures import Future, collect_all, wait_all


def test_a_value_is_set_once():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    threading.Timer(0.01, future.set_result, (3,)).start()
    assert future.wait() == future.value() == 3
    with pytest.raises(RuntimeError, match="a completed Future as complete again"):
        future.set_result(4)


def test_exceptions_take_the_place_of_values():
    future = Future()
    later = future.then(lambda each: each.wait() + 1)
    future.set_exception(ValueError("told"))
    with pytest.raises(ValueError, match="told"):
        future.wait()
    with pytest.raises(RuntimeError, match="when running the callback: ValueError: told"):
        later.wait()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        Future().set_exception(3)


def test_callbacks_run_in_order_and_at_once_where_the_value_is_there():
    future, seen = Future[int](), []
    future.add_done_callback(lambda each: seen.append(each.value()))
    future.add_done_callback(lambda each: seen.append(-each.value()))
    future.set_result(1)
    future.add_done_callback(lambda each: seen.append(10))
    assert seen == [1, -1, 10]


def test_many():
    futures = [Future() for _ in range(3)]
    both = collect_all(futures)
    for n, each in enumerate(futures):
        assert not both.done()
        each.set_result(n)
    assert both.wait() == futures
    assert wait_all(futures) == [0, 1, 2]
    assert collect_all([]).wait() == []


def test_what_fork_gives_is_one():
    future = torch.jit.fork(lambda x: x + 1, torch.ones(1))
    assert isinstance(future, torch.futures.Future)
    assert torch.jit.wait(future).item() == 2.0
