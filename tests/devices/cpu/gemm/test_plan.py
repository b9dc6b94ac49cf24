"""Products have the contract's bits, whatever the layout, units, threads and vector width."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from gemm_support import (
    NUMPY,
    BoundPlan,
    expected,
    from_float,
    multiply,
    padded,
    plan_of,
    same_bits,
)

from flambeau.base import dtypes
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.gemm import grid, plan_product
from flambeau.devices.cpu.gemm.product_text import WORDS

FLOAT = dtypes.float32
WIDTHS = (256, 512)
# Every ragged edge of every tile, one row, one column, sums past one and several blocks of 256.
SHAPES = (
    (1, 1, 1), (3, 5, 2), (6, 16, 8), (7, 17, 9), (12, 8, 4), (25, 7, 31), (13, 24, 257),
    (5, 65, 300), (31, 100, 256), (64, 64, 64), (33, 130, 1700), (27, 250, 40),
)  # fmt: skip
LAYOUTS = tuple(itertools.product((False, True), repeat=3))


def filled(rng, shape, kind, is_transposed=False):
    """Random matrices of a dtype, of transposed memory or not, with readable slack behind."""
    stored = (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape
    result = padded(stored, kind)
    if kind.is_floating_point:
        values = rng.standard_normal(stored).astype(kind.compute.name)
        result[...] = from_float(values, kind)
    else:
        info = np.iinfo(kind.name)
        result[...] = rng.integers(info.min, info.max, stored, dtype=kind.name, endpoint=True)
    return result.swapaxes(-1, -2) if is_transposed else result


def check(rng, m, n, k, kind=FLOAT, layout=(False,) * 3, batch=(), **how):
    """One product against the reference, bit for bit."""
    a = filled(rng, (*batch, m, k), kind, layout[0])
    b = filled(rng, (*batch, k, n), kind, layout[1])
    c = filled(rng, (*batch, m, n), kind, layout[2])
    multiply(a, b, c, kind, **how)
    assert same_bits(c, expected(a, b, kind))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def test_reference_is_the_contract(rng):
    """The reference itself: exact products and sums of fractions, rounded once a step."""
    a, b = rng.standard_normal((2, 300)), rng.standard_normal((300, 3))
    a, b = a.astype(np.float32), b.astype(np.float32)
    for i, j in np.ndindex(2, 3):
        total = None
        for start in range(0, 300, 256):
            chain = Fraction(0)
            for k in range(start, min(start + 256, 300)):
                exact = Fraction(float(a[i, k])) * Fraction(float(b[k, j])) + chain
                chain = Fraction(float(rounded_to_float32(exact)))
            one = np.float32(float(chain))
            total = one if total is None else np.float32(total + one)
        assert total == expected(a, b, FLOAT)[i, j]


def rounded_to_float32(exact):
    """Nearest float32, ties to even, by comparing with the neighbours of a first guess."""
    guess = np.float32(float(exact))
    around = [
        np.nextafter(guess, np.float32(-np.inf)),
        guess,
        np.nextafter(guess, np.float32(np.inf)),
    ]
    return min(
        around,
        key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(np.uint32)) & 1),
    )


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_shapes_and_layouts(rng, m, n, k, vector_bits):
    for number, layout in enumerate(LAYOUTS):
        check(rng, m, n, k, layout=layout, vector_bits=vector_bits, n_threads=1 + number % 2)


# The wide unsigned integers have no products in torch.
@pytest.mark.parametrize(
    "kind", [k for k in dtypes.INTEGERS + dtypes.FLOATING if k not in dtypes.WIDE_UNSIGNED], ids=str
)
def test_dtypes(rng, kind):
    for m, n, k in ((7, 33, 9), (26, 40, 600), (1, 41, 300), (41, 1, 5)):
        for layout in LAYOUTS[:4]:
            check(rng, m, n, k, kind, layout, n_threads=2, batch=(2,))


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize("k", [1, 3, 16, 100, 256, 512, 768, 784, 1024, 1300])
def test_vector_times_matrix(rng, k, vector_bits):
    for n, is_transposed in itertools.product((1, 7, 8, 40, 300), (False, True)):
        check(rng, 1, n, k, layout=(False, is_transposed, False), vector_bits=vector_bits)
        check(rng, n, 1, k, layout=(is_transposed, False, True), vector_bits=vector_bits)


def test_long_vectors_in_units(rng):
    """Enough columns for several units, of both kernels."""
    for n, k in ((5000, 530), (1025, 64), (700, 1024)):
        for is_transposed in (False, True):
            for chunk, threads in ((None, 1), (1, 4)):
                check(
                    rng,
                    1,
                    n,
                    k,
                    layout=(False, is_transposed, False),
                    n_threads=threads,
                    chunk=chunk,
                )


@pytest.mark.parametrize(
    ("m", "n", "k"), [(100, 160, 1100), (256, 256, 256), (300, 500, 520), (40, 2000, 30)]
)
def test_units_and_chunks(rng, m, n, k):
    """Packing steps, many units; any chunks in any order and any number of threads."""
    a, b = filled(rng, (m, k), FLOAT), filled(rng, (k, n), FLOAT)
    right = expected(a, b, FLOAT)
    for threads in (1, 2, 3, 7):
        for chunk, backwards in ((None, False), (1, True), (3, False)):
            c = filled(rng, (m, n), FLOAT)
            multiply(a, b, c, FLOAT, 256, threads, chunk, backwards)
            assert same_bits(c, right)


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize("kind", [FLOAT, dtypes.bfloat16], ids=str)
def test_rows_that_fill_no_tile(rng, kind, vector_bits):
    """A in place, and packed by the unit or for several units, as rows and as columns."""
    for m in (61, 514, 515, 527):
        for n, k in ((70, 9), (200, 260)):
            for is_transposed in (False, True):
                layout = (is_transposed, False, False)
                how = {"vector_bits": vector_bits, "n_threads": 2, "chunk": 1, "backwards": True}
                check(rng, m, n, k, kind, layout, **how)


def test_a_new_number_of_rows_needs_no_new_kernel():
    def names(m):
        strides = (0, 1024, 4), (0, 1024, 4), (0, 1024, 4)
        return {each.name for each in plan_product(FLOAT, 1, m, 256, 256, *strides, 256, 2).steps}

    assert len(set.union(*(names(m) for m in range(60, 300)))) == 1


def test_threads_end_together():
    """Units of rows leave no thread more than a tile of 6 rows behind the other."""
    strides = (0, 1024, 4), (0, 1024, 4), (0, 1024, 4)
    (step,) = plan_product(FLOAT, 1, 256, 256, 256, *strides, 512, 2).steps
    row_block = step.arguments[7]
    rows = [0, 0]
    for first in range(0, 256, row_block):
        rows[rows.index(min(rows))] += min(row_block, 256 - first)
    assert abs(rows[0] - rows[1]) <= 6


def rows_of_units(plan):
    """First rows of the last step's units, in order."""
    words = dict(zip(WORDS, plan.steps[-1].arguments, strict=False))
    count, step, block = words["n_row_blocks"], words["row_step"], words["row_block"]
    return [unit // step % count * block for unit in range(plan.steps[-1].n_units)]


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(1200, 384, 128), (1600, 512, 64), (32, 512, 128)])
def test_threads_keep_their_rows(rng, m, n, k, is_transposed):
    """Where each thread's cache holds all of B, units go by rows, as kernels over rows do, and
    pack B for themselves."""
    a, b = filled(rng, (m, k), FLOAT), filled(rng, (k, n), FLOAT, is_transposed)
    for vector_bits, n_threads in ((256, 2), (512, 2), (512, 3)):
        c = filled(rng, (m, n), FLOAT)
        plan = plan_of(a, b, c, FLOAT, vector_bits, n_threads)
        assert len(plan.steps) == 1
        rows = rows_of_units(plan)
        # A few rows share a transposed B, whose columns are packed once.
        assert (rows == sorted(rows) and len(set(rows)) > 1) or (is_transposed and m < 192)
        BoundPlan(plan, a, b, c).run_threads(n_threads)
        assert same_bits(c, expected(a, b, FLOAT))


