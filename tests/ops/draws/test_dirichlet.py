"""The derivative of shares against differences of the distribution function, and through a draw."""

import mpmath
import pytest

import flambeau as torch

# torch's approximations are this good, measured against mpmath at 30 digits.
TOLERANCE = 3e-3
SHARES = [-0.00275752, -0.0644748, 0.0102227, -0.032828, -0.0221692, 0.000924481]
PAIR = [0.140672, -0.816105]


def exact(x, one, other):
    """-(dF/da) / (dF/dx) / (1 - x) of the regularized incomplete beta function."""
    slope = mpmath.diff(lambda a: mpmath.betainc(a, other, 0, x, regularized=True), one)
    density = mpmath.mpf(x) ** (one - 1) * (1 - mpmath.mpf(x)) ** (other - 1)
    return float(-slope / (density / mpmath.beta(one, other)) / (1 - mpmath.mpf(x)))


@pytest.mark.parametrize(
    ("x", "one", "other"),
    [(0.1, 0.5, 2.0), (0.3, 1.5, 4.0), (0.99, 2.0, 1.5), (0.95, 9.0, 1.2), (0.5, 4.0, 5.0),
     (0.6, 12.0, 3.0), (0.42, 20.0, 28.0), (0.4166, 20.0, 28.0), (0.7, 40.0, 15.0)],
)  # fmt: skip
def test_derivative(x, one, other):
    given = [torch.tensor([each], dtype=torch.float64) for each in (x, one, one + other)]
    assert torch._dirichlet_grad(*given).item() == pytest.approx(
        exact(x, one, other), rel=TOLERANCE
    )


def test_draws_have_the_gradients_of_torch():
    torch.manual_seed(0)
    shares = torch.tensor([[0.5, 2.0, 7.0], [1.0, 1.0, 30.0]], requires_grad=True)
    pair = torch.tensor([3.0, 0.7], requires_grad=True)
    drawn = torch.distributions.Dirichlet(shares).rsample()
    one = torch.distributions.Beta(pair[0], pair[1]).rsample((3,))
    ((drawn * torch.arange(3)).sum() + one.log().sum()).backward()
    assert shares.grad.reshape(-1).tolist() == pytest.approx(SHARES, rel=1e-3)
    assert pair.grad.tolist() == pytest.approx(PAIR, rel=1e-3)
