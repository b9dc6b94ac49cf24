"""The derivative of gamma variables against differences of the distribution function."""

import mpmath
import pytest

import flambeau as torch

# torch's approximations are this good, measured against mpmath at 30 digits.
TOLERANCE = 2e-3


def exact(shape, x):
    """-(dF/da) / (dF/dx) of the regularized incomplete gamma function."""
    slope = mpmath.diff(lambda a: mpmath.gammainc(a, 0, x, regularized=True), shape)
    density = mpmath.mpf(x) ** (shape - 1) * mpmath.exp(-x) / mpmath.gamma(shape)
    return float(-slope / density)


@pytest.mark.parametrize(
    ("shape", "x"),
    [(0.3, 0.1), (2.0, 0.5), (1.0, 1.5), (3.0, 2.0), (7.0, 9.0), (20.0, 20.5), (20.0, 30.0),
     (100.0, 80.0)],
)  # fmt: skip
def test_derivative(shape, x):
    pair = [torch.tensor([each], dtype=torch.float64) for each in (shape, x)]
    assert torch._standard_gamma_grad(*pair).item() == pytest.approx(exact(shape, x), rel=TOLERANCE)