def test_runs_on_threads(rng):
    a, b, c = (filled(rng, (200, 200), FLOAT) for _ in range(3))
    BoundPlan(plan_of(a, b, c, FLOAT, 256, 3), a, b, c).run_threads(3)
    assert same_bits(c, expected(a, b, FLOAT))


@pytest.mark.parametrize("vector_bits", WIDTHS)
def test_a_row_does_not_depend_on_its_batch(rng, vector_bits):
    a, b = filled(rng, (50, 300), FLOAT), filled(rng, (300, 70), FLOAT)
    whole = padded((50, 70), FLOAT)
    multiply(a, b, whole, FLOAT, vector_bits)
    for row in (0, 6, 49):
        alone = padded((1, 70), FLOAT)
        multiply(a[row : row + 1], b, alone, FLOAT, vector_bits)
        assert same_bits(alone[0], whole[row])
    for column in (0, 69):
        alone = padded((50, 1), FLOAT)
        multiply(a, b[:, column : column + 1], alone, FLOAT, vector_bits)
        assert same_bits(alone[:, 0], whole[:, column])


def test_batches(rng):
    """Broadcast, transposed, merged and up to four batch dimensions."""
    cases = (
        ((5, 4, 6), (5, 6, 7)), ((5, 4, 6), (6, 7)), ((4, 6), (5, 6, 7)),
        ((2, 3, 9, 20), (3, 20, 33)), ((2, 1, 9, 20), (1, 3, 20, 33)),
        ((2, 1, 2, 3, 5, 6), (1, 3, 2, 1, 6, 7)),
    )  # fmt: skip
    for shape_a, shape_b in cases:
        a, b = filled(rng, shape_a, FLOAT), filled(rng, shape_b, FLOAT)
        batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
        c = filled(rng, (*batch, shape_a[-2], shape_b[-1]), FLOAT)
        multiply(a, b, c, FLOAT, n_threads=2)
        assert same_bits(c, expected(a, b, FLOAT))
    # Heads of an attention: the batch is inside the rows of memory.
    a = filled(rng, (3, 10, 4, 16), FLOAT).transpose(0, 2, 1, 3)
    b = filled(rng, (3, 10, 4, 16), FLOAT).transpose(0, 2, 3, 1)
    c = filled(rng, (3, 10, 4, 10), FLOAT).transpose(0, 2, 1, 3)
    multiply(a, b, c, FLOAT)
    assert same_bits(c, expected(a, b, FLOAT))


