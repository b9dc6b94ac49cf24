"""Kernels of kinds "rows" and "blocks" against an interpreter of the loop IR, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import nest_text
from flambeau.codegen.loops import Access, Keep, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import Expression, expression
from tests.codegen.nest_reference import (
    NUMPY,
    Binding,
    Buffer,
    EdgeBuffer,
    Problem,
    check,
    run_native,
    same_bits,
)

F32, F64, I64, BOOL = dtypes.float32, dtypes.float64, dtypes.int64, dtypes.bool_
SIZES = [*range(71), *range(1000, 1101, 7), 1023, 1024, 1025, 2047, 2048, 2049, 2050]
ALL = [each for each in dtypes.ALL if not each.is_complex]


def load(number: int, of: dtype = F32) -> Expression:
    return expression("load", (), of, number)


def leaf(word: str, value: int, of: dtype) -> Expression:
    return expression(word, (), of, value)


def data(of: dtype, count: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng([seed, count])
    if of is BOOL:
        return generator.random(count) < 0.5
    if of.category == 1:
        info = np.iinfo(NUMPY[of])
        return generator.integers(info.min, info.max, count, NUMPY[of], endpoint=True)
    values = generator.standard_normal(count)
    if of is dtypes.bfloat16:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(NUMPY[of])


def buffer(of: dtype, count: int, seed: int = 0) -> Buffer:
    return Buffer(data(of, count, seed))


def computed(value: Expression) -> Expression:
    return k.convert(value, value.dtype.compute)


def negated(of: dtype) -> Expression:
    """Some arithmetic in every dtype, rounded back."""
    x = load(0, of)
    if of is BOOL:
        return k.not_(x)
    x = computed(x)
    return k.convert(k.add(k.mul(x, 3), 1), of)


@pytest.mark.parametrize("of", ALL, ids=str)
def test_map_of_every_size_and_dtype(of: dtype) -> None:
    value = negated(of) if of is not BOOL else load(0, of)
    nest = Nest("rows", 0, (Access(of), Access(of)), (Phase((Store(1, value),)),))
    for size in SIZES if of is F32 else SIZES[::5]:
        bindings = [Binding(buffer(of, size)), Binding(buffer(of, size, 1))]
        check(Problem(nest, size, bindings, inner_block=32))


def test_rows_with_broadcast_operands() -> None:
    accesses = (Access(F32), Access(F32), Access(F32, row_level=True), Access(F32), Access(BOOL))
    total = k.add(k.add(load(0), load(1)), load(2))
    phase = Phase((Store(3, total), Store(4, k.lt(load(0), load(1)))))
    nest = Nest("rows", 3, accesses, (phase,))
    for inner in (1, 5, 16, 33, 100):
        outer = (2, 3, 4)
        whole = (12 * inner, 4 * inner, inner)
        bindings = [
            Binding(buffer(F32, 24 * inner), whole),
            Binding(buffer(F32, inner, 1), (0, 0, 0)),
            Binding(buffer(F32, 24, 2), (1, 8, 2)),
            Binding(buffer(F32, 24 * inner, 3), whole),
            Binding(buffer(BOOL, 24 * inner, 4), whole),
        ]
        check(Problem(nest, inner, bindings, outer, inner_block=32), [1, 2, 7, 11])


def test_numbers_and_indices() -> None:
    numbers = (F32, F64, I64, dtypes.int32, BOOL)
    j = leaf("index", 2, I64)
    row = k.add(k.mul(leaf("index", 0, I64), 1000), leaf("index", 1, I64))
    position = k.convert(k.add(k.mul(row, 1000), j), F64)
    scaled = k.mul(position, leaf("number", 1, F64))
    value = k.select(leaf("number", 4, BOOL), scaled, k.neg(scaled))
    whole = k.add(k.convert(leaf("number", 3, dtypes.int32), I64), leaf("number", 2, I64))
    single = k.add(k.convert(j, F32), leaf("number", 0, F32))
    accesses = (Access(F64), Access(I64), Access(F32))
    nest = Nest("rows", 2, accesses, (Phase((Store(0, value), Store(1, k.add(whole, j)),
                                             Store(2, single))),), numbers)  # fmt: skip
    for flag in (True, False):
        outer, inner = (3, 2), 37
        strides = (2 * inner, inner)
        bindings = [Binding(buffer(of, 6 * inner), strides) for of in (F64, I64, F32)]
        given = [1.5, -0.25, -(2**40), -7, flag]
        check(Problem(nest, inner, bindings, outer, inner_block=16, numbers=given))


@pytest.mark.parametrize("of", [F32, F64, dtypes.uint8, BOOL, dtypes.bfloat16], ids=str)
def test_strided_loads_and_stores(of: dtype) -> None:
    accesses = (Access(of, "strided"), Access(of, "strided"), Access(of))
    value = negated(of)
    nest = Nest("rows", 1, accesses, (Phase((Store(1, value), Store(2, value))),))
    for inner in (1, 15, 16, 17, 50):
        bindings = [
            Binding(buffer(of, 3 * 7 * inner), (7 * inner,), inner=-7, offset=7 * (inner - 1)),
            Binding(buffer(of, 3 * 5 * inner, 1), (5 * inner,), inner=5),
            Binding(buffer(of, 3 * inner, 2), (inner,)),
        ]
        check(Problem(nest, inner, bindings, (3,), inner_block=16))


def test_in_place() -> None:
    nest = Nest("rows", 0, (Access(F32), Access(F32)), (Phase((Store(1, negated(F32)),)),))
    for size in (1, 16, 45, 1000):
        shared = buffer(F32, size)
        check(Problem(nest, size, [Binding(shared), Binding(shared)], inner_block=16))


def gather(index: Expression, row_level: bool = False, inner: str = "unit") -> Access:
    return Access(F32, inner, row_level, index)


@pytest.mark.parametrize("broken", [False, True])
def test_gather_of_rows(broken: bool) -> None:
    """An embedding: out[row, :] = weight[idx[row], :]."""
    accesses = (Access(I64, row_level=True), gather(load(0, I64)), Access(F32))
    nest = Nest("rows", 1, accesses, (Phase((Store(2, k.add(load(1), 1)),)),))
    for inner in (1, 16, 40):
        indices = np.array([3, 0, 4, 4, 1], np.int64)
        if broken:
            indices[2] = 5
            indices[4] = -1
        bindings = [
            Binding(Buffer(indices), (1,)),
            Binding(buffer(F32, 5 * inner), (0,), index_stride=inner, bound=5),
            Binding(buffer(F32, 5 * inner, 1), (inner,)),
        ]
        check(Problem(nest, inner, bindings, (5,), inner_block=16))


@pytest.mark.parametrize("inner_kind", ["zero", "unit", "strided"])
def test_gather_of_elements(inner_kind: str) -> None:
    """out[r, j] = table[idx[r, j]] and table[idx[r, j], j]; errors of valid lanes alone."""
    accesses = (Access(I64), gather(load(0, I64), inner=inner_kind), Access(F32))
    nest = Nest("rows", 1, accesses, (Phase((Store(2, load(1)),)),))
    for inner, broken in ((20, False), (20, True), (33, False), (32, True)):
        indices = np.arange(3 * inner, dtype=np.int64) * 7 % 5
        if broken:
            indices[inner + 2] = -5
        bindings = [
            Binding(Buffer(indices), (inner,)),
            Binding(buffer(F32, 5 * 2 * inner), (0,), 2, index_stride=2 * inner, bound=5),
            Binding(buffer(F32, 3 * inner, 1), (inner,)),
        ]
        check(Problem(nest, inner, bindings, (3,), inner_block=1024))


@pytest.mark.parametrize("broken", [False, True])
def test_scatter_of_elements(broken: bool) -> None:
    """A lane whose index is out of range is told of and not stored."""
    accesses = (Access(I64), Access(F32, "zero", index=load(0, I64)), Access(F32))
    nest = Nest("rows", 0, accesses, (Phase((Store(1, load(2)),)),))
    for size in (1, 17, 64, 75):
        order = np.random.default_rng(1).permutation(size)
        if broken:
            order[size // 2] = size
            order[0] = -1
        bindings = [
            Binding(Buffer(order)),
            Binding(buffer(F32, size), index_stride=1, bound=size),
            Binding(buffer(F32, size, 1)),
        ]
        check(Problem(nest, size, bindings, inner_block=32))


@pytest.mark.parametrize("broken", [False, True])
def test_scatter_of_rows(broken: bool) -> None:
    """target[idx[row], :] = source[row, :], and last[idx[row]] = sum of the row."""
    scattered = Access(F32, row_level=True, index=load(0, I64))
    accesses = (Access(I64, row_level=True), gather(load(0, I64)), Access(F32), scattered)
    loop = (Store(1, load(2)), Reduce(0, "sum", load(2)))
    nest = Nest("rows", 1, accesses, (Phase(loop, (Store(3, leaf("reduced", 0, F32)),)),))
    for inner in (1, 16, 40):
        indices = np.array([3, 0, 4, 1], np.int64)
        if broken:
            indices[1] = 5
            indices[3] = -1
        bindings = [
            Binding(Buffer(indices), (1,)),
            Binding(buffer(F32, 5 * inner), (0,), index_stride=inner, bound=5),
            Binding(buffer(F32, 4 * inner, 1), (inner,)),
            Binding(buffer(F32, 5, 2), (0,), index_stride=1, bound=5),
        ]
        check(Problem(nest, inner, bindings, (4,)))


KINDS = ["sum", "prod", "max", "min", "argmax", "argmin"]


def reduction(kind: str, of: dtype, n_outer: int = 1, name: str = "rows") -> Nest:
    value = computed(load(0, of))
    if kind in ("any", "all"):
        value = k.convert(value, BOOL)
    result = I64 if kind.startswith("arg") else value.dtype
    stored = Store(1, leaf("reduced", 0, result))
    accesses = (Access(of), Access(result, row_level=True))
    return Nest(name, n_outer, accesses, (Phase((Reduce(0, kind, value),), (stored,)),))


def with_specials(of: dtype, count: int, seed: int) -> np.ndarray:
    values = data(of, count, seed)
    if of.is_floating_point and of is not dtypes.bfloat16 and count:
        generator = np.random.default_rng(seed)
        chosen = generator.choice([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan], count)
        values = np.where(generator.random(count) < 0.05 * (seed % 3), chosen, values)
    return values.astype(NUMPY[of])


@pytest.mark.parametrize("of", [F32, F64, dtypes.float16, dtypes.uint8, I64], ids=str)
@pytest.mark.parametrize("kind", [*KINDS, "any", "all"])
def test_reductions_of_every_size(kind: str, of: dtype) -> None:
    nest = reduction(kind, of)
    result = nest.accesses[1].dtype
    needs_one = kind not in ("sum", "prod", "any", "all")
    sizes = SIZES if of is F32 and kind in ("sum", "max", "argmax") else [*SIZES[::9], 3100]
    for i, size in enumerate(sizes):
        if size == 0 and needs_one:
            continue
        values = with_specials(of, 3 * size, i)
        bindings = [Binding(Buffer(values), (size,)), Binding(buffer(result, 3), (1,))]
        with np.errstate(all="ignore"):
            check(Problem(nest, size, bindings, (3,)), [1])


def test_positions_among_equals() -> None:
    for kind, filler in (("argmax", -math.inf), ("argmin", math.inf)):
        nest = reduction(kind, F32)
        for size in (1, 20, 40, 1500):
            values = np.full((3, size), filler, np.float32)
            values[1, size // 2 :] = 0.0
            values[2, size // 3 :: 5] = math.nan
            bindings = [Binding(Buffer(values), (size,)), Binding(buffer(I64, 3), (1,))]
            check(Problem(nest, size, bindings, (3,)), [2])


def softmax() -> Nest:
    """Three phases with cheap words in place of exp."""
    x = load(0)
    shifted = k.sub(x, leaf("reduced", 0, F32))
    weight = k.div(1, k.add(k.mul(shifted, shifted), 1))
    return Nest(
        "rows", 1, (Access(F32), Access(F32), Access(F32, row_level=True)),
        (
            Phase((Reduce(0, "max", x),)),
            Phase((Keep(0, weight), Reduce(1, "sum", weight)),
                  (Store(2, leaf("reduced", 1, F32)),)),
            Phase((Store(1, k.div(leaf("kept", 0, F32), leaf("reduced", 1, F32))),)),
        ),
        scratch=(F32,),
    )  # fmt: skip


def test_phases_share_scratch_rows() -> None:
    for size in (1, 10, 16, 100, 1024, 1025, 2500):
        bindings = [
            Binding(buffer(F32, 5 * size), (size,)),
            Binding(buffer(F32, 5 * size, 1), (size,)),
            Binding(buffer(F32, 5, 2), (1,)),
        ]
        check(Problem(softmax(), size, bindings, (5,)), [2])


def test_scratch_rows_of_all_dtypes_lie_apart() -> None:
    kept = tuple(ALL)
    accesses = [Access(of) for of in (*ALL, *ALL)]
    first = Phase(
        (*(Keep(i, load(i, of)) for i, of in enumerate(ALL)),
         Reduce(0, "any", load(0, BOOL)))
    )  # fmt: skip
    last = Phase(tuple(Store(len(ALL) + i, leaf("kept", i, of)) for i, of in enumerate(ALL)))
    nest = Nest("rows", 0, tuple(accesses), (first, last), scratch=kept)
    for size in (1, 31, 64, 77):
        bindings = [Binding(buffer(of, size, i)) for i, of in enumerate(ALL)]
        bindings += [Binding(buffer(of, size, 50 + i)) for i, of in enumerate(ALL)]
        check(Problem(nest, size, bindings))


def test_several_reductions_in_one_loop() -> None:
    x = load(0)
    kinds = ["sum", "max", "argmin", "prod", "sum"]
    values = [x, x, x, k.add(k.mul(x, 1e-3), 1), k.mul(x, x)]
    reduces = [Reduce(i, kind, v) for i, (kind, v) in enumerate(zip(kinds, values, strict=True))]
    reduces.append(Reduce(5, "all", k.lt(x, 3)))
    results = [F32, F32, I64, F32, F32, BOOL]
    stores = tuple(Store(1 + i, leaf("reduced", i, of)) for i, of in enumerate(results))
    accesses = (Access(F32), *(Access(of, row_level=True) for of in results), Access(F32))
    loop = (*reduces, Store(7, k.neg(x)))
    nest = Nest("rows", 1, accesses, (Phase(loop, stores),))
    for size in (0, 7, 1000, 1024, 3077):
        bindings = [Binding(buffer(F32, 2 * size), (size,))]
        bindings += [Binding(buffer(of, 2), (1,)) for of in results]
        bindings.append(Binding(buffer(F32, 2 * size), (size,)))
        if size:
            check(Problem(nest, size, bindings, (2,)), [1])


def test_row_code_gathers_by_what_was_reduced() -> None:
    """phase.row stores table[argmax(row)]."""
    accesses = (Access(F32), gather(leaf("reduced", 0, I64), row_level=True),
                Access(F32, row_level=True))  # fmt: skip
    phase = Phase((Reduce(0, "argmax", load(0)),), (Store(2, load(1)),))
    nest = Nest("rows", 1, accesses, (phase,))
    size = 50
    bindings = [
        Binding(buffer(F32, 4 * size), (size,)),
        Binding(buffer(F32, size, 1), (0,), index_stride=1, bound=size),
        Binding(buffer(F32, 4, 2), (1,)),
    ]
    check(Problem(nest, size, bindings, (4,)))


@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("size", [1, 1024, 1025, 5 * 1024 + 3, 64 * 1024, 71 * 1024 + 11])
def test_folded_blocks_equal_whole_rows(kind: str, size: int) -> None:
    """kind "blocks" then "tree_sum" over its partials give the bits of kind "rows"."""
    n_blocks = -(-size // 1024)
    values = data(F32, 2 * size)
    if kind == "prod":
        values = (1 + values * 1e-2).astype(np.float32)
    source = Buffer(values)
    partials, folded, whole = (Buffer(np.zeros(n, np.float32)) for n in (2 * n_blocks, 2, 2))
    parts = Problem(
        reduction(kind, F32, name="blocks"), size,
        [Binding(source, (size,)), Binding(partials, (n_blocks,), block=1)], (2,),
    )  # fmt: skip
    fold = Problem(
        reduction("tree_" + kind, F32), n_blocks,
        [Binding(partials, (n_blocks,)), Binding(folded, (1,))], (2,),
    )  # fmt: skip
    if size < 10_000:
        check(parts)
        check(fold)
    for bits in (256, 512):
        run_native(parts, bits, [1])
        run_native(fold, bits)
        run_native(
            Problem(reduction(kind, F32), size,
                    [Binding(source, (size,)), Binding(whole, (1,))], (2,)), bits,
        )  # fmt: skip
        same_bits(folded.values, whole.values)


@pytest.mark.parametrize("kind", ["max", "argmax", "argmin", "any"])
def test_block_partials(kind: str) -> None:
    of = BOOL if kind == "any" else F32
    nest = reduction(kind, of, name="blocks")
    for size in (1, 1000, 1024, 2500):
        values = np.full(2 * size, -math.inf, np.float32) if of is F32 else data(of, 2 * size)
        if of is F32:
            values[size:] = data(of, size)
        n_blocks = -(-size // 1024)
        bindings = [
            Binding(Buffer(values), (size,)),
            Binding(buffer(nest.accesses[1].dtype, 2 * n_blocks), (n_blocks,), block=1),
        ]
        check(Problem(nest, size, bindings, (2,)))


@pytest.mark.parametrize("level", [0, 2, 3])
def test_bits_do_not_depend_on_the_codegen_level(level: int) -> None:
    """The full formulas of softmax and GELU, and a strided conversion."""
    x = load(0)
    weight = k.exp(k.sub(x, leaf("reduced", 0, F32)))
    share = k.div(leaf("kept", 0, F32), leaf("reduced", 1, F32))
    softmax_phases = (
        Phase((Reduce(0, "max", x),)),
        Phase((Keep(0, weight), Reduce(1, "sum", weight))),
        Phase((Store(1, share),)),
    )
    cubic = k.mul(k.add(x, k.mul(k.mul(k.mul(x, x), x), 0.044715)), 0.79788456)
    gelu = k.mul(k.mul(x, 0.5), k.add(k.tanh(cubic), 1))
    half = k.convert(k.convert(k.mul(x, 1000), I64), dtypes.bfloat16)
    out = Access(F32)
    nests = [
        Nest("rows", 1, (Access(F32), out), softmax_phases, scratch=(F32,)),
        Nest("rows", 1, (Access(F32), out), (Phase((Store(1, gelu),)),)),
        Nest(
            "rows",
            1,
            (Access(F32, "strided"), Access(dtypes.bfloat16)),
            (Phase((Store(1, half),)),),
        ),
    ]
    for nest in nests:
        inner, of = 1037, nest.accesses[1].dtype
        bindings = [
            Binding(buffer(F32, 2 * inner), (inner,)),
            Binding(buffer(of, 2 * inner, 1), (inner,)),
        ]
        problem = Problem(nest, inner, bindings, (2,))
        usual = problem.copy()
        run_native(usual, 256)
        for bits in (256, 512):
            other = problem.copy()
            run_native(other, bits, [1], level)
            same_bits(other.bindings[1].buffer.values, usual.bindings[1].buffer.values)


def edge(of: dtype, count: int) -> Binding:
    return Binding(EdgeBuffer(data(of, count)))


@pytest.mark.parametrize("of", [F32, F64, dtypes.uint8], ids=str)
def test_garbage_lanes_read_no_further_than_the_slack(of: dtype) -> None:
    """Behind the slack there is no memory: a kernel that reads there does not come back."""
    out = Access(of)
    unit = Nest("rows", 0, (Access(of), out), (Phase((Store(1, load(0, of)),)),))
    strided = Nest("rows", 0, (Access(of, "strided"), out), (Phase((Store(1, load(0, of)),)),))
    half = Access(of, "pair", half=(0, 2))
    paired = Nest("rows", 0, (half, out), (Phase((Store(1, load(0, of)),)),))
    picked = Access(of, "strided", index=load(2, I64))
    gathered = Nest("rows", 0, (picked, out, Access(I64)), (Phase((Store(1, load(0, of)),)),))
    summed = Nest(
        "columns", 0, (Access(of), out),
        (Phase((Reduce(0, "max", load(0, of)),), (Store(1, leaf("reduced", 0, of)),)),),
    )  # fmt: skip
    for inner in (1, 3, 17, 33, 65):
        wide = edge(of, 999 * (inner - 1) + 1)
        wide.inner = 999
        rows = edge(of, 1 + 7 * (inner - 1) + 5 * 4)
        rows.inner, rows.index_stride, rows.bound = 7, 5, 5
        indices = Binding(EdgeBuffer(np.arange(inner, dtype=np.int64) % 5))
        matrix = edge(of, 9 * inner)
        matrix.reduced = inner
        second = edge(of, 2 * inner)
        second.inner, second.offset = 2, 1
        for bits in (256, 512):
            run_native(Problem(unit, inner, [edge(of, inner), edge(of, inner)]), bits)
            run_native(Problem(paired, inner, [second, edge(of, inner)]), bits)
            run_native(Problem(strided, inner, [wide, edge(of, inner)]), bits)
            run_native(Problem(gathered, inner, [rows, edge(of, inner), indices]), bits)
            run_native(Problem(summed, inner, [matrix, edge(of, inner)], (), 9), bits)


def test_names_and_texts_are_canonical() -> None:
    first, again = reduction("sum", F32), reduction("sum", F32)
    assert nest_text.kernel_name(first, 256) == nest_text.kernel_name(again, 256)
    names: set[Any] = {nest_text.kernel_name(first, bits) for bits in (256, 512)}
    names |= {nest_text.kernel_name(reduction(kind, F32), 256) for kind in KINDS}
    assert len(names) == 7
    assert nest_text.kernel_text(first, 256, "a") == nest_text.kernel_text(again, 256, "a")


def test_a_shared_chain_has_a_short_key() -> None:
    x = load(0)
    for _ in range(200):
        x = k.mul(x, x)
    nest = Nest("rows", 0, (Access(F32), Access(F32)), (Phase((Store(1, x),)),))
    assert len(nest.key) < 20_000
    assert nest_text.kernel_text(nest, 256, "a").count("fmul") == 200
