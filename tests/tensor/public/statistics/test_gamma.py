"""polygamma: halves are taken, although zeta refuses them."""

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("dtype", "n", "expected"),
    [
        ("float16", 1, [1.64453125, 0.64501953125, 0.39501953125]),
        ("float16", 3, [6.4921875, 0.494140625, 0.118896484375]),
        ("bfloat16", 2, [-2.40625, -0.404296875, -0.154296875]),
        ("bfloat16", 3, [6.5, 0.49609375, 0.11865234375]),
    ],
)
def test_polygamma_of_halves(dtype, n, expected):
    """torch's bits: zeta is rounded, then multiplied."""
    x = torch.tensor([1.0, 2.0, 3.0], dtype=getattr(torch, dtype))
    found = torch.polygamma(n, x)
    assert found.dtype is x.dtype
    assert found.tolist() == expected
