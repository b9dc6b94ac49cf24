"""sigmoid, tanh, sinh, cosh: at most 1 ulp; asinh, acosh, atanh: 2 ulp in float64, 1 in float32."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.base import dtypes
from tests.codegen.math_support import KINDS, spread, word, worst_ulp

RANGES = {
    "sigmoid": ((-1, 1), (-20, 20), (-104, 90), (-745, 40)),
    "tanh": ((-1, 1), (-1e-3, 1e-3), (-23, 23)),
    "sinh": ((-1, 1), (-3, 3), (-89, 89), (-710, 710)),
    "cosh": ((-1, 1), (-3, 3), (-89, 89), (-710, 710)),
    "asinh": ((-1, 1), (-30, 30), (0, 1e30)),
    "acosh": ((1, 1.1), (1, 30), (1, 1e30)),
    "atanh": ((-1, 1), (-1e-2, 1e-2)),
}
TWO = ("asinh", "acosh", "atanh")


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", RANGES)
def test_error(name, of):
    worst, where = worst_ulp(name, of, spread(of, *RANGES[name], count=250))
    assert worst <= (2.0 if name in TWO and of is dtypes.float64 else 1.0), where


def test_both_sides_of_the_border_of_tanh():
    """A polynomial up to 1, an exponential beyond: both are worst there."""
    worst, where = worst_ulp(
        "tanh", dtypes.float32, spread(dtypes.float32, (0.95, 1.05), count=4000)
    )
    assert worst <= 1.0, where


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_odd_functions_are_odd(of):
    """Bit for bit: the sign is put on last."""
    values = spread(of, (0, 5))
    for name in ("tanh", "sinh", "asinh"):
        assert (word(name, of, -values) == -word(name, of, values)).all(), name


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_limits_are_reached_and_not_passed(of):
    values = np.linspace(0, 60, 3000)
    assert word("tanh", of, values).max() == 1
    assert word("sigmoid", of, values).max() == 1