@pytest.mark.parametrize("kind", [FLOAT, dtypes.float64, dtypes.int32], ids=str)
@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize("in_place_bytes", [0, 1 << 30])
def test_columns_packed_in_passing(monkeypatch, rng, in_place_bytes, vector_bits, kind):
    # The first tiles of a unit read B where it lies and leave it packed for those below.
    monkeypatch.setattr(grid, "_IN_PLACE_BYTES", dict.fromkeys(WIDTHS, in_place_bytes))
    plan_product.cache_clear()
    n_packing = 0
    for m, n, k in ((25, 65, 33), (31, 130, 300), (100, 200, 520), (40, 70, 3000)):
        for batch in ((), (3,)):
            for n_threads in (1, 2, 3):
                a, b = filled(rng, (*batch, m, k), kind), filled(rng, (*batch, k, n), kind)
                c = filled(rng, (*batch, m, n), kind)
                plan = plan_of(a, b, c, kind, vector_bits, n_threads)
                texts = [jit.text_of(step.text) for step in plan.steps]
                n_packing += any("@packing_tile" in text for text in texts)
                BoundPlan(plan, a, b, c).run()
                assert same_bits(c, expected(a, b, kind))
    plan_product.cache_clear()
    assert n_packing >= 12 if in_place_bytes == 0 else not n_packing


def test_any_strides(rng):
    """Steps, reversed rows and columns, repeated rows: of A, B and C."""
    a = filled(rng, (40, 60), FLOAT)[::2, ::-3]
    b = filled(rng, (40, 90), FLOAT)[::-2, ::3]
    for kind in (FLOAT, dtypes.float16):
        a2, b2 = (from_float(x, kind) if kind is not FLOAT else x for x in (a, b))
        c = filled(rng, (60, 60), kind)[::-3, ::2]
        multiply(a2, b2, c, kind)
        assert same_bits(c, expected(a2, b2, kind))
        multiply(a2[:1], b2, c[:1], kind)
        assert same_bits(c, expected(a2, b2, kind))
    repeated = np.broadcast_to(a[:1], a.shape)
    c = filled(rng, (20, 30), FLOAT)
    multiply(repeated, b, c, FLOAT)
    assert same_bits(c, expected(repeated, b, FLOAT))


@pytest.mark.parametrize("kind", [FLOAT, dtypes.uint8, dtypes.bfloat16], ids=str)
def test_nothing_else_is_written(rng, kind):
    """C inside a larger matrix: what surrounds it stays."""
    for m, n, k in ((7, 19, 20), (1, 19, 20), (13, 40, 1), (5, 1, 9)):
        for is_transposed in (False, True):
            frame = filled(rng, (m + 8, n + 40), kind, is_transposed)
            before = frame.copy()
            inside = (slice(4, 4 + m), slice(20, 20 + n))
            a, b = filled(rng, (m, k), kind), filled(rng, (k, n), kind)
            multiply(a, b, frame[inside], kind, n_threads=2)
            before[inside] = expected(a, b, kind)
            assert same_bits(frame, before)


