"""Subclasses of Tensor: made over memory that is there, copied and pickled as what they are."""

import copy

import pytest

import flambeau as torch


class Length(torch.Tensor):
    """A subclass without members of its own."""


class Manifold(torch.nn.Parameter):
    """A parameter with more than its data, as libraries make it."""

    def __new__(cls, data, name=None):
        made = torch.Tensor._make_subclass(cls, data, True)
        made.name_of = name
        return made


def test_over_the_memory_of_a_tensor():
    plain = torch.ones(3)
    made = torch.Tensor._make_subclass(Length, plain, True)
    assert (type(made), made.requires_grad, made.is_leaf) == (Length, True, True)
    assert made.data_ptr() == plain.data_ptr()
    assert repr(made) == "Length([1., 1., 1.], requires_grad=True)"


def test_history_is_kept():
    x = torch.ones(2, requires_grad=True)
    (x.as_subclass(Length) * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_of_the_subclass(copied):
    made = copied(torch.ones(2).as_subclass(Length))
    assert type(made) is Length
    assert made.tolist() == [1.0, 1.0]


def test_a_module_trains_a_parameter_of_a_subclass():
    layer = torch.nn.Linear(2, 1)
    layer.weight = Manifold(torch.ones(1, 2), "plane")
    assert dict(layer.named_parameters())["weight"].name_of == "plane"
    optimizer = torch.optim.SGD(layer.parameters(), 0.5)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [[0.5, 0.5]]
