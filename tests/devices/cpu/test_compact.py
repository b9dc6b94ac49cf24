"""Finding what is not zero, against NumPy.

Keeps     odd strides, sizes around blocks, dimensions of one place, too few and too many rows.
Touches   devices.cpu.compact.
Not here  the operators (tests/ops)."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.devices.cpu import compact
from tests.devices.cpu.native_plans import Operand, run_maker, values


def _check(mask: np.ndarray, strides: tuple[int, ...] | None = None, extra: int = 0) -> None:
    expected = np.stack(np.nonzero(mask), 1).astype(np.int64)
    size = max(0, len(expected) + extra)
    out = Operand(np.zeros((size, mask.ndim), np.int64))
    run_maker(compact.nonzero, [Operand(mask, strides, offset=3)], [out], fill_value=-7)
    wanted = np.full((size, mask.ndim), -7, np.int64)
    wanted[: len(expected)] = expected[:size]
    assert np.array_equal(out.view, wanted)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 7, 31, 32, 33, 4095, 4096, 4097, 70_001])
def test_vectors(n: int, share: float) -> None:
    mask = np.random.default_rng(n).random(n) < share
    _check(mask)


SHAPES = [(3, 5), (1, 7), (7, 1), (300, 301), (2, 3, 4), (1, 1, 1), (40, 50, 60), (3, 1, 2, 5),
          (0, 4), (2, 3, 4, 5, 6, 7)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: tuple[int, ...]) -> None:
    _check(np.random.default_rng(1).random(shape) < 0.4)


@pytest.mark.parametrize("extra", [-3, -1, 1, 100])
@pytest.mark.parametrize("n", [10, 90_000])
def test_other_sizes(n: int, extra: int) -> None:
    _check(np.random.default_rng(2).random((n, 2)) < 0.3, extra=extra)


@pytest.mark.parametrize("shape, strides", [
    ((30, 40), (1, 30)), ((30, 40), (-80, 2)), ((300, 400), (1, 300)), ((5, 6), (0, 1)),
    ((9,), (-1,)), ((100_000,), (3,)), ((20, 30, 40), (1, 1000, 24)),
])  # fmt: skip
def test_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    mask = np.random.default_rng(3).random(shape) < 0.4
    if 0 in strides:
        mask = np.broadcast_to(mask[:1], shape)
    _check(mask, strides)


def test_result_of_other_strides() -> None:
    mask = np.random.default_rng(4).random((50, 60)) < 0.4
    expected = np.stack(np.nonzero(mask), 1)
    out = Operand(np.zeros(expected.shape, np.int64), (1, len(expected)))
    run_maker(compact.nonzero, [Operand(mask)], [out], fill_value=0)
    assert np.array_equal(out.view, expected)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_elements(shape: tuple[int, ...], dtype: str) -> None:
    dice = np.random.default_rng(5)
    mask, x = dice.random(shape) < 0.4, values(shape, dtype)
    expected = x[mask]
    out = Operand(np.zeros_like(expected))
    run_maker(compact.masked_select, [Operand(mask), Operand(x, offset=1)], [out])
    assert np.array_equal(out.view, expected)
    target, source = Operand(x), values(expected.shape, dtype, 1)
    run_maker(compact.masked_scatter, [Operand(mask), Operand(source)], [target])
    wanted = x.copy()
    wanted[mask] = source
    assert np.array_equal(target.view, wanted)


@pytest.mark.parametrize("strides", [(1, 30), (-80, 2), (0, 1)])
def test_strided_elements(strides: tuple[int, int]) -> None:
    dice = np.random.default_rng(6)
    mask, x = dice.random((30, 40)) < 0.4, values((30, 40), "float32")
    x = np.broadcast_to(x[:1], x.shape) if strides[0] == 0 else x
    out = Operand(np.zeros(mask.sum() - 5, np.float32), (2,))
    run_maker(
        compact.masked_select, [Operand(mask, (1, 30)), Operand(x, strides)], [out]
    )  # fmt: skip
    assert np.array_equal(out.view, x[mask][:-5])
    if strides[0]:
        target, source = Operand(x, strides), values((mask.sum(),), "float32", 1)
        run_maker(compact.masked_scatter, [Operand(mask), Operand(source, (-1,))], [target])
        wanted = x.copy()
        wanted[mask] = source
        assert np.array_equal(target.view, wanted)


def test_scalars() -> None:
    for chosen in (True, False):
        mask, x = np.array(chosen), np.array(3.0)
        out = Operand(np.zeros(int(chosen)))
        run_maker(compact.masked_select, [Operand(mask), Operand(x)], [out])
        assert np.array_equal(out.view, x[mask])
