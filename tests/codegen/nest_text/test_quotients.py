"""Rows divided by one number each have the bits of a division, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import nest_text
from flambeau.codegen.loops import Access, Nest, Phase, Store
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import expression
from tests.codegen.nest_reference import NUMPY, Binding, Buffer, Problem, run_native

KINDS = (dtypes.float32, dtypes.float64)


def division(of: dtype, *, by_row: bool = True) -> Nest:
    """Each row of access 0 divided by its number in access 1."""
    x, d = (expression("load", (), of, n) for n in range(2))
    divisor = Access(of, "zero", row_level=True) if by_row else Access(of)
    phase = Phase((Store(2, k.div(x, d)),))
    return Nest("rows", 1, (Access(of), divisor, Access(of)), (phase,))


def quotients(of: dtype, rows: np.ndarray, divisors: np.ndarray, bits: int) -> np.ndarray:
    count, size = rows.shape
    buffers = [Buffer(each) for each in (rows, divisors, np.zeros_like(rows))]
    bindings = [
        Binding(buffers[0], (size,)),
        Binding(buffers[1], (1,)),
        Binding(buffers[2], (size,)),
    ]
    run_native(Problem(division(of), size, bindings, (count,), inner_block=size), bits)
    return buffers[2].values.reshape(rows.shape)


def check(of: dtype, rows: np.ndarray, divisors: np.ndarray, bits: int) -> None:
    found = quotients(of, rows, divisors, bits)
    with np.errstate(all="ignore"):
        wanted = rows / divisors[:, None]
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    whole = f"u{of.itemsize}"
    wrong = numbers & (found.view(whole) != wanted.view(whole))
    row, column = np.argwhere(wrong)[0] if wrong.any() else (0, 0)
    assert not wrong.any(), (rows[row, column].hex(), divisors[row].hex(), found[row, column].hex())


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_numbers_of_every_size(of: dtype, bits: int) -> None:
    random = np.random.default_rng(1)
    kind = NUMPY[of]
    finest = np.finfo(kind)
    exponents = random.integers(finest.minexp - finest.nmant, finest.maxexp, (40, 1000))
    rows = np.ldexp(random.uniform(1, 2, exponents.shape), exponents).astype(kind)
    rows *= random.choice(np.array([-1, 1], kind), rows.shape)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        finest.max,
        finest.tiny,
        finest.smallest_subnormal,
    ]
    rows[:, ::7] = random.choice(np.array(special, kind), rows[:, ::7].shape)
    divisors = np.concatenate([rows[:8, 7], rows[8:, 1]])
    check(of, rows, divisors, bits)


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("of", KINDS, ids=repr)
def test_ordinary_numbers(of: dtype, bits: int) -> None:
    """Mantissas near one and two, where reciprocals err most, among others."""
    random = np.random.default_rng(2)
    kind = NUMPY[of]
    steps = random.integers(0, 1 << 12, (200, 2000)).astype(kind) * np.finfo(kind).eps
    rows = np.where(random.random(steps.shape) < 0.5, 2 - steps, random.uniform(1, 2, steps.shape))
    divisors = np.where(random.random(200) < 0.5, 2 - steps[:, 0], random.uniform(-9, 9, 200))
    check(of, rows.astype(kind), divisors.astype(kind), bits)


def test_vectors_are_divided_where_lanes_differ() -> None:
    assert "!prof" in nest_text.kernel_text(division(dtypes.float32), 256, "f")
    assert "!prof" not in nest_text.kernel_text(division(dtypes.float32, by_row=False), 256, "f")
