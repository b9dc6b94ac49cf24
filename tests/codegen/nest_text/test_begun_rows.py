"""Rows whose first phase is done in the second of the row before."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.codegen import nest_text
from flambeau.codegen.loops import Access, Keep, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import expression
from tests.codegen.nest_reference import Binding, Buffer, Problem, check
from tests.codegen.nest_text.phases_support import AWAY, F32, SQUARES, SUM, X, reduced

MAXIMUM = Phase((Reduce(0, "max", X),))
BOTH = Phase((Reduce(0, "sum", X), Reduce(2, "argmax", X)))
KEPT = expression("kept", (), F32, 0)


@pytest.mark.parametrize("size", [5, 70, 2100])
@pytest.mark.parametrize(
    "phases",
    [
        (MAXIMUM, Phase((Reduce(1, "sum", AWAY), Keep(0, AWAY))), Phase((Store(1, KEPT),))),
        (BOTH, SQUARES, Phase((Store(1, k.sub(X, reduced(0))),), (Store(2, reduced(1)),))),
        (SUM, Phase((Store(1, AWAY),))),
    ],
    ids=["softmax", "moments", "centred"],
)
def test_rows_begun_by_the_row_before(size: int, phases: tuple[Phase, ...]) -> None:
    """What was reduced for a row is neither lost nor that of the next, across outer dimensions and
    wherever the units are cut."""
    accesses = (Access(F32), Access(F32), Access(F32, "zero", row_level=True))
    scratch = (F32,) if any(isinstance(each, Keep) for each in phases[1].loop) else ()
    nest = Nest("rows", 2, accesses, phases, scratch=scratch)
    values = np.random.default_rng(size).standard_normal(12 * size).astype(np.float32)
    bindings = [
        Binding(Buffer(values), (4 * size, size)),
        Binding(Buffer(np.zeros_like(values)), (4 * size, size)),
        Binding(Buffer(np.zeros(12, np.float32)), (4, 1)),
    ]
    check(Problem(nest, size, bindings, (3, 4)), [1, 5, 6])


def test_rows_that_begin_with_more_than_their_elements_wait() -> None:
    place = k.convert(expression("index", (), dtypes.int64, 1), F32)
    for first in (
        Phase((Reduce(0, "sum", k.mul(X, place)),)),
        Phase((Reduce(0, "sum", X),), (Store(1, reduced(0)),)),
        Phase((Reduce(0, "sum", X), Store(1, X))),
    ):
        nest = Nest("rows", 1, (Access(F32), Access(F32)), (first, SQUARES))
        assert "known" not in nest_text.kernel_text(nest, 512, "f")
