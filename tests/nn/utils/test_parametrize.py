"""Parametrizations: names, checks both ways, caching, removal, copies."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


class RankOne(nn.Module):
    def forward(self, x, y):
        return x[:, None] * y[None, :]

    def right_inverse(self, z):
        return z[:, 0].clone(), torch.ones(z.shape[1])


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_one_original_goes_on_as_the_same_parameter():
    layer = nn.Linear(3, 3)
    before = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.parametrizations.weight.original is before
    assert torch.equal(layer.weight, layer.weight.T)
    assert type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer.weight.sum().backward()
    assert before.grad is not None
    assert before.grad[1, 0] == 0
    assert before.grad[0, 1] == 2


def test_several_originals_are_parameters_of_their_own():
    layer = parametrize.register_parametrization(nn.Linear(3, 2), "weight", RankOne(), unsafe=True)
    assert [name for name, _ in layer.named_parameters()] == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1",
    ]  # fmt: skip
    layer.weight = torch.ones(2, 3)
    assert torch.equal(layer.weight, torch.ones(2, 3))


def test_parametrizations_are_applied_in_order_and_undone_in_reverse():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Doubled())
    original = layer.parametrizations.weight.original.detach().clone()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    expected = 2 * original
    assert torch.equal(layer.weight, expected.triu() + expected.triu(1).mT)
    with pytest.raises(RuntimeError, match="Doubled does not implement right_inverse"):
        layer.weight = torch.ones(2, 2)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert torch.equal(layer.weight, expected.triu() + expected.triu(1).mT)
    assert list(layer.state_dict()) == ["bias", "weight"]


def test_cached_computes_once():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    assert layer.weight is not layer.weight
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def test_a_copy_has_its_own_originals_and_a_pickle_is_refused():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.parametrizations.weight.original.zero_()
    assert float(other.weight.sum()) == 0.0
    assert bool(torch.ne(layer.weight, 0).any())
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)


def test_leaving_the_original():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is weight
    parametrize.register_parametrization(layer, "weight", RankOne(), unsafe=True)
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)


def test_transfer():
    source = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    target = nn.Linear(2, 2)
    parametrize.transfer_parametrizations_and_params(source, target)
    assert torch.equal(target.weight, source.weight)


class Wider(nn.Module):
    def forward(self, x):
        return torch.cat([x, x])


class Number(nn.Module):
    def forward(self, x):
        return 1.0


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda n: parametrize.register_parametrization(n, "w", Doubled()), "does not have a par"),
        (lambda n: parametrize.register_parametrization(n, "weight", Wider()), "change the shape"),
        (lambda n: parametrize.register_parametrization(n, "weight", Number()), "return a tensor"),
        (lambda n: parametrize.remove_parametrizations(n, "bias"), "not have a parametrization on"),
    ],
)
def test_what_does_not_fit_is_refused(act, message):
    for layer in (
        nn.Linear(2, 2),
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled()),
    ):
        with pytest.raises(ValueError, match=message):
            act(layer)
