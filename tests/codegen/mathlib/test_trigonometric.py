"""sin, cos, tan: at most 1 ulp for arguments of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau.base import dtypes
from tests.codegen.math_support import KINDS, NUMPY, spread, word, worst_ulp

RANGES = ((-1, 1), (-10, 10), (-1e5, 1e5), (-3e38, 3e38))
# The float64 and the float32 closest to multiples of pi/2, relative to their size.
HARDEST = {
    dtypes.float32: [16367173.0 * 2.0**72, 1.5707964, 3.1415927, 5.0706e30],
    dtypes.float64: [6381956970095103.0 * 2.0**797, math.pi, math.pi / 2, 1e22, 1.7e308, 2.0**1023],
}


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_error(name, of):
    ranges = RANGES if of is dtypes.float32 else (*RANGES, (-1e308, 1e308))
    worst, where = worst_ulp(name, of, spread(of, *ranges, count=150))
    assert worst <= (0.51 if of is dtypes.float32 else 1.0), where


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_the_hardest_arguments(name, of):
    whole = np.arange(1, 60) * (math.pi / 2)  # nearest numbers to multiples of pi/2
    exponents = 2.0 ** np.arange(-30, 127 if of is dtypes.float32 else 1023)
    values = np.concatenate([HARDEST[of], whole, exponents, 1.37 * exponents]).astype(NUMPY[of])
    worst, where = worst_ulp(name, of, values)
    assert worst <= 1.0, where


def test_sine_of_ten_to_the_22():
    assert word("sin", dtypes.float64, 1e22).tolist() == [-0.8522008497671888]
