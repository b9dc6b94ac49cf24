"""Every math word: special values as C's, the same bits at every width, no narrow floats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.codegen import mathlib
from flambeau.codegen.exact_reader import ulp_error
from flambeau.codegen.vocabulary import BUILDER, MATH_WORDS
from tests.codegen.math_support import KINDS, NUMPY, describe, exact, special_values, spread, word

BINARY = ("pow", "atan2", "fmod")
# Beside special values most words are as good as anywhere; these are stated in their own files.
LOOSE = {"lgamma": 4.0, "digamma": 4.0, "erfinv": 2.0, "erfc": 2.0, "asinh": 2.0, "acosh": 2.0,
         "atanh": 2.0, "atan2": 2.0, "erf": 1.25, "fmod": 0.0}  # fmt: skip


# Beside zeros of these the error is absolute (mathlib/test_gamma.py).
ABSOLUTE = ("lgamma", "digamma")


def operands_of(name, of):
    values = special_values(of)
    if name not in BINARY:
        return (values,)
    pairs = np.array(list(itertools.product(values, values)), values.dtype)
    return pairs[:, 0], pairs[:, 1]


@pytest.mark.parametrize("of", KINDS, ids=repr)
@pytest.mark.parametrize("name", MATH_WORDS)
def test_special_values(name, of):
    """Zeros with their sign, infinities, NaN, denormals, thresholds; pow, atan2, fmod in pairs."""
    operands = operands_of(name, of)
    failures = []
    for answer, *each in zip(
        word(name, of, *operands).tolist(), *(o.tolist() for o in operands), strict=True
    ):
        real = exact(name, of, *each)
        if name in ABSOLUTE and abs(answer - float(real)) <= 4 * np.finfo(NUMPY[of]).eps:
            continue
        if ulp_error(answer, real, of) > LOOSE.get(name, 1.0):
            failures.append((name, *each, "gives", answer, "not", float(real)))
    assert not failures, describe(failures)


@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_width_changes_no_bit(of):
    """16 and 32 lanes, and every place in a vector, give one result."""
    unsigned = np.uint32 if of is dtypes.float32 else np.uint64
    values = np.concatenate([special_values(of), spread(of, (-3, 3), (0, 100), count=40)])
    values = np.concatenate([values, spread(of, (-110, -80), (-1080, -700), count=40)])
    for name in ("exp", "exp2", "log", "sin", "tanh", "erf", "pow", "fmod", "lgamma"):
        inputs = (values, values[::-1].copy()) if name in BINARY else (values,)
        narrow = word(name, of, *inputs)
        wide = word(name, of, *inputs, vector_bits=512)
        shifted = word(name, of, *(np.roll(each, 5) for each in inputs))
        for other in (wide, np.roll(shifted, -5)):
            same = narrow.view(unsigned) == other.view(unsigned)
            assert (same | np.isnan(narrow) & np.isnan(other)).all(), name


def test_narrow_floats_are_refused():
    operand = BUILDER.apply("load", (), dtypes.bfloat16, 0)
    with pytest.raises(TypeError, match="exp of bfloat16: math words take float32 or float64"):
        mathlib.expand(BUILDER, "exp", (operand,))


@pytest.mark.parametrize(
    ("name", "most"),
    [("exp", 22), ("tanh", 32), ("sigmoid", 38), ("log", 32), ("erf", 36), ("exp2", 23)],
)
def test_hot_words_stay_short(name, most):
    """Words of float32 that softmax, GELU and cross entropy are made of, in instructions: a word
    of float64 takes two for as many elements; bitcasts and literals are free."""
    pending = [mathlib.expand(BUILDER, name, (BUILDER.apply("number", (), dtypes.float32, 0),))]
    words = set()
    while pending:
        each = pending.pop()
        if each not in words:
            words.add(each)
            pending += each.arguments
    free = ("bitcast", "constant", "number")
    taken = [2 if each.dtype.itemsize == 8 else 1 for each in words if each.word not in free]
    assert sum(taken) <= most
