"""Divergences between families against torch's, and where they are infinite."""

from __future__ import annotations

import math

import pytest

import flambeau as torch

INF = math.inf
ARGUMENTS = {
    "Bernoulli": (0.3,), "Beta": (2.0, 3.0), "Binomial": (4.0, 0.3), "ContinuousBernoulli": (0.3,),
    "Exponential": (1.5,), "Gamma": (2.5, 1.5), "Gumbel": (0.5, 2.0), "Laplace": (0.5, 2.0),
    "Normal": (0.5, 2.0), "Pareto": (1.5, 3.5), "Poisson": (2.5,), "Uniform": (0.25, 0.75),
}  # fmt: skip
# What torch 2.13 gives in float64.
EXPECTED = {
    "Bernoulli": {"Poisson": 1.614248478383},
    "Beta": {
        "ContinuousBernoulli": 0.179912987001,
        "Exponential": 0.42944154168,
        "Gamma": 1.730926749991,
        "Normal": 1.853242363553,
        "Pareto": INF,
        "Uniform": INF,
    },
    "ContinuousBernoulli": {
        "Exponential": 0.26925484584,
        "Normal": 1.652133672441,
        "Pareto": INF,
        "Uniform": INF,
    },
    "Exponential": {
        "Beta": INF,
        "ContinuousBernoulli": INF,
        "Gamma": 1.150506367825,
        "Gumbel": 1.144964684517,
        "Normal": 1.076578599651,
        "Pareto": INF,
        "Uniform": INF,
    },
    "Gamma": {
        "Beta": INF,
        "ContinuousBernoulli": INF,
        "Exponential": 0.770052090495,
        "Gumbel": 0.577496941847,
        "Normal": 0.596630690146,
        "Pareto": INF,
        "Uniform": INF,
    },
    "Gumbel": {
        "Beta": INF,
        "ContinuousBernoulli": INF,
        "Exponential": INF,
        "Gamma": INF,
        "Normal": 0.330778863631,
        "Pareto": INF,
        "Uniform": INF,
    },
    "Laplace": {
        "Beta": INF,
        "ContinuousBernoulli": INF,
        "Exponential": INF,
        "Gamma": INF,
        "Normal": 0.225791352645,
        "Pareto": INF,
        "Uniform": INF,
    },
    "Normal": {
        "Beta": INF,
        "ContinuousBernoulli": INF,
        "Exponential": INF,
        "Gamma": INF,
        "Gumbel": 0.229782737495,
        "Laplace": 0.072093208158,
        "Pareto": INF,
        "Uniform": INF,
    },
    "Pareto": {
        "Beta": INF,
        "ContinuousBernoulli": INF,
        "Exponential": 2.306118466565,
        "Gamma": 0.945834584142,
        "Normal": 1.598669288438,
        "Uniform": INF,
    },
    "Poisson": {"Bernoulli": INF, "Binomial": INF},
    "Uniform": {
        "Beta": 0.423368315125,
        "ContinuousBernoulli": 0.722883303812,
        "Exponential": 1.037682072452,
        "Gamma": 1.821731172939,
        "Gumbel": 2.388900563049,
        "Normal": 2.307837060991,
        "Pareto": INF,
    },
}
PAIRS = [(p, q, value) for p, row in EXPECTED.items() for q, value in row.items()]


def made(name):
    arguments = [torch.tensor(each, dtype=torch.float64) for each in ARGUMENTS[name]]
    return getattr(torch.distributions, name)(*arguments)


@pytest.mark.parametrize(("p", "q", "expected"), PAIRS, ids=[f"{p}-{q}" for p, q, _ in PAIRS])
def test_as_torch(p, q, expected):
    found = torch.distributions.kl_divergence(made(p), made(q)).item()
    assert found == pytest.approx(expected, rel=1e-9)


def test_where_there_is_no_mass():
    """A divergence is infinite where the second has no mass, or the first no moment."""
    d, t = torch.distributions, torch.tensor
    low = t([-0.5, 0.0, 0.5])
    for q in (d.Exponential(1.0), d.Gamma(2.0, 1.0), d.Beta(2.0, 2.0)):
        found = d.kl_divergence(d.Uniform(low, low + 0.5), q)
        assert found.isinf().tolist() == [True, False, False]
    assert d.kl_divergence(d.Uniform(low, 2.0), d.Beta(2.0, 2.0)).isinf().all()
    assert d.kl_divergence(d.Pareto(1.0, t([0.5, 1.0, 1.5])), d.Exponential(1.0)).isinf().tolist() \
        == [True, True, False]  # fmt: skip
    assert d.kl_divergence(d.Pareto(1.0, t([1.5, 2.5])), d.Normal(0.0, 1.0)).isinf().tolist() == [
        True, False,
    ]  # fmt: skip


def test_heirs_are_of_their_family():
    class Own(torch.distributions.Exponential):
        pass

    expected = EXPECTED["Exponential"]["Gamma"]
    own = Own(torch.tensor(1.5, dtype=torch.float64))
    assert torch.distributions.kl_divergence(own, made("Gamma")).item() == pytest.approx(expected)
