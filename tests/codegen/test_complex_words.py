"""Pairs of expressions: what the four operations spell out, and what has no meaning."""

import math

import pytest

import flambeau as torch
from flambeau.base import dtypes
from flambeau.codegen.complex_words import COMPLEX, Pair
from flambeau.codegen.vocabulary import BUILDER, expression

F32 = dtypes.float32
X, Y = (expression("load", (), F32, number) for number in (0, 1))
Z = Pair(X, Y, dtypes.complex64)


def test_real_words_are_those_of_the_builder():
    assert COMPLEX.add(X, Y) is BUILDER.add(X, Y)


def test_numbers_and_reals_become_complex_beside_complex_ones():
    assert COMPLEX.add(Z, 2).real is BUILDER.add(X, 2)
    assert COMPLEX.mul(Z, 1j).dtype is dtypes.complex64
    lifted = COMPLEX.add(X, Z)
    assert lifted.real is BUILDER.add(X, X)


def test_conversion():
    assert COMPLEX.convert(Z, dtypes.complex64) is Z
    assert COMPLEX.convert(Z, F32) is X
    truth = COMPLEX.convert(Z, dtypes.bool_)
    assert truth is BUILDER.or_(BUILDER.ne(X, 0), BUILDER.ne(Y, 0))


def test_words_without_a_meaning():
    for word in ("lt", "max", "floor", "erf"):
        with pytest.raises(TypeError, match="has no meaning for complex numbers"):
            getattr(COMPLEX, word)(Z) if word in ("floor", "erf") else getattr(COMPLEX, word)(Z, Z)


def test_a_number_times_its_conjugate_is_real():
    z = torch.randn(1000, dtype=torch.complex64)
    assert torch.equal((z * z.conj()).imag, torch.zeros(1000))


def test_quotients_neither_overflow_nor_lose():
    big = torch.tensor([1e300 + 1e300j, 1e-300 - 1e-300j], dtype=torch.complex128)
    assert (big / big - 1).abs().max() < 1e-15
    assert (torch.tensor(3 + 4j) / 0).item() == complex(math.inf, math.inf)
    assert (torch.tensor(1 + 1j) / torch.tensor(complex(math.inf, 0))).item() == 0


def test_lengths():
    given = torch.tensor([3e200 + 4e200j, 3e-200 - 4e-200j, 0j], dtype=torch.complex128)
    assert given.abs().tolist() == pytest.approx([5e200, 5e-200, 0.0], rel=1e-15)
    assert torch.tensor(complex(math.inf, math.nan)).abs().item() == math.inf
