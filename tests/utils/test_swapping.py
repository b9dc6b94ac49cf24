"""Tensors that change places."""

import weakref

import pytest

import flambeau as torch


def test_everything_but_the_object_goes_over():
    one, other = torch.nn.Parameter(torch.ones(2)), torch.zeros(3)
    other.mark = 3
    torch.utils.swap_tensors(one, other)
    assert (type(one), type(other)) == (torch.Tensor, torch.nn.Parameter)
    assert (one.tolist(), one.mark, one.requires_grad) == ([0, 0, 0], 3, False)
    assert (other.tolist(), other.requires_grad) == ([1, 1], True)
    other.sum().backward()
    assert other.grad.tolist() == [1, 1]


def test_one_held_weakly_is_refused():
    one, other = torch.ones(2), torch.ones(2)
    held = weakref.ref(one)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref associated"):
        torch.utils.swap_tensors(one, other)
    assert held() is one


def test_a_graph_from_before_raises():
    one = torch.ones(2, requires_grad=True)
    total = one.sum()
    torch.utils.swap_tensors(one, torch.zeros(2))
    with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned"):
        total.backward()
