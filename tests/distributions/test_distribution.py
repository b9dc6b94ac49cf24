"""Distributions against torch's recorded answers: draws, densities, moments, errors, gradients."""

import json
import math
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded.distribution_cases import CASES, answers

RECORDED = Path(__file__).parents[1] / "recorded"

ANSWERS = json.loads((RECORDED / "distributions.json").read_text(encoding="utf-8"))
PAIRS = [(name, text) for name, texts in CASES.items() for text in texts]
# torch computes in float32 by other formulas; the worst of them cancel.
TOLERANCE = 2e-5


def near(found, expected):
    if isinstance(expected, str) or isinstance(found, str):
        return found == expected
    if found["shape"] != expected["shape"]:
        return False
    pairs = zip(found["values"], expected["values"], strict=True)
    return all(
        a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= TOLERANCE * max(1, abs(b))
        for a, b in pairs
    )


@pytest.mark.parametrize(("name", "text"), PAIRS, ids=[f"{n}({t})" for n, t in PAIRS])
def test_answers_as_torch(name, text):
    expected = ANSWERS[f"{name}({text})"]
    found = answers(torch, name, text)
    assert found.keys() == expected.keys()
    wrong = {k: (found[k], expected[k]) for k in found if not near(found[k], expected[k])}
    assert not wrong


def test_every_recording_is_asked():
    assert ANSWERS.keys() == {f"{name}({text})" for name, text in PAIRS}


def test_torch_module_paths():
    from flambeau.distributions import one_hot_categorical, studentT
    from flambeau.distributions.normal import Normal

    assert studentT.StudentT is torch.distributions.StudentT
    assert one_hot_categorical.OneHotCategorical is torch.distributions.OneHotCategorical
    assert Normal is torch.distributions.Normal


def test_a_missing_distribution_says_so():
    with pytest.raises(AttributeError, match=r"no torch\.distributions\.Wishhart yet"):
        torch.distributions.Wishhart  # noqa: B018


def test_gamma_draws_have_gradients():
    shape = torch.tensor([0.5, 3.0, 30.0], requires_grad=True)
    torch.manual_seed(0)
    torch.distributions.Gamma(shape, torch.ones(3)).rsample((1000,)).mean(0).sum().backward()
    assert torch.allclose(shape.grad, torch.ones(3), atol=0.15)  # d mean / d shape is 1


@pytest.mark.parametrize(
    ("constraint", "size"),
    [("real", 3), ("positive", 3), ("unit_interval", 3), ("simplex", 3), ("lower_cholesky", 3),
     ("corr_cholesky", 3)],
)  # fmt: skip
def test_maps_onto_constrained_spaces(constraint, size):
    region = getattr(torch.distributions.constraints, constraint)
    onto = torch.distributions.transform_to(region)
    shape = (4, size, size) if constraint == "lower_cholesky" else (4, size)
    assert region.check(onto(torch.linspace(-2, 2, math.prod(shape)).reshape(shape))).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.ExpTransform(), lambda d: d.SigmoidTransform(), lambda d: d.TanhTransform(),
        lambda d: d.SoftplusTransform(), lambda d: d.AffineTransform(1.0, -2.0),
        lambda d: d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.ExpTransform()]),
    ],
)  # fmt: skip
def test_transforms_invert_and_their_determinants(make):
    transform = make(torch.distributions)
    x = torch.tensor([-1.0, -0.2, 0.3, 1.5], dtype=torch.float64, requires_grad=True)
    y = transform(x)
    assert torch.allclose(transform.inv(y), x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(transform.log_abs_det_jacobian(x, y), slope.abs().log())


def test_transforms_that_can_be_equal_have_no_hash():
    assert torch.distributions.ExpTransform() == torch.distributions.ExpTransform()
    with pytest.raises(TypeError, match="unhashable type: 'ExpTransform'"):
        hash(torch.distributions.ExpTransform())


def test_low_rank_and_full_covariances_diverge_as_two_full_ones_do():
    d = torch.distributions
    factor = torch.tensor([[1.0, 0.5], [0.0, 1.0], [0.3, 0.2]])
    low = d.LowRankMultivariateNormal(torch.ones(3), factor, torch.tensor([1.0, 0.5, 2.0]))
    full = d.MultivariateNormal(torch.ones(3), low.covariance_matrix)
    other = d.MultivariateNormal(torch.zeros(3), torch.eye(3) * 2)
    wanted = d.kl_divergence(full, other)
    assert torch.allclose(d.kl_divergence(low, other), wanted, atol=1e-6)
    assert torch.allclose(d.kl_divergence(other, low), d.kl_divergence(other, full), atol=1e-6)
    assert torch.allclose(low.scale_tril, full.scale_tril, atol=1e-6)
    assert torch.allclose(low.precision_matrix, full.precision_matrix, atol=1e-6)


def test_mixtures_expand():
    d = torch.distributions
    weights = d.Categorical(torch.tensor([0.3, 0.7]))
    made = d.MixtureSameFamily(weights, d.Normal(torch.tensor([0.0, 1.0]), 1.0)).expand((3,))
    assert (made.batch_shape, made.sample((2,)).shape) == ((3,), (2, 3))
    assert torch.allclose(made.mean, torch.tensor([0.7, 0.7, 0.7]))
    assert repr(made).startswith(
        "MixtureSameFamily(\n  Categorical(probs: torch.Size([3, 2]), logits"
    )


@pytest.mark.parametrize("constraint", ["lower_cholesky", "positive_definite"])
def test_maps_that_are_not_one_to_one(constraint):
    given = getattr(torch.distributions.constraints, constraint)
    assert not torch.distributions.transform_to(given).bijective
    with pytest.raises(NotImplementedError, match=r"Cannot transform .* constraints"):
        torch.distributions.biject_to(given)


@pytest.mark.parametrize("size", [2, 3])
def test_wishart_expands(size):
    made = torch.distributions.Wishart(torch.tensor(4.0), torch.eye(size)).expand((5, 2))
    with pytest.warns(UserWarning, match="Singular sample detected"):  # torch's check says so
        assert made.sample((3,)).shape == (3, 5, 2, size, size)
    assert torch.equal(made.mean[1, 1], torch.eye(size) * 4)
