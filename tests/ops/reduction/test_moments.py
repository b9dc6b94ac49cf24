"""Variance far from zero: two corrected passes keep what one pass loses."""

import math
import random
from fractions import Fraction

import pytest

import flambeau as torch


def exact_variance(values):
    shares = [Fraction(value) for value in values]
    mean = sum(shares) / len(shares)
    return float(sum((each - mean) ** 2 for each in shares) / (len(shares) - 1))


@pytest.mark.parametrize("centre", [0.0, 1e3, 1e6])
def test_variance_far_from_zero(centre):
    """The spread of float32 numbers around 1e6 to seven digits."""
    draw = random.Random(3)
    numbers = torch.tensor([centre + draw.gauss(0, 1) for _ in range(4000)])
    expected = exact_variance(numbers.tolist())
    assert numbers.var().item() == pytest.approx(expected, rel=2e-7)
    assert numbers.std().item() == pytest.approx(expected**0.5, rel=2e-7)


def test_equal_numbers_have_no_variance():
    """What cancels is 0, never negative: its root is no NaN."""
    numbers = torch.full((1000,), 0.1)
    assert numbers.var().item() == 0
    assert numbers.std().item() == 0


def test_one_number_has_no_variance_to_estimate():
    """0 / 0 as in torch, and 0 without the correction."""
    single = torch.tensor([3.0])
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert single.var().isnan().item()
    assert single.var(correction=0).item() == 0


def test_integers_are_refused():
    """torch's sentence."""
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex"):
        torch.tensor([1, 2]).var()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.std(unbiased=True, correction=1),
        lambda x: torch.var(x, unbiased=False, correction=1),
        lambda x: torch.std_mean(x, 0, True, correction=0),
        lambda x: x.var(True, correction=2),
    ],
)
def test_the_divisor_is_said_in_one_way(call):
    with pytest.raises(TypeError, match=r"received an invalid combination of arguments - got"):
        call(torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_squares_beyond_float32(dtype, scale):
    """The deviation of numbers whose squares float32 does not hold; their variance, as far as it
    does."""
    numbers = torch.tensor([1.0, 2.0, 4.0]).mul(scale).to(dtype)
    expected = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64).std().item() * scale
    assert numbers.std().item() == pytest.approx(expected, rel=1e-2)
    assert numbers.var().item() == (math.inf if scale > 1 else 0.0)


def test_spread_and_mean_are_a_plain_tuple():
    """Unlike results of two names, such as max over a dim."""
    for call in (torch.var_mean, torch.std_mean):
        assert type(call(torch.ones(3))) is tuple
