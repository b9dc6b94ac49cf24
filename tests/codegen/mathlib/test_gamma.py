"""lgamma, digamma: 1 ulp in float32. float64: lgamma 2.5 ulp above 0 and 4 on (-2, 0); below, and
for digamma everywhere, 6 units of the last place of the larger of 1 and the result: near a zero of
the function the error is absolute, as in every library but those of many digits."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.base import dtypes
from tests.codegen.math_support import exact, spread, word, worst_ulp


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_float32(name):
    values = spread(dtypes.float32, (0, 3), (-6, 0), (3, 40), (0, 1e6), count=60)
    # The numbers next to zeros of the functions, where an absolute error shows.
    zeros = np.array([1.4616321, -0.5040830, -2.4570248, -2.7476826, -3.1435809], np.float32)
    beside = [zeros, np.nextafter(zeros, np.float32(9)), np.nextafter(zeros, np.float32(-9))]
    values = np.concatenate([values, *beside])
    worst, where = worst_ulp(name, dtypes.float32, values)
    assert worst <= 1.0, where


@pytest.mark.parametrize(
    ("low", "high", "limit"), [(0, 3, 2.5), (3, 40, 2.5), (1, 1e30, 2.5), (-2, 0, 4)]
)
def test_lgamma_float64(low, high, limit):
    worst, where = worst_ulp("lgamma", dtypes.float64, spread(dtypes.float64, (low, high)))
    assert worst <= limit, where


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_absolute_error_float64(name):
    values = spread(dtypes.float64, (-6, 0), (0, 3), (3, 50), (1.4, 1.5), count=60)
    real = np.array([float(exact(name, dtypes.float64, v)) for v in values.tolist()])
    error = np.abs(word(name, dtypes.float64, values) - real)
    # Beside a pole the argument's own last place is what counts: pi / sin^2 of it, at most.
    beside = np.spacing(np.abs(values)) * np.pi**2 / np.sin(np.pi * values) ** 2 * (values < 0)
    assert (error <= 6 * np.spacing(np.maximum(1, np.abs(real))) + 2 * beside).all()
