"""Orthogonal polynomials against closed forms and against each other."""

import math

import pytest

import flambeau as torch

X = [-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("chebyshev_polynomial_t", lambda x: 4 * x**3 - 3 * x),
        ("chebyshev_polynomial_u", lambda x: 8 * x**3 - 4 * x),
        ("chebyshev_polynomial_v", lambda x: 8 * x**3 - 4 * x**2 - 4 * x + 1),
        ("chebyshev_polynomial_w", lambda x: 8 * x**3 + 4 * x**2 - 4 * x - 1),
        ("hermite_polynomial_h", lambda x: 8 * x**3 - 12 * x),
        ("hermite_polynomial_he", lambda x: x**3 - 3 * x),
        ("laguerre_polynomial_l", lambda x: (-(x**3) + 9 * x**2 - 18 * x + 6) / 6),
        ("legendre_polynomial_p", lambda x: (5 * x**3 - 3 * x) / 2),
    ],
)
def test_third_degree(name, wanted):
    polynomial = getattr(torch.special, name)
    x = torch.tensor(X, dtype=torch.float64)
    assert polynomial(x, 3).tolist() == pytest.approx([wanted(value) for value in X])
    assert polynomial(x, 0).tolist() == [1.0] * len(X)
    assert polynomial(x, -1).tolist() == [0.0] * len(X)
    if name.startswith("chebyshev"):
        shifted = getattr(torch.special, f"shifted_{name}")
        assert shifted((x + 1) / 2, 3).tolist() == pytest.approx([wanted(value) for value in X])


@pytest.mark.parametrize("letter", "tuvw")
def test_closed_forms_continue_the_recurrence(letter):
    """Degrees 20 and 21 inside -1 .. 1 give 22 as the recurrence has it."""
    polynomial = getattr(torch.special, f"chebyshev_polynomial_{letter}")
    x = torch.tensor([-1.0, -0.7, 0.1, 0.9, 1.0], dtype=torch.float64)
    wanted = 2 * x * polynomial(x, 21) - polynomial(x, 20)
    assert polynomial(x, 22).tolist() == pytest.approx(wanted.tolist(), abs=1e-12)


def test_degrees_broadcast_and_are_cut():
    x = torch.tensor([[0.5], [2.0]])
    found = torch.special.legendre_polynomial_p(x, torch.tensor([1.7, -2.0, 2.0]))
    assert found.tolist() == [[0.5, 0.0, -0.125], [2.0, 0.0, 5.5]]
    assert torch.special.chebyshev_polynomial_t(2, torch.tensor([1, 2])).tolist() == [2.0, 7.0]


def test_hermites_end():
    found = torch.special.hermite_polynomial_h(torch.tensor([0.5]), torch.tensor([2, 129]))
    assert found[0] == -1
    assert math.isnan(found[1])


def test_refusals():
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        torch.special.laguerre_polynomial_l(torch.ones(2).half(), 2)
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        torch.special.laguerre_polynomial_l(2, 3)
