"""Sorting against Python's stable sort over the same order of elements.

Keeps     NaN, infinities, both zeros, many equal elements, every dtype, odd strides, each way a
          row can be sorted.
Touches   devices.cpu.sorting.
Not here  the operators (tests/ops)."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.devices.cpu import sorting
from tests.devices.cpu.native_plans import (
    DTYPES,
    Operand,
    from_bfloat16,
    rounded_to_bfloat16,
    run_maker,
    values,
)


def _numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Elements with repetitions, and with what is special about floats."""
    dice = np.random.default_rng(seed)
    x = values(shape, dtype, seed)
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        if x.dtype.itemsize > 1:
            x = x * np.array(997, x.dtype) - np.array(3000, x.dtype)
        return x
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-42, -1e-42])
    chosen = dice.random(shape) < 0.3
    kinds = special[dice.integers(0, len(special), shape)]
    if dtype == "bfloat16":
        return np.where(chosen, rounded_to_bfloat16(kinds.astype(np.float32)), x)
    return np.where(chosen, kinds.astype(dtype), x)


def _order(x: np.ndarray, dtype: str, descending: bool) -> np.ndarray:
    """Places along the last dimension in stable order, NaN as the largest."""
    wide = from_bfloat16(x) if dtype == "bfloat16" else x
    if dtype == "bool":
        wide = wide.astype(np.int64)
    if wide.dtype.kind == "f":
        ranks = np.where(np.isnan(wide), np.inf, wide)
        nan = np.isnan(wide).astype(np.int64)
        if descending:
            ranks, nan = -ranks, -nan
        return np.lexsort((ranks, nan), axis=-1)
    if not descending:
        return np.argsort(wide, -1, kind="stable")
    return np.argsort(~wide, -1, kind="stable")


def _same(left: np.ndarray, right: np.ndarray, dtype: str) -> bool:
    """The same bits, NaNs alike."""
    if dtype == "bfloat16":
        return np.array_equal(left, right)
    bits = f"u{left.dtype.itemsize}"
    if left.dtype.kind == "f":
        left, right = (np.where(np.isnan(each), np.nan, each) for each in (left, right))
    return np.array_equal(left.view(bits), right.view(bits))


def _check(
    x: np.ndarray, dtype: str, dim: int = -1, descending: bool = False, k: int | None = None,
    strides: tuple[int, ...] | None = None, out_strides: tuple[int, ...] | None = None,
    wanted: str = "both",
) -> None:  # fmt: skip
    dim %= x.ndim
    size = x.shape[dim] if k is None else k
    shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
    values_out = Operand(np.zeros(shape, x.dtype), out_strides, dtype)
    indices_out = Operand(np.full(shape, -5, np.int64))
    operand = Operand(x, strides, dtype, 1)
    if k is None:
        run_maker(
            sorting.sort, [operand], [values_out, indices_out], dim=dim, descending=descending,
            wanted=wanted,
        )  # fmt: skip
    else:
        run_maker(
            sorting.topk, [operand], [values_out, indices_out], dim=dim, k=k, largest=descending,
            wanted=wanted,
        )  # fmt: skip
    order = _order(np.moveaxis(x, dim, -1), dtype, descending)[..., :size]
    order = np.moveaxis(order, -1, dim)
    if wanted != "values":
        assert np.array_equal(indices_out.view, order)
    else:
        assert (indices_out.view == -5).all()
    if wanted != "indices":
        expected = np.take_along_axis(x, order, dim)
        assert _same(np.ascontiguousarray(values_out.view), expected, dtype)
    else:
        assert not values_out.view.any()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, dim", [((7,), 0), ((5, 96), 1), ((97, 3), 0), ((3, 400), 1)])
def test_dtypes(shape: tuple[int, ...], dim: int, dtype: str, descending: bool) -> None:
    _check(_numbers(shape, dtype), dtype, dim, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows(dtype: str, descending: bool) -> None:
    _check(_numbers((70_001,), dtype), dtype, 0, descending)


@pytest.mark.parametrize("x", [
    np.zeros(70_000, np.int64), np.arange(70_000) % 300, np.arange(70_000)[::-1] * 2**40,
    np.arange(1000) % 7, np.full(300, np.nan), np.where(np.arange(70_000) % 2, 0.0, -0.0),
])  # fmt: skip
def test_digits_the_same_everywhere(x: np.ndarray) -> None:
    _check(x, str(x.dtype))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 95, 96, 97, 255, 256, 257, 5000])
def test_lengths(n: int) -> None:
    _check(_numbers((3, n), "float32"), "float32")
    _check(_numbers((n,), "float64"), "float64")


@pytest.mark.parametrize("strides, out_strides", [
    ((1, 50), (150, 1)), ((-150, 1), (1, 60)), ((150, -1), (150, 1)), ((0, 1), (150, 1)),
])  # fmt: skip
@pytest.mark.parametrize("dim", [0, 1])
def test_strides(strides: tuple[int, int], out_strides: tuple[int, int], dim: int) -> None:
    x = _numbers((50, 130), "float32")
    x = np.broadcast_to(x[:1], x.shape) if strides[0] == 0 else x
    _check(x, "float32", dim, False, None, strides, out_strides)


def test_several_long_rows() -> None:
    _check(_numbers((2, 66_000), "float32"), "float32")
    _check(_numbers((66_000, 2), "float64"), "float64", 0)


@pytest.mark.parametrize("wanted", ["values", "indices"])
@pytest.mark.parametrize("n", [20, 300, 70_000])
def test_one_result_only(n: int, wanted: str) -> None:
    _check(_numbers((n,), "float32"), "float32", wanted=wanted)
    _check(_numbers((n,), "float32"), "float32", wanted=wanted, k=5)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing(shape: tuple[int, ...]) -> None:
    _check(np.zeros(shape, np.float32), "float32", 0)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_dtypes(dtype: str, largest: bool) -> None:
    _check(_numbers((3, 500), dtype), dtype, 1, largest, 7)
    _check(_numbers((500, 3), dtype), dtype, 0, largest, 100)
    _check(_numbers((70_001,), dtype), dtype, 0, largest, 150)


@pytest.mark.parametrize("k", [0, 1, 2, 24, 25, 99, 100])
def test_topk_sizes(k: int) -> None:
    _check(_numbers((100,), "float32"), "float32", 0, True, k)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("k", [1, 10, 1000, 20_000])
def test_topk_of_ordered_rows(k: int, step: int) -> None:
    """All elements are candidates, or none after the first ones."""
    x = np.arange(70_000, dtype=np.float64)[::step] // 3
    _check(x, "float64", 0, True, k)
    _check(np.stack([x, -x], 1), "float64", 0, True, k)


def test_topk_strides() -> None:
    x = _numbers((50, 130), "float32")
    _check(x, "float32", 1, True, 5, (1, 50))
    _check(x, "float32", 1, True, 5, (150, -1), (1, 50))
    _check(x[:, ::-1], "float32", 1, False, 20, (300, 2), (20, 1))
