"""erf: 1 ulp in float32, 1.25 in float64; erfc and erfinv: 1 ulp in float32, 2 in float64."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.base import dtypes
from tests.codegen.math_support import KINDS, spread, word, worst_ulp

RANGES = {
    "erf": ((-1, 1), (0.7, 1.1), (-6, 6), (-1e-3, 1e-3)),
    "erfc": ((-1, 1), (0.5, 1.1), (-6, 6), (0, 10), (0, 27)),
    "erfinv": ((-1, 1), (0.9, 1), (-1e-3, 1e-3)),
}
LIMITS = {"erf": 1.25, "erfc": 2.0, "erfinv": 2.0}


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", RANGES)
def test_error(name, of):
    count = 80 if name == "erfinv" else 250
    worst, where = worst_ulp(name, of, spread(of, *RANGES[name], count=count))
    assert worst <= (1.0 if of is dtypes.float32 else LIMITS[name]), where


def test_erfinv_close_to_one():
    values = 1 - 2.0 ** -np.arange(1.0, 53.0)
    worst, where = worst_ulp("erfinv", dtypes.float64, values)
    assert worst <= 2.0, where


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_erf_is_odd_and_bounded(of):
    values = spread(of, (0, 7))
    measured = word("erf", of, values)
    assert (word("erf", of, -values) == -measured).all()
    assert measured.max() == 1
