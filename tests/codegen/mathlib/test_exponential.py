"""exp, exp2, expm1, log, log2, log10, log1p, pow: at most 1 ulp, exact thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau.base import dtypes
from tests.codegen.math_support import KINDS, NUMPY, spread, word, worst_ulp

RANGES = {
    "exp": ((-1, 1), (-104, 89), (-745, 710)),
    "exp2": ((-1, 1), (-150, 128), (-1075, 1024)),
    "expm1": ((-1, 1), (-40, 89), (-745, 710)),
    "log": ((0.5, 2), (0, 1e-3), (0, 1e30)),
    "log2": ((0.5, 2), (0, 1e-3), (0, 1e30)),
    "log10": ((0.5, 2), (0, 1e-3), (0, 1e30)),
    "log1p": ((-1, 1), (-1e-3, 1e-3), (0, 1e30)),
}


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", RANGES)
def test_error(name, of):
    worst, where = worst_ulp(name, of, spread(of, *RANGES[name], count=300))
    assert worst <= 1.0, where


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_pow_error(of):
    bases = np.concatenate([spread(of, (0, 3), (0, 1e4)), 1 + spread(of, (-1e-2, 1e-2))])
    powers = np.resize(spread(of, (-30, 30), (-700, 700), seed=2), bases.size)
    worst, where = worst_ulp("pow", of, bases.astype(NUMPY[of]), powers)
    assert worst <= 1.0, where


def test_float32_through_float64_is_nearly_correctly_rounded():
    for name in ("expm1", "log2", "log10", "log1p", "pow"):
        inputs = [spread(dtypes.float32, (0.1, 3))] * (2 if name == "pow" else 1)
        worst, where = worst_ulp(name, dtypes.float32, *inputs)
        assert worst <= 0.51, (name, where)


@pytest.mark.parametrize(
    ("of", "largest", "least"),
    [
        (dtypes.float32, 88.72283172607422, -103.97207641601562),
        (dtypes.float64, 709.782712893384, -745.1332191019411),
    ],
)
def test_exp_overflows_and_vanishes_where_it_must(of, largest, least):
    kind = NUMPY[of]
    ends = np.array([largest, least], kind)
    beyond = np.nextafter(ends, np.array([math.inf, -math.inf], kind))
    finite, smallest = word("exp", of, ends).tolist()
    assert math.isfinite(finite)
    assert smallest == float(np.finfo(kind).smallest_subnormal)
    assert word("exp", of, beyond).tolist() == [math.inf, 0.0]


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_whole_powers_of_two_are_exact(of):
    bits = np.arange(-149 if of is dtypes.float32 else -1074, 128, dtype=NUMPY[of])
    assert (word("exp2", of, bits) == np.ldexp(NUMPY[of](1), bits.astype(int))).all()
    assert (word("log2", of, np.ldexp(NUMPY[of](1), bits.astype(int))) == bits).all()
