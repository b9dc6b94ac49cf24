"""Scatter, scans, sorting and masks through the public functions, for 1 to 3 threads.

Keeps     results equal NumPy's bit for bit, whatever the number of threads, in place and out of
          place, forward and backward.
Touches   flambeau's functions.
Not here  odd strides and partitions (test_scatter.py and its neighbours)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import flambeau as torch
from flambeau.base.config import CONFIG

DICE = np.random.default_rng(0)
X = DICE.standard_normal((60, 700)).astype(np.float32)
LONG = DICE.standard_normal(70_000).astype(np.float32)


@pytest.fixture(params=[1, 2, 3], autouse=True)
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before, CONFIG.threads = CONFIG.threads, request.param
    yield
    CONFIG.threads = before


def _tensor(value: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(value))


def _added(target: np.ndarray, index: np.ndarray, rows: np.ndarray) -> np.ndarray:
    result = target.copy()
    np.add.at(result, index, rows)
    return result


@pytest.mark.parametrize("x", [X, X.T, LONG], ids=["rows", "columns", "long"])
def test_sort(x: np.ndarray) -> None:
    values, indices = torch.sort(_tensor(x) if x is not X.T else _tensor(X).t(), stable=True)
    order = np.argsort(x, -1, kind="stable")
    assert np.array_equal(indices.numpy(), order)
    assert np.array_equal(values.numpy(), np.take_along_axis(x, order, -1))


def test_topk() -> None:
    for x, k in ((X, 9), (LONG, 100)):
        values, indices = torch.topk(_tensor(x), k)
        order = np.argsort(-x, -1, kind="stable")[..., :k]
        assert np.array_equal(indices.numpy(), order)
        assert np.array_equal(values.numpy(), np.take_along_axis(x, order, -1))


def test_sort_backward() -> None:
    x = _tensor(X).requires_grad_()
    weights = np.arange(700, dtype=np.float32)
    (torch.sort(x, 1).values * _tensor(weights)).sum().backward()
    ranks = np.argsort(np.argsort(X, 1, kind="stable"), 1)
    assert np.array_equal(x.grad.numpy(), weights[ranks])


def test_cumsum() -> None:
    for dim in (0, 1):
        expected = np.cumsum(X, dim, np.float64).astype(np.float32)
        x = _tensor(X.copy())
        assert np.array_equal(torch.cumsum(x, dim).numpy(), expected)
        x.cumsum_(dim)
        assert np.array_equal(x.numpy(), expected)
    assert np.array_equal(torch.cumprod(_tensor(X), 0).numpy(),
                          np.cumprod(X, 0, np.float64).astype(np.float32))  # fmt: skip


def test_nonzero_and_masks() -> None:
    mask = X > 0.5
    assert np.array_equal(torch.nonzero(_tensor(X) > 0.5).numpy(), np.argwhere(mask))
    assert np.array_equal(_tensor(X)[_tensor(X) > 0.5].numpy(), X[mask])
    x = _tensor(X.copy())
    x[x > 0.5] = 2.0
    assert np.array_equal(x.numpy(), np.where(mask, np.float32(2), X))


def test_scatter_add() -> None:
    index = DICE.integers(0, 60, (40, 700))
    expected = _added(X, (index, np.arange(700)), X[:40])
    given = _tensor(X.copy())
    assert np.array_equal(given.scatter_add(0, _tensor(index), _tensor(X)).numpy(), expected)
    given.t().scatter_add_(1, _tensor(index).t(), _tensor(X).t())
    assert np.array_equal(given.numpy(), expected)


def test_index_put_and_index_add() -> None:
    index = DICE.integers(0, 60, 500)
    rows = DICE.standard_normal((500, 700)).astype(np.float32)
    expected = _added(X, index, rows)
    i, source = _tensor(index), _tensor(rows)
    assert np.array_equal(_tensor(X).index_add(0, i, source).numpy(), expected)
    assert np.array_equal(
        _tensor(X).index_put((i,), source, accumulate=True).numpy(), expected
    )  # fmt: skip
    with pytest.raises(IndexError, match="out of"):
        _tensor(X).index_put((i + 60,), source, accumulate=True)


def test_embedding_backward() -> None:
    index = DICE.integers(0, 60, (30, 20))
    weight = _tensor(X).requires_grad_()
    (torch.embedding(weight, _tensor(index)) * 2.0).sum().backward()
    ones = np.full((600, 700), 2, np.float32)
    assert np.array_equal(weight.grad.numpy(), _added(np.zeros_like(X), index.ravel(), ones))


def test_complex_factors() -> None:
    start = torch.full((3,), 2.0, dtype=torch.complex64, requires_grad=True)
    places, factors = torch.tensor([0, 0]), torch.tensor([1j, 2j])
    found = start.scatter(0, places, factors, reduce="multiply")
    assert found.tolist() == [-4, 2, 2]
    (grad,) = torch.autograd.grad(found.real.sum(), start)
    assert grad.tolist() == [-2, 1, 1]
    alone = start.detach().scatter_reduce(0, places, factors, "prod", include_self=False)
    assert alone.tolist() == [-2, 2, 2]
    with pytest.raises(NotImplementedError, match="reduce_amax"):
        start.scatter_reduce(0, places, factors, "amax")


def test_sums_of_truths_in_einsum() -> None:
    truths = torch.tensor([[True, False], [True, True]])
    assert torch.einsum("ij->i", truths).tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="cumsum_out_cpu"):
        truths.cumsum(0, dtype=torch.bool)
