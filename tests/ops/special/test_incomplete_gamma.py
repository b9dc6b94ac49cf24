"""Incomplete gamma functions at values worked out with mpmath, at their ends, and their slopes."""

import math

import pytest

import flambeau as torch

INF, NAN = math.inf, math.nan
# shape, argument, lower, upper: each of the four formulas, and where they meet.
VALUES = [
    (0.5, 0.3, 0.5614219739190002, 0.4385780260809999),
    (1e-06, 0.3, 0.9999990943231863, 9.056768136855656e-07),
    (1.4, 1.05, 0.4863236619181701, 0.5136763380818299),
    (3.0, 0.01, 1.654216528074877e-07, 0.9999998345783472),
    (20.0, 19.5, 0.48485574668593734, 0.5151442533140627),
    (20.0, 30.0, 0.9781265315586092, 0.021873468441390854),
    (140.0, 120.0, 0.04008269926740255, 0.9599173007325974),
    (149.0, 150.0, 0.5434136392061962, 0.45658636079380377),
    (151.0, 150.0, 0.47830282029252313, 0.5216971797074769),
    (1000.0, 1100.0, 0.99894067674607, 0.0010593232539299773),
    (100000.0, 99500.0, 0.05674182321279226, 0.9432581767872077),
    (100000.0, 60000.0, 0.0, 1.0),
    (300.0, 500.0, 1.0, 1.6933836864708698e-22),
    (0.2, 40.0, 1.0, 4.7454722107635444e-20),
]
ENDS = [
    (0.0, 1.0, 1.0), (1.0, 0.0, 0.0), (INF, 1.0, 0.0), (1.0, INF, 1.0), (0.0, INF, 1.0),
    (0.0, 0.0, NAN), (INF, INF, NAN), (-1.0, 1.0, NAN), (1.0, -1.0, NAN), (NAN, 1.0, NAN),
]  # fmt: skip


def of(function, a, x, dtype=torch.float64):
    return function(torch.tensor(a, dtype=dtype), torch.tensor(x, dtype=dtype)).item()


@pytest.mark.parametrize(("a", "x", "lower", "upper"), VALUES)
def test_values(a, x, lower, upper):
    assert of(torch.igamma, a, x) == pytest.approx(lower, rel=1e-10, abs=1e-300)
    assert of(torch.igammac, a, x) == pytest.approx(upper, rel=1e-10, abs=1e-300)
    assert of(torch.igamma, a, x, torch.float32) == pytest.approx(lower, rel=1e-3, abs=1e-30)


@pytest.mark.parametrize(("a", "x", "lower"), ENDS)
def test_ends(a, x, lower):
    assert of(torch.special.gammainc, a, x) == pytest.approx(lower, nan_ok=True)
    assert of(torch.special.gammaincc, a, x) == pytest.approx(1 - lower, nan_ok=True)


def test_only_the_argument_has_a_slope():
    a, x = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0], requires_grad=True)
    torch.igamma(a, x).sum().backward()
    assert x.grad.tolist() == pytest.approx([math.exp(-1), 2 * math.exp(-2)])
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not"):
        torch.igamma(a.requires_grad_(), x).sum().backward()


def test_the_gamma_distribution_has_a_distribution_function():
    drawn = torch.distributions.Gamma(2.0, 3.0)
    value = torch.tensor([0.5, 2.0])
    wanted = [1 - math.exp(-3 * v) * (1 + 3 * v) for v in value.tolist()]
    assert drawn.cdf(value).tolist() == pytest.approx(wanted)
    chi = torch.distributions.Chi2(4.0).cdf(torch.tensor(3.0)).item()
    assert chi == pytest.approx(1 - math.exp(-1.5) * 2.5)
