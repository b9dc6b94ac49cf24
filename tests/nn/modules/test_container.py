"""Containers behave like the sequences and dictionaries they stand for."""

import copy
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn


def kinds(modules):
    return [type(each).__name__ for each in modules]


def test_sequential_is_a_sequence():
    made = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert kinds(made[1:]) == ["Tanh", "Sigmoid"]
    assert kinds(made + nn.Sequential(nn.GELU())) == ["ReLU", "Tanh", "Sigmoid", "GELU"]
    assert kinds(made * 2) == ["ReLU", "Tanh", "Sigmoid"] * 2
    made.insert(1, nn.ELU()).append(nn.GELU())
    assert kinds(made) == ["ReLU", "ELU", "Tanh", "Sigmoid", "GELU"]
    del made[0]
    assert list(made._modules) == ["0", "1", "2", "3"]
    made[0] = nn.Identity()
    assert type(made.pop(0)) is nn.Identity
    with pytest.raises(IndexError, match="index 9 is out of range"):
        made[9]
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        made + 3
    named = nn.Sequential(OrderedDict(one=nn.ReLU(), two=nn.Tanh()))
    assert type(named.two) is nn.Tanh


def test_lists_show_equal_neighbours_once():
    made = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert repr(made) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): ReLU()\n)"
    )
    made += [nn.Tanh()]
    assert kinds(made[:-1]) == ["Linear", "Linear", "ReLU"]
    assert len(list(made.parameters())) == 4
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        made.append(3)


def test_dictionaries_of_modules():
    made = nn.ModuleDict({"a": nn.ReLU()})
    made.update([("b", nn.Tanh())])
    assert list(made) == ["a", "b"]
    assert "b" in made
    assert type(made.pop("a")) is nn.ReLU
    with pytest.raises(ValueError, match="has length 3; 2 is required"):
        made.update([("a", nn.ReLU(), 1)])


def test_parameters_in_containers_are_registered():
    made = nn.ParameterList([torch.ones(2), 3, nn.Parameter(torch.ones(1, 3))])
    assert [name for name, _ in made.named_parameters()] == ["0", "2"]
    assert made[1] == 3
    assert repr(made).splitlines()[1:3] == [
        "    (0): Parameter containing: [torch.float32 of size 2]",
        "    (1): Object of type: int",
    ]
    table = nn.ParameterDict({"b": torch.ones(2), "a": torch.ones(1)})
    assert list(table) == ["a", "b"]  # a plain mapping goes in by key
    assert table.popitem()[0] == "b"
    again = copy.deepcopy(table)
    assert [name for name, _ in again.named_parameters()] == ["a"]
    with pytest.raises(RuntimeError, match=r"ParameterList should not be called\."):
        made(1)
