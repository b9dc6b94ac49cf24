"""Kernels of kinds "columns" and "column_blocks" against the interpreter, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.loops import Access, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import Expression, expression
from tests.codegen.nest_reference import (
    NUMPY,
    Binding,
    Buffer,
    Problem,
    check,
    run_native,
    same_bits,
)

F32, F64, I64, BOOL = dtypes.float32, dtypes.float64, dtypes.int64, dtypes.bool_


def load(number: int, of: dtype = F32) -> Expression:
    return expression("load", (), of, number)


def leaf(word: str, value: int, of: dtype) -> Expression:
    return expression(word, (), of, value)


def buffer(of: dtype, count: int, seed: int = 0) -> Buffer:
    generator = np.random.default_rng([seed, count])
    if of is BOOL:
        return Buffer(generator.random(count) < 0.9)
    if of.category == 1:
        return Buffer(generator.integers(-100 * of.is_signed, 100, count).astype(NUMPY[of]))
    return Buffer(generator.standard_normal(count).astype(NUMPY[of]))


def reduction(kind: str, of: dtype, name: str = "columns", row_level_out: bool = False) -> Nest:
    value = k.convert(load(0, of), of.compute)
    if kind in ("any", "all"):
        value = k.convert(value, BOOL)
    result = I64 if kind.startswith("arg") else value.dtype
    accesses = (Access(of), Access(result, row_level=row_level_out))
    phase = Phase((Reduce(0, kind, value),), (Store(1, leaf("reduced", 0, result)),))
    return Nest(name, 1, accesses, (phase,))


def matrix_problem(nest: Nest, rows: int, reduced: int, inner: int, seed: int = 0) -> Problem:
    of, result = nest.accesses[0].dtype, nest.accesses[1].dtype
    return Problem(
        nest, inner,
        [
            Binding(buffer(of, rows * reduced * inner, seed), (reduced * inner,), reduced=inner),
            Binding(buffer(result, rows * inner, seed + 1), (inner,)),
        ],
        (rows,), reduced, inner_block=48,
    )  # fmt: skip


@pytest.mark.parametrize("of", [F32, F64, dtypes.float16, I64, dtypes.uint8], ids=str)
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all"])
def test_reductions_of_columns(kind: str, of: dtype) -> None:
    for reduced, inner in ((1, 1), (5, 10), (128, 65), (129, 16), (300, 150), (3, 33)):
        check(matrix_problem(reduction(kind, of), 2, reduced, inner))
    if kind in ("sum", "prod", "any", "all"):
        check(matrix_problem(reduction(kind, of), 2, 0, 10))


def test_every_width_of_columns() -> None:
    nest = reduction("sum", F32, row_level_out=True)
    for inner in range(1, 140, 3):
        check(matrix_problem(nest, 1, 130, inner))


@pytest.mark.parametrize("of", [F32, F64], ids=str)
def test_tiles_of_columns(of: dtype) -> None:
    for inner in (1023, 1024, 1056, 1057, 2100):
        problem = matrix_problem(reduction("sum", of), 1, 140, inner)
        check(problem, [2, 3, 20])


@pytest.mark.parametrize("kind", ["sum", "max", "argmax"])
def test_tiles_of_any_number_of_rows(kind: str) -> None:
    """Rows are taken several at a time, and those left one by one."""
    for reduced in (1, 2, 3, 4, 7, 130, 135):
        problem = matrix_problem(reduction(kind, F32), 2, reduced, 70)
        problem.inner_block = 70
        check(problem)


def test_special_values() -> None:
    for kind, filler in (("argmax", -math.inf), ("argmin", math.inf), ("max", -0.0), ("sum", -0.0)):
        problem = matrix_problem(reduction(kind, F32), 2, 140, 20)
        values = np.full((2, 140, 20), filler, np.float32)
        values[0, 50:, 3:7] = 0.0
        values[1, 70::9, 5:] = math.nan
        problem.bindings[0].buffer = Buffer(values)
        check(problem)


@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("reduced", [1, 128, 129, 700, 128 * 9 + 5])
def test_folded_blocks_equal_whole_columns(kind: str, reduced: int) -> None:
    """kind "column_blocks" then "tree_sum" over its partials give the bits of kind "columns"."""
    rows, inner = 2, 85
    n_blocks = -(-reduced // 128)
    whole = matrix_problem(reduction(kind, F32), rows, reduced, inner)
    partials = Buffer(np.zeros(rows * n_blocks * inner, np.float32))
    folded = Buffer(np.zeros(rows * inner, np.float32))
    parts = Problem(
        reduction(kind, F32, "column_blocks"), inner,
        [whole.bindings[0], Binding(partials, (n_blocks * inner,), block=inner)],
        (rows,), reduced, inner_block=32,
    )  # fmt: skip
    fold = Problem(
        reduction("tree_" + kind, F32), inner,
        [Binding(partials, (n_blocks * inner,), reduced=inner), Binding(folded, (inner,))],
        (rows,), n_blocks,
    )  # fmt: skip
    check(parts)
    for bits in (256, 512):
        run_native(parts, bits, [3])
        run_native(fold, bits)
        run_native(whole, bits)
        same_bits(folded.values, whole.bindings[1].buffer.values)
    check(fold)


@pytest.mark.parametrize("kind", ["max", "argmin", "argmax"])
def test_partials_of_column_blocks(kind: str) -> None:
    nest = reduction(kind, F32, "column_blocks")
    for reduced in (1, 128, 300):
        n_blocks = -(-reduced // 128)
        problem = matrix_problem(nest, 2, reduced, 40)
        out = Buffer(np.zeros(2 * n_blocks * 40, NUMPY[nest.accesses[1].dtype]))
        problem.bindings[1] = Binding(out, (n_blocks * 40,), block=40)
        check(problem)
        problem.bindings[0].buffer.values[:] = math.inf if kind == "argmin" else -math.inf
        check(problem)


def test_operands_of_every_kind() -> None:
    """Values by row, by reduced position, by column, positions, strides, stores in the loop."""
    accesses = (
        Access(F32), Access(F32, row_level=True), Access(F32, "zero"), Access(F32),
        Access(F32, "strided"), Access(F32), Access(F32, "strided"), Access(I64),
    )  # fmt: skip
    step, column = leaf("index", 1, I64), leaf("index", 2, I64)
    value = k.add(k.mul(k.add(load(0), load(1)), load(2)), k.mul(load(3), load(4)))
    loop = (
        Reduce(0, "sum", value),
        Store(5, k.add(value, 1)),
        Reduce(1, "sum", k.add(k.mul(step, 3), column)),
        Reduce(2, "max", value),
    )
    mean = k.div(leaf("reduced", 0, F32), leaf("number", 0, F32))
    row = (
        Store(6, k.add(k.mul(mean, load(3)), leaf("reduced", 2, F32))),
        Store(7, k.add(leaf("reduced", 1, I64), column)),
    )
    nest = Nest("columns", 2, accesses, (Phase(loop, row),), (F32,))
    for reduced, inner in ((7, 20), (130, 70), (257, 33)):
        outer, size = (2, 2), reduced * inner
        whole = (2 * size, size)
        bindings = [
            Binding(buffer(F32, 4 * size), whole, reduced=inner),
            Binding(buffer(F32, 4, 1), (2, 1)),
            Binding(buffer(F32, 4 * reduced, 2), (2 * reduced, reduced), reduced=1),
            Binding(buffer(F32, inner, 3), (0, 0)),
            Binding(buffer(F32, 4 * size, 4), whole, inner=reduced, reduced=1),
            Binding(buffer(F32, 4 * size, 5), whole, reduced=inner),
            Binding(buffer(F32, 4 * inner, 6), (1, 2), inner=4),
            Binding(buffer(I64, 4 * inner, 7), (2 * inner, inner)),
        ]
        problem = Problem(nest, inner, bindings, outer, reduced, 48, [3.0])
        check(problem)


def test_sum_of_gathered_rows() -> None:
    """An embedding bag: out[b, :] = sum over r of weight[idx[b, r], :]."""
    accesses = (Access(I64, "zero"), Access(F32, index=load(0, I64)), Access(F32))
    phase = Phase((Reduce(0, "sum", load(1)),), (Store(2, leaf("reduced", 0, F32)),))
    nest = Nest("columns", 1, accesses, (phase,))
    for broken in (False, True):
        indices = np.arange(3 * 6, dtype=np.int64) * 5 % 9
        if broken:
            indices[7] = 9
        inner = 40
        bindings = [
            Binding(Buffer(indices), (6,), reduced=1),
            Binding(buffer(F32, 9 * inner), (0,), index_stride=inner, bound=9),
            Binding(buffer(F32, 3 * inner, 1), (inner,)),
        ]
        check(Problem(nest, inner, bindings, (3,), 6, 1024))
