"""Loads and stores of pairs: both halves of complex numbers in one move, each alone, and tails."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.loops import Access, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import Expression, expression
from tests.codegen.nest_reference import NUMPY, Binding, Buffer, Problem, check

SIZES = [*range(1, 71), 1000, 1023, 1024, 1025, 2049]


def load(number: int, of: dtype) -> Expression:
    return expression("load", (), of, number)


def pairs(of: dtype, count: int, seed: int) -> Buffer:
    generator = np.random.default_rng([seed, count])
    return Buffer(generator.standard_normal(2 * count).astype(NUMPY[of]))


def half(of: dtype, pair: int, part: int) -> Access:
    return Access(of, "pair", half=(pair, part))


@pytest.mark.parametrize("of", [dtypes.float32, dtypes.float64], ids=str)
def test_both_halves(of: dtype) -> None:
    accesses = (half(of, 0, 1), half(of, 0, 2), half(of, 1, 1), half(of, 1, 2))
    x, y = load(0, of), load(1, of)
    statements = (Store(2, k.sub(x, k.mul(y, y))), Store(3, k.mul(x, y)))
    nest = Nest("rows", 0, accesses, (Phase(statements),))
    for size in SIZES:
        given, made = pairs(of, size, 0), pairs(of, size, 1)
        bindings = [
            Binding(each, inner=2, offset=place) for each in (given, made) for place in (0, 1)
        ]
        check(Problem(nest, size, bindings, inner_block=32))


@pytest.mark.parametrize("part", [1, 2])
def test_one_half_alone(part: int) -> None:
    of = dtypes.float32
    accesses = (half(of, 0, part), half(of, 1, part), Access(of))
    value = k.mul(load(0, of), 3.0)
    nest = Nest("rows", 0, accesses, (Phase((Store(1, value), Store(2, value))),))
    for size in SIZES[::3]:
        bindings = [
            Binding(pairs(of, size, 0), inner=2, offset=part - 1),
            Binding(pairs(of, size, 1), inner=2, offset=part - 1),
            Binding(pairs(of, size, 2)),
        ]
        check(Problem(nest, size, bindings, inner_block=32))


def test_in_place_and_second_halves_first() -> None:
    of = dtypes.float64
    accesses = (half(of, 0, 2), half(of, 0, 1), half(of, 0, 2), half(of, 0, 1))
    y, x = load(0, of), load(1, of)
    nest = Nest("rows", 0, accesses, (Phase((Store(2, k.add(x, y)), Store(3, k.neg(y)))),))
    for size in SIZES[::5]:
        shared = pairs(of, size, 0)
        bindings = [Binding(shared, inner=2, offset=place) for place in (1, 0, 1, 0)]
        check(Problem(nest, size, bindings, inner_block=16))


def test_sums_of_halves() -> None:
    of = dtypes.float32
    total = expression("reduced", (), of, 0)
    accesses = (half(of, 0, 1), half(of, 0, 2), Access(of, row_level=True))
    product = k.mul(load(0, of), load(1, of))
    nest = Nest("rows", 1, accesses, (Phase((Reduce(0, "sum", product),), (Store(2, total),)),))
    for size in SIZES[::4]:
        given = pairs(of, 3 * size, 0)
        bindings = [Binding(given, (2 * size,), inner=2, offset=place) for place in (0, 1)]
        bindings.append(Binding(Buffer(np.zeros(3, NUMPY[of])), (1,)))
        check(Problem(nest, size, bindings, (3,)))
