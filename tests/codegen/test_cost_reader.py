"""Costs count distinct plain words, bytes loaded and values held at once."""

from __future__ import annotations

import pytest

from flambeau.base import dtypes
from flambeau.codegen import mathlib
from flambeau.codegen.cost_reader import Cost, cost, math_cost
from flambeau.codegen.vocabulary import BUILDER, MATH_WORDS


def load(i=0, of=dtypes.float32):
    return BUILDER.apply("load", (), of, i)


def test_shared_parts_count_once():
    k = BUILDER
    square = k.mul(load(), load())
    assert cost(square) == Cost(operations=1, loads=4, live=1)
    assert cost(k.add(square, square)) == Cost(2, 4, 1)
    assert cost(k.add(square, k.neg(square))) == Cost(3, 4, 2)


def test_loads_are_in_bytes_and_each_once():
    k = BUILDER
    total = k.add(load(0), k.add(load(1), load(0)))
    assert cost(total).loads == 8
    assert cost(k.convert(load(2, dtypes.bfloat16), dtypes.float32)).loads == 2


def test_leaves_literals_and_bitcasts_are_free():
    k = BUILDER
    assert cost(load()) == Cost(0, 4, 1)
    assert cost(k.bitcast(load(), dtypes.int32)).operations == 0
    assert cost(k.add(load(), 1.0)) == Cost(1, 4, 1)


def test_float64_takes_two_registers():
    k = BUILDER
    a, b = load(0, dtypes.float64), load(1, dtypes.float64)
    assert cost(k.add(a, b)) == Cost(1, 16, 4)


def test_results_together_share():
    k = BUILDER
    square = k.mul(load(), load())
    assert cost(k.add(square, 1.0), k.sub(square, 1.0)).operations == 3


@pytest.mark.parametrize("of", [dtypes.float32, dtypes.float64], ids=repr)
@pytest.mark.parametrize("name", MATH_WORDS)
def test_a_math_word_costs_its_expansion(name, of):
    operands = tuple(load(i, of) for i in range(2 if name in ("pow", "atan2", "fmod") else 1))
    expanded = mathlib.expand(BUILDER, name, operands)
    whole = cost(BUILDER.apply(name, operands, of))
    assert whole.operations == cost(expanded).operations == math_cost(name, of).operations
    assert 10 < whole.operations < 250
    assert abs(whole.live - cost(expanded).live) <= 2 * len(operands)


def test_deep_chains_do_not_recurse():
    k = BUILDER
    value = load()
    for _ in range(5000):
        value = k.add(value, load(1))
    assert cost(value) == Cost(5000, 8, 2)


def test_what_was_weighed_is_remembered():
    expression = BUILDER.tanh(BUILDER.add(load(), 2.0))
    assert cost(expression) is cost(expression)
