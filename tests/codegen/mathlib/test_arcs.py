"""asin, acos, atan: at most 1 ulp; atan2: 1 ulp in float32, 2 in float64; quadrants as C's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau.base import dtypes
from tests.codegen.math_support import KINDS, NUMPY, spread, word, worst_ulp

RANGES = {
    "asin": ((-1, 1), (0.4, 0.6), (0.999, 1)),
    "acos": ((-1, 1), (0.4, 0.6), (0.999, 1), (-1, -0.999)),
    "atan": ((-1, 1), (-5, 5), (0.4, 2.5), (0, 1e30)),
}


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", RANGES)
def test_error(name, of):
    worst, where = worst_ulp(name, of, spread(of, *RANGES[name], count=250))
    assert worst <= 1.0, where


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_atan2_error(of):
    across = spread(of, (-2, 2), (-1e4, 1e4))
    along = np.roll(spread(of, (-2, 2), (-1e4, 1e4), seed=3), 7)
    worst, where = worst_ulp("atan2", of, across, along)
    assert worst <= (1.0 if of is dtypes.float32 else 2.0), where


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_atan2_knows_its_quadrant(of):
    y = [0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 1.0, math.inf, -math.inf, 1.0]
    x = [1.0, 1.0, -1.0, -0.0, 0.0, -0.0, -1.0, -math.inf, math.inf, -math.inf]
    angles = np.array([math.atan2(*each) for each in zip(y, x, strict=True)]).astype(NUMPY[of])
    measured = word("atan2", of, np.array(y), np.array(x))
    assert measured.tolist() == angles.tolist()
    assert np.signbit(measured).tolist() == np.signbit(angles).tolist()
