"""fmod: exact, for every pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.codegen.math_support import KINDS, NUMPY, spread, word


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_it_is_exact(of):
    """Python's fmod is C's; a float32 remainder is exact in float64 too."""
    facts = np.finfo(NUMPY[of])
    random = np.random.default_rng(5)
    steep = (2.0 ** random.uniform(facts.minexp - 20, facts.maxexp - 1, 4000)).astype(NUMPY[of])
    near = spread(of, (-100, 100), (0, 1e-3), count=700)
    x = np.concatenate([steep[:2000], np.resize(near, 2000), near * NUMPY[of](1e4)])
    y = np.concatenate([steep[2000:], np.resize(near[::-1], 2000), near[::-1]])
    y = np.where(y == 0, NUMPY[of](1), y)
    expected = [math.fmod(*each) for each in zip(x.tolist(), y.tolist(), strict=True)]
    measured = word("fmod", of, x, y)
    assert measured.tolist() == expected
    assert np.signbit(measured).tolist() == [math.copysign(1, each) < 0 for each in expected]
