"""Functions of complex numbers against mpmath: over the plane, near 1, at both sides of cuts."""

import cmath
import math

import mpmath
import pytest

import flambeau as torch

# Distance from the right answer, in units of its length.
LIMITS = {torch.complex64: 1.3e-7, torch.complex128: 4e-15}
REFERENCES = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "exp2": lambda z: mpmath.power(2, z),
    "log": mpmath.log, "log2": lambda z: mpmath.log(z, 2), "log10": lambda z: mpmath.log(z, 10),
    "log1p": lambda z: mpmath.log(1 + z), "sqrt": mpmath.sqrt,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z), "reciprocal": lambda z: 1 / z,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "asin": mpmath.asin,
    "acos": mpmath.acos, "atan": mpmath.atan, "asinh": mpmath.asinh, "acosh": mpmath.acosh,
    "atanh": mpmath.atanh, "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
}  # fmt: skip
POINTS = [
    complex(x, y)
    for x in (-30.5, -2.3, -1.25, -0.7, -1e-5, 1e-5, 0.3, 0.9999, 1.0001, 2.1, 41.0)
    for y in (-17.3, -1.5, -0.9, -1e-4, 1e-4, 0.2, 1.1, 3.0, 29.0)
]


@pytest.mark.parametrize("of", LIMITS, ids=str)
@pytest.mark.parametrize("name", REFERENCES)
def test_accuracy(name, of):
    given = torch.tensor(POINTS, dtype=of)
    with mpmath.workdps(40):
        for z, found in zip(given.tolist(), getattr(torch, name)(given).tolist(), strict=True):
            right = REFERENCES[name](mpmath.mpc(z))
            distance = abs(mpmath.mpc(found) - right)
            assert distance <= LIMITS[of] * abs(right), (name, z, found, right)


@pytest.mark.parametrize("of", LIMITS, ids=str)
def test_powers(of):
    bases, exponents = POINTS[3::7], POINTS[::9]
    limit = 3 * LIMITS[of]
    for exponent in (2, 3, -1, 0.5, 1.7, 1 + 2j, -0.3j):
        found = (torch.tensor(bases, dtype=of) ** exponent).tolist()
        for z, power in zip(torch.tensor(bases, dtype=of).tolist(), found, strict=True):
            right = mpmath.power(mpmath.mpc(z), exponent)
            assert abs(mpmath.mpc(power) - right) <= limit * 20 * abs(right), (z, exponent)
    small = torch.tensor([each / 20 for each in exponents], dtype=of)
    for z, power in zip(small.tolist(), ((1.5 - 0.5j) ** small).tolist(), strict=True):
        right = mpmath.power(mpmath.mpc(1.5, -0.5), mpmath.mpc(z))
        assert abs(mpmath.mpc(power) - right) <= limit * abs(right), z


def test_zero_and_its_powers():
    zero = torch.zeros(1, dtype=torch.complex128)
    assert (zero**0).item() == 1
    assert (zero**0j).item() == 1
    assert (zero ** (0.5 + 1j)).item() == 0
    assert torch.exp(zero).item() == 1
    assert torch.sqrt(zero).item() == 0


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "atanh", "acosh"])
def test_sides_of_the_cuts(name):
    """The sign of a zero imaginary part says on which side of a cut a number lies."""
    reference = getattr(cmath, name)
    for x in (-3.0, 2.5):
        for y in (0.0, -0.0):
            found = getattr(torch, name)(torch.tensor(complex(x, y), dtype=torch.complex128)).item()
            right = reference(complex(x, y))
            assert cmath.isclose(found, right, rel_tol=1e-14), (x, y, found, right)


def test_infinities_and_overflow():
    infinity = math.inf
    given = torch.tensor([complex(-infinity, 1.0), complex(1.0, infinity), complex(710.0, 0.0)])
    given = given.to(torch.complex128)
    assert torch.exp(given[0]).item() == 0
    assert torch.sqrt(given[1]).item() == complex(infinity, infinity)
    assert torch.tanh(given[2]).item() == 1
    assert abs(torch.log(torch.tensor(1e300 + 1e300j, dtype=torch.complex128)).item().real
               - 691.122) < 1e-3  # fmt: skip
