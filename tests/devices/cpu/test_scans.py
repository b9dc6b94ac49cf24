"""Running sums and products against NumPy in the same blocks.

Keeps     sizes around blocks, odd strides, every dtype; float results equal bit for bit.
Touches   devices.cpu.scans.
Not here  the operators (tests/ops)."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.devices.cpu import scans
from flambeau.devices.cpu.scans.scans_text import BLOCK
from tests.devices.cpu.native_plans import (
    Operand,
    from_bfloat16,
    rounded_to_bfloat16,
    run_maker,
    values,
)

CARRIED = {"float32": np.float64, "float64": np.float64, "float16": np.float32,
           "bfloat16": np.float32}  # fmt: skip


def _expected(x: np.ndarray, dim: int, dtype: str, is_product: bool) -> np.ndarray:
    fold = np.multiply if is_product else np.add
    carried = CARRIED.get(dtype, np.int64)
    wide = from_bfloat16(x) if dtype == "bfloat16" else x
    wide = np.moveaxis(wide.astype(carried), dim, -1)
    result = np.empty_like(wide)
    before = np.full(wide.shape[:-1], int(is_product), carried)
    with np.errstate(all="ignore"):
        for first in range(0, wide.shape[-1], BLOCK):
            part = wide[..., first : first + BLOCK]
            start = fold(before, part[..., 0])[..., None]
            rows = np.concatenate([start, part[..., 1:]], -1)
            result[..., first : first + BLOCK] = fold.accumulate(rows, -1)
            before = fold(before, fold.accumulate(part, -1)[..., -1])
        result = np.moveaxis(result, -1, dim)
        return rounded_to_bfloat16(result) if dtype == "bfloat16" else result.astype(x.dtype)


def _check(
    x: np.ndarray, dim: int, dtype: str, is_product: bool = False,
    strides: tuple[int, ...] | None = None, out_strides: tuple[int, ...] | None = None,
) -> None:  # fmt: skip
    out = Operand(np.zeros_like(x), out_strides, dtype)
    maker = scans.cumprod if is_product else scans.cumsum
    run_maker(maker, [Operand(x, strides, dtype, 1)], [out], dim=dim)
    expected = _expected(x, dim, dtype, is_product)
    assert np.array_equal(out.view, expected, equal_nan=expected.dtype.kind == "f")


@pytest.mark.parametrize("is_product", [False, True])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
              "float64"]
)  # fmt: skip
@pytest.mark.parametrize("shape, dim", [((37,), 0), ((5, 41), 1), ((41, 39), 0), ((3, 9, 6), 1)])
def test_dtypes(shape: tuple[int, ...], dim: int, dtype: str, is_product: bool) -> None:
    _check(values(shape, dtype), dim, dtype, is_product)


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK, 9 * BLOCK + 5, 70_000])
def test_blocks(n: int) -> None:
    _check(values((n,), "float32"), 0, "float32")


def test_blocks_in_rows_and_columns_give_the_same() -> None:
    x = values((5, 2 * BLOCK + 77), "float32")
    _check(x, 1, "float32")
    _check(np.ascontiguousarray(x.T), 0, "float32")
    _check(np.ascontiguousarray(x.T[:, :3]), 0, "float32")


@pytest.mark.parametrize("shape, dim", [((700, 300), 0), ((700, 300), 1), ((40, 50, 60), 1),
                                        ((2000, 3), 0), ((2000, 3), 1), ((0, 3), 0), ((3, 0), 0),
                                        ((1, 1), 0), ((2, 3, 4, 5, 6), 2)])  # fmt: skip
def test_shapes(shape: tuple[int, ...], dim: int) -> None:
    _check(values(shape, "float32"), dim, "float32")


@pytest.mark.parametrize("strides, out_strides", [
    ((1, 50), (60, 1)), ((-60, 2), (1, 50)), ((60, -1), (60, 1)), ((0, 1), (60, 1)),
    ((120, 1), (-60, 1)),
])  # fmt: skip
@pytest.mark.parametrize("dim", [0, 1])
def test_strides(strides: tuple[int, int], out_strides: tuple[int, int], dim: int) -> None:
    x = values((50, 30), "float32")
    x = np.broadcast_to(x[:1], x.shape) if strides[0] == 0 else x
    _check(x, dim, "float32", False, strides, out_strides)


def test_complex() -> None:
    x = values((50, 6), "complex64")
    out = Operand(np.zeros_like(x))
    run_maker(scans.cumsum, [Operand(x)], [out], dim=0)
    assert np.array_equal(out.view, np.cumsum(x, 0, np.complex128).astype(np.complex64))
    with pytest.raises(NotImplementedError, match="complex64"):
        run_maker(scans.cumprod, [Operand(x)], [out], dim=0)
