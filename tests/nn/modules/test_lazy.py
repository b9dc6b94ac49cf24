"""Lazy layers: sizes from the first input, then the plain layer."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn


def made():
    return nn.Sequential(
        nn.LazyConv2d(4, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU(),
        nn.LazyConvTranspose2d(3, 2), nn.Flatten(), nn.LazyLinear(5, bias=False),
    )  # fmt: skip


def test_the_first_input_gives_the_sizes():
    net = made()
    assert nn.parameter.is_lazy(net[0].weight)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        net[0].weight.shape  # noqa: B018
    net(torch.randn(2, 3, 4, 4))
    assert [type(layer).__name__ for layer in net] == [
        "Conv2d", "BatchNorm2d", "ReLU", "ConvTranspose2d", "Flatten", "Linear",
    ]  # fmt: skip
    assert net[0].weight.shape == (4, 3, 3, 3)
    assert net[5].in_features == 75
    assert not any(map(nn.parameter.is_lazy, net.parameters()))
    assert type(net[0].weight) is nn.Parameter


def test_initial_values_are_the_plain_layers():
    torch.manual_seed(3)
    lazy = nn.LazyLinear(4)
    lazy(torch.ones(1, 3))
    torch.manual_seed(3)
    plain = nn.Linear(3, 4)
    assert torch.equal(lazy.weight, plain.weight)
    assert torch.equal(lazy.bias, plain.bias)


def test_loading_gives_the_sizes_too():
    net = made()
    net(torch.randn(2, 3, 4, 4))
    other = made()
    assert list(other.state_dict()) == list(net.state_dict())
    other.load_state_dict(net.state_dict())
    x = torch.randn(2, 3, 4, 4)
    assert torch.equal(other.eval()(x), net.eval()(x))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_is_as_lazy(copied):
    layer = nn.LazyLinear(2)
    other = copied(layer)
    other(torch.ones(1, 3))
    assert type(other) is nn.Linear
    assert type(layer) is nn.LazyLinear
    assert not other._forward_pre_hooks


def test_an_input_without_channels_is_refused():
    with pytest.raises(RuntimeError, match=r"Expected 3D .unbatched. or 4D .batched. input"):
        nn.LazyConv2d(2, 1)(torch.ones(3))
