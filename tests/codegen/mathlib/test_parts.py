"""Polynomials agree with their coefficients; sums and products as pairs lose nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.codegen.mathlib import parts
from tests.codegen.math_support import run, spread


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9, 12])
def test_both_orders_of_a_polynomial(count):
    coefficients = tuple(1.0 / (3 + i) for i in range(count))
    x = spread(dtypes.float64, (-0.5, 0.5), count=20)
    expected = np.polynomial.polynomial.polyval(x, coefficients)
    for scheme in (parts.horner, parts.estrin):
        measured = run(lambda k, v, s=scheme: s(k, v, coefficients), dtypes.float64, x)
        assert np.allclose(measured, expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("name", ["any_sum", "two_product"])
def test_pairs_are_exact(name):
    a = spread(dtypes.float64, (-1, 1), (-1e10, 1e10), count=30)
    b = a[::-1].copy()
    high, low = (
        run(lambda k, x, y, i=i: getattr(parts, name)(k, x, y)[i], dtypes.float64, a, b)
        for i in (0, 1)
    )
    for x, y, big, small in zip(*(each.tolist() for each in (a, b, high, low)), strict=True):
        exact = Fraction(x) + Fraction(y) if name == "any_sum" else Fraction(x) * Fraction(y)
        assert Fraction(big) + Fraction(small) == exact


def test_split_gives_the_number_back():
    x = np.abs(spread(dtypes.float64, (0.1, 3), (0, 1e300)))
    exponent = run(lambda k, v: parts.split(k, v)[0], dtypes.float64, x)
    rest = run(lambda k, v: parts.split(k, v)[1], dtypes.float64, x)
    assert (np.abs(rest - 0.06) < 0.36).all()
    for value, e, f in zip(x.tolist(), exponent.tolist(), rest.tolist(), strict=True):
        assert Fraction(value) == Fraction(2) ** int(e) * (1 + Fraction(f))
