"""Which phases ask for the next row."""

from __future__ import annotations

import re

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import nest_text
from flambeau.codegen.loops import Access, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import BUILDER as k
from tests.codegen.nest_reference import Binding, Buffer, Problem, check
from tests.codegen.nest_text.phases_support import AWAY, F32, SQUARES, SUM, X, reduced

RESULT = Phase((Store(1, k.mul(AWAY, reduced(1))),))
EXPONENTIALS = Phase((Reduce(1, "sum", k.exp(AWAY)),))


def requests(n_outer: int, *phases: Phase, bits: int = 512, stored: dtype = F32) -> tuple[int, int]:
    """Lines asked for in a step: (always, where the step stores past the caches)."""
    nest = Nest("rows", n_outer, (Access(F32), Access(stored)), phases)
    text = nest_text.kernel_text(nest, bits, "f")
    total = text.count("call void @llvm.prefetch")
    past = re.findall(r"^past\d+:\n(.*?)br label", text, re.DOTALL | re.MULTILINE)
    beside = "".join(past).count("call void @llvm.prefetch")
    return total - beside, beside


@pytest.mark.parametrize(("bits", "lines"), [(512, 2), (256, 1)])
def test_the_second_phase_asks(bits: int, lines: int) -> None:
    """For the next row, and where that one is begun, for the one after it."""
    assert requests(1, SUM, EXPONENTIALS, RESULT, bits=bits) == (2 * lines, 0)


def test_a_short_second_phase_leaves_half_to_stores_past_the_caches() -> None:
    assert requests(1, SUM, SQUARES, RESULT) == (4, 1)
    halves = Phase((Store(1, k.convert(k.mul(AWAY, reduced(1)), dtypes.bfloat16)),))
    assert requests(1, SUM, SQUARES, halves, stored=dtypes.bfloat16) == (4, 0)


def test_phases_that_store_ask_past_the_caches_or_where_they_begin_a_row() -> None:
    assert requests(1, SUM, Phase((Store(1, AWAY),))) == (2, 2)
    assert requests(1, Phase((Store(1, X),))) == (0, 0)
    assert requests(1, SUM) == (0, 0)


def test_one_row_has_no_next() -> None:
    assert requests(0, SUM, SQUARES, RESULT) == (0, 0)


@pytest.mark.parametrize("size", [5, 100, 5000])
def test_results_are_those_of_the_reference(size: int) -> None:
    nest = Nest("rows", 1, (Access(F32), Access(F32)), (SUM, SQUARES, RESULT))
    values = np.random.default_rng(size).standard_normal(3 * size).astype(np.float32)
    bindings = [Binding(Buffer(values), (size,)), Binding(Buffer(np.zeros_like(values)), (size,))]
    check(Problem(nest, size, bindings, (3,)), [1, 2])