def test_special_values(rng):
    """Infinities, NaN, denormals, a sum whose sign of zero shows the order."""
    a, b = filled(rng, (9, 40), FLOAT), filled(rng, (40, 20), FLOAT)
    a[0, 0], a[1, 1], a[2, 2], a[3] = np.inf, np.nan, 1e-42, -0.0
    b[5, 5], b[6, 6] = -np.inf, 1e-40
    c = padded((9, 20), FLOAT)
    multiply(a, b, c, FLOAT)
    assert same_bits(c, expected(a, b, FLOAT))
    a, b = padded((1, 300), FLOAT), padded((300, 1), FLOAT)
    a[0, 255], b[255, 0] = -1e-30, 1e-30  # rounds to -0, which the sum of blocks starts from
    c = padded((1, 1), FLOAT)
    multiply(a[:, :256], b[:256], c, FLOAT)
    assert np.signbit(c[0, 0])


def test_empty():
    """k == 0 gives zeros, any other empty size nothing to do."""
    a, b = padded((5, 0), FLOAT), padded((0, 20), FLOAT)
    for m, n in ((5, 20), (1, 20), (5, 1)):
        c = padded((m, n), FLOAT)
        c[...] = 7
        multiply(a[:m], b[:, :n], c, FLOAT)
        assert not c.any()
    strides = ((0,), 4, 4)
    for batch, m, n in ((0, 3, 3), (2, 0, 3), (2, 3, 0)):
        assert plan_product(FLOAT, batch, m, n, 5, *((0, 4, 4),) * 3, 256).steps == ()
    with pytest.raises(ValueError, match="at most 4 batch dimensions"):
        plan_product(FLOAT, (2,) * 5, 3, 3, 3, *((strides[0] * 5, 4, 4),) * 3, 256)


def test_kernels_do_not_depend_on_sizes():
    """Sizes of one class share their kernels; a repeated signature is not planned again."""

    def kernels(m, n, k):
        strides = (0, 4 * k, 4), (0, 4 * n, 4), (0, 4 * n, 4)
        plan = plan_product(FLOAT, 1, m, n, k, *strides, 256, 2)
        return [step.name for step in plan.steps]

    assert kernels(96, 128, 70) == kernels(126, 256, 200) == kernels(192, 64, 33)
    assert kernels(600, 512, 700) == kernels(1200, 1024, 2000)
    strides = (0, 400, 4), (0, 400, 4), (0, 400, 4)
    first = plan_product(FLOAT, 1, 100, 100, 100, *strides, 256, 2)
    assert plan_product(FLOAT, 1, 100, 100, 100, *strides, 256, 2) is first


def test_large_packed_operands_are_cut(monkeypatch, rng):
    """Beyond a limit the product is planned in halves that share the workspace."""
    from flambeau.devices.cpu.gemm import plan

    monkeypatch.setattr(plan, "MAX_PACKED_BYTES", 20_000)
    plan_product.cache_clear()
    for kind in (FLOAT, dtypes.float16):
        a, b = filled(rng, (130, 70), kind), filled(rng, (70, 300), kind, is_transposed=True)
        c = filled(rng, (130, 300), kind)
        made = plan_of(a, b, c, kind, 256, 2)
        assert len(made.steps) > 3
        assert made.workspace_bytes < 70 * 300 * 4
        BoundPlan(made, a, b, c).run()
        assert same_bits(c, expected(a, b, kind))
    plan_product.cache_clear()


def test_random_products(rng):
    """Drawn sizes, layouts, dtypes, batches, widths, units."""
    kinds = (FLOAT, FLOAT, dtypes.float64, dtypes.bfloat16, dtypes.int32)
    for _ in range(40):
        m, n = (int(x) for x in rng.integers(1, 70, 2))
        k = int(rng.choice([1, 5, 40, 255, 256, 257, 530]))
        check(
            rng, m, n, k, kinds[rng.integers(len(kinds))], LAYOUTS[rng.integers(8)],
            batch=((), (3,), (2, 2))[rng.integers(3)], vector_bits=int(rng.choice(WIDTHS)),
            n_threads=int(rng.integers(1, 4)), chunk=(None, 1)[rng.integers(2)],
        )  # fmt: skip


def test_numpy_names_cover_the_dtypes():
    assert {each.name for each in dtypes.INTEGERS + dtypes.FLOATING} <= NUMPY.keys()


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_when_threads_end_is_worked_out_as_if_blocks_were_taken_one_by_one(n_threads: int) -> None:
    for n_tiles in range(1, 30):
        for block in range(1, n_tiles + 1):
            for times in (1, 2, 5):
                loads = [0] * n_threads
                for first in [*range(0, n_tiles, block)] * times:
                    loads[loads.index(min(loads))] += min(block, n_tiles - first)
                assert grid._end(n_tiles, block, times, n_threads) == max(loads)
