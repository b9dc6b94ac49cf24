"""Largest elements of windows: rows shorter and longer than a vector, whatever its width."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import flambeau as torch
from flambeau.debug import vector_bits

F = torch.nn.functional


def expected(planes, kernel, stride, padding):
    """Largest elements and their places, window by window."""
    n, height, width = planes.shape
    padded = np.full((n, height + 2 * padding, width + 2 * padding), -np.inf, np.float32)
    padded[:, padding : padding + height, padding : padding + width] = planes
    rows = range(0, height + 2 * padding - kernel + 1, stride)
    columns = range(0, width + 2 * padding - kernel + 1, stride)
    values = np.zeros((n, len(rows), len(columns)), np.float32)
    places = np.zeros(values.shape, np.int64)
    for plane, (i, row), (j, column) in product(range(n), enumerate(rows), enumerate(columns)):
        window = padded[plane, row : row + kernel, column : column + kernel]
        at = np.unravel_index(window.argmax(), window.shape)
        values[plane, i, j] = window[at]
        places[plane, i, j] = (row + at[0] - padding) * width + column + at[1] - padding
    return values, places


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
def test_rows_of_every_length(seed, bits, kernel, stride, padding):
    rng = np.random.default_rng(seed)
    for width in (*range(3, 12), 16, 17, 31, 32, 33, 40, 63):
        planes = rng.integers(0, 9, (2, 5, width)).astype(np.float32)
        with vector_bits(bits):
            values, places = F.max_pool2d(
                torch.tensor(planes), kernel, stride, padding, return_indices=True
            )
            values, places = values.numpy(), places.numpy()
        right_values, right_places = expected(planes, kernel, stride, padding)
        assert (values == right_values).all()
        assert (places == right_places).all()
