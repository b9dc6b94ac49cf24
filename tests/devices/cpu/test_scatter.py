"""Writing by index, against plain Python loops over the indices in order.

Keeps     duplicates, indices out of bounds (never touched, the error word set), odd strides, every
          dtype, any partition of the units.
Touches   devices.cpu.scatter.
Not here  the operators (tests/ops)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import scatter
from tests.devices.cpu.native_plans import (
    DTYPES,
    Operand,
    from_bfloat16,
    rounded_to_bfloat16,
    run_maker,
    values,
)


def total(left: Any, right: Any, dtype: str) -> Any:
    """left + right as the dtype rounds it."""
    if dtype == "bool":
        return left | right
    if dtype == "bfloat16":
        return rounded_to_bfloat16(from_bfloat16(left) + from_bfloat16(right))
    with np.errstate(over="ignore"):
        return (left + right).astype(left.dtype)


def emulated(index, rows, target, dtype, adds, skipped=-1):  # type: ignore[no-untyped-def]
    """index (n,), rows (n, ...), target (size, ...)."""
    result, error = target.copy(), False
    for place, row in zip(index.tolist(), rows, strict=True):
        if skipped >= 0 and place == skipped:
            continue
        if not 0 <= place < len(target):
            error = True
            continue
        result[place] = total(result[place], row, dtype) if adds else row
    return result, error


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
@pytest.mark.parametrize("n, size, columns", [(50, 7, 37), (3, 5, 1), (400, 30, 128)])
def test_rows(n: int, size: int, columns: int, dtype: str, adds: bool) -> None:
    index = np.random.default_rng(n).integers(-2, size + 2, n)
    rows, target = values((n, columns), dtype, 1), values((size, columns), dtype, 2)
    out = Operand(target, dtype=dtype)
    maker = scatter.add_rows if adds else scatter.put_rows
    ran = run_maker(maker, [Operand(index), Operand(rows, dtype=dtype, offset=1)], [out])
    if adds and dtype in ("float16", "bfloat16"):
        expected, error = summed_wide(index, rows, target, dtype)
    else:
        expected, error = emulated(index, rows, target, dtype, adds)
    assert np.array_equal(out.view, expected)
    assert bool(ran.error.value) == error


def summed_wide(index, rows, target, dtype):  # type: ignore[no-untyped-def]
    """As emulated, in float32 and rounded once."""
    wide = from_bfloat16 if dtype == "bfloat16" else np.float32
    result, error = emulated(index, wide(rows), wide(target), "float32", True)
    if dtype == "bfloat16":
        return rounded_to_bfloat16(result), error
    return result.astype(np.float16), error


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bits(dtype: str) -> None:
    """As torch: scatter_add and index_add sum in float32, embedding and index_put round each."""
    dice = np.random.default_rng(11)
    index = dice.integers(0, 5, 300)
    rows, target = values((300, 6), dtype, 1), values((5, 6), dtype, 2)
    wide = summed_wide(index, rows, target, dtype)[0]
    each = emulated(index, rows, target, dtype, True)[0]
    assert not np.array_equal(wide, each)
    read = [Operand(index), Operand(rows, (1, 300), dtype)]
    out = Operand(target, (1, 5), dtype)
    run_maker(scatter.add_rows, read, [out])
    assert np.array_equal(out.view, wide)
    run_maker(scatter.add_rows, read, [out], skipped=-1)
    assert np.array_equal(out.view, each)
    run_maker(scatter.add_places, read, [out], n_index_dims=1, n_target_dims=1)
    assert np.array_equal(out.view, each)
    expanded = Operand(np.broadcast_to(index[:, None], (300, 6)), (1, 0))
    run_maker(scatter.add, [expanded, read[1]], [out], dim=0)
    assert np.array_equal(out.view, wide)
    large = Operand(values((900, 6), dtype, 2), None, dtype)
    few = [Operand(index[:9]), Operand(rows[:9], None, dtype)]
    run_maker(scatter.add_rows, few, [large])
    start = values((900, 6), dtype, 2)
    assert np.array_equal(large.view, emulated(index[:9], rows[:9], start, dtype, True)[0])


def test_skipped() -> None:
    index = np.array([2, 0, 2, 1, 0])
    rows, target = values((5, 3), "float32"), values((3, 3), "float32", 1)
    out = Operand(target)
    ran = run_maker(scatter.add_rows, [Operand(index), Operand(rows)], [out], skipped=2)
    assert np.array_equal(out.view, emulated(index, rows, target, "float32", True, 2)[0])
    assert not ran.error.value


@pytest.mark.parametrize("rows_strides, target_strides, index_stride", [
    ((0, 0, 0), (20, 4, 1), 1), ((20, 1, 5), (20, 4, 1), 2), ((20, 4, 1), (1, 7, 40), -1),
    ((-40, 8, -2), (20, 4, 1), 1), ((20, 4, 1), (-20, -4, -1), 3),
])  # fmt: skip
def test_row_strides(
    rows_strides: tuple[int, ...], target_strides: tuple[int, ...], index_stride: int
) -> None:
    index = np.random.default_rng(5).integers(0, 7, 40)
    rows, target = values((40, 5, 4), "float32", 1), values((7, 5, 4), "float32", 2)
    if not any(rows_strides):
        rows = np.broadcast_to(rows[:1, :1, :1], rows.shape)
    out = Operand(target, target_strides)
    run_maker(
        scatter.add_rows, [Operand(index, (index_stride,)), Operand(rows, rows_strides)], [out]
    )
    assert np.array_equal(out.view, emulated(index, rows, target, "float32", True)[0])


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int8"])
def test_vector_widths(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = np.random.default_rng(12).integers(0, 7, 90)
    rows, target = values((90, 131), dtype, 1), values((7, 131), dtype, 2)
    bits = []
    for width in (128, 256, 512):
        monkeypatch.setattr(CONFIG, "vector_bits", width)
        out = Operand(target, dtype=dtype)
        run_maker(scatter.add_rows, [Operand(index), Operand(rows, dtype=dtype)], [out])
        bits.append(out.view.tobytes())
    assert bits[0] == bits[1] == bits[2]


def test_many_units() -> None:
    """Columns are split among threads where they are many; sums keep the order of the indices."""
    dice = np.random.default_rng(6)
    for n, size, columns in ((2000, 100, 130), (50_000, 300, 1), (40_000, 5, 3)):
        index = dice.integers(-1, size, n)
        rows, target = values((n, columns), "float32", 1), values((size, columns), "float32", 2)
        expected = target.copy()
        inside = index >= 0
        np.add.at(expected, index[inside], rows[inside])
        out = Operand(target)
        ran = run_maker(scatter.add_rows, [Operand(index), Operand(rows)], [out])
        assert (ran.n_units > 1) == (columns > 100)
        assert ran.error.value
        assert np.array_equal(out.view, expected)


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("shape, size, dim", [
    ((5, 4), 3, 0), ((5, 4), 3, 1), ((40, 3), 7, 0), ((3, 40), 7, 1), ((4, 40, 3), 6, 1),
    ((4, 3, 2, 20), 6, 2), ((1, 9), 2, 1), ((9, 1), 2, 1), ((60_000,), 9, 0), ((90, 500), 20, 0),
    ((90, 500), 20, 1),
])  # fmt: skip
def test_along(shape: tuple[int, ...], size: int, dim: int, adds: bool) -> None:
    dice = np.random.default_rng(7)
    index = dice.integers(-1, size + 1, shape)
    target_shape = (*shape[:dim], size, *shape[dim + 1 :])
    source, target = values(shape, "float32", 1), values(target_shape, "float32", 2)
    out = Operand(target)
    maker = scatter.add if adds else scatter.put
    ran = run_maker(maker, [Operand(index), Operand(source)], [out], dim=dim)
    expected = target.copy()
    for place in np.argwhere((index >= 0) & (index < size)):
        at = tuple(place)
        to = (*at[:dim], index[at], *at[dim + 1 :])
        expected[to] = expected[to] + source[at] if adds else source[at]
    assert np.array_equal(out.view, expected)
    assert ran.error.value == int(((index < 0) | (index >= size)).any())


@pytest.mark.parametrize("index_strides, source_strides, target_strides", [
    ((1, 6), (8, 1), (1, 5)), ((-8, 1), (0, 0), (8, 1)), ((0, 1), (8, 1), (16, 2)),
    ((1, 0), (8, 1), (8, 1)),
])  # fmt: skip
@pytest.mark.parametrize("dim", [0, 1])
def test_along_strides(
    index_strides: tuple[int, int], source_strides: tuple[int, int],
    target_strides: tuple[int, int], dim: int,
) -> None:  # fmt: skip
    shape, size = (6, 8), 5
    index = np.random.default_rng(8).integers(0, size, shape)
    index = np.broadcast_to(index[:1], shape) if index_strides[0] == 0 else index
    index = np.broadcast_to(index[:, :1], shape) if index_strides[1] == 0 else index
    source = values(shape, "float64", 1)
    source = np.broadcast_to(source[:1, :1], shape) if not any(source_strides) else source
    target_shape = (size, 8) if dim == 0 else (6, size)
    if target_strides == (1, 5) and dim == 1:
        target_strides = (1, 6)
    target = values(target_shape, "float64", 2)
    out = Operand(target, target_strides)
    run_maker(
        scatter.add, [Operand(index, index_strides), Operand(source, source_strides)], [out],
        dim=dim,
    )  # fmt: skip
    expected = target.copy()
    for i, j in np.ndindex(*shape):
        if dim == 0:
            expected[index[i, j], j] += source[i, j]
        else:
            expected[i, index[i, j]] += source[i, j]
    assert np.array_equal(out.view, expected)


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("target_strides", [(40, 8, 1), (1, 6, 42), (8, 48, 1)])
def test_places(target_strides: tuple[int, ...], adds: bool) -> None:
    """A two-dimensional index over two dimensions of the target."""
    dice = np.random.default_rng(9)
    shape = (6, 5, 8) if target_strides[0] == 40 else (6, 7, 8)
    target = values(shape, "float32", 2)
    n_targets = shape[0] * shape[1]
    index = dice.integers(-1, n_targets + 1, (7, 9))
    source = values((7, 9, 8), "float32", 1)
    out = Operand(target, target_strides)
    maker = scatter.add_places if adds else scatter.put_places
    ran = run_maker(
        maker, [Operand(index, (1, 7)), Operand(source)], [out], n_index_dims=2, n_target_dims=2
    )
    flat = target.reshape(n_targets, 8)
    expected, error = emulated(index.ravel(), source.reshape(63, 8), flat, "float32", adds)
    assert np.array_equal(out.view, expected.reshape(shape))
    assert bool(ran.error.value) == error


@pytest.mark.parametrize("index_dims", [0, 1, 3])
def test_places_of_all_dimensions(index_dims: int) -> None:
    dice = np.random.default_rng(10)
    shape = {0: (), 1: (30,), 3: (3, 4, 5)}[index_dims]
    target = values((4, 5), "float32", 2)
    index, source = dice.integers(0, 20, shape), values(shape, "float32", 1)
    out = Operand(target)
    run_maker(
        scatter.add_places, [Operand(index), Operand(source)], [out],
        n_index_dims=index_dims, n_target_dims=2,
    )  # fmt: skip
    rows = source.reshape(-1)
    expected = emulated(index.reshape(-1), rows, target.reshape(-1), "float32", True)[0]
    assert np.array_equal(out.view, expected.reshape(4, 5))


@pytest.mark.parametrize("index_shape, columns, size", [((0,), 4, 3), ((3,), 0, 3), ((3,), 4, 0)])
def test_nothing(index_shape: tuple[int], columns: int, size: int) -> None:
    index = np.zeros(index_shape, np.int64)
    out = Operand(values((size, columns), "float32"))
    ran = run_maker(
        scatter.add_rows, [Operand(index), Operand(values((*index_shape, columns), "float32"))],
        [out],
    )  # fmt: skip
    assert bool(ran.error.value) == (size == 0)
