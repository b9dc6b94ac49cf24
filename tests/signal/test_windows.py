"""torch.signal.windows against values that torch 2.13 gave, and its refusals."""

import json
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.signal import windows

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "windows.json"
WANTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", WANTED)
def test_values(call):
    given = eval(call, {"w": windows, "f64": torch.float64})
    assert given.dtype == torch.float64
    assert given.tolist() == pytest.approx(WANTED[call], rel=1e-12, abs=1e-15)


def test_settings():
    made = windows.hann(4, requires_grad=True)
    assert made.requires_grad
    assert made.is_leaf
    assert made.dtype == torch.float32
    assert windows.kaiser(0).shape == (0,)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: windows.hann(-1), "general_cosine requires non-negative window length, got M=-1"),
        (lambda: windows.gaussian(3, std=0), "Standard deviation must be positive, got: 0 instead"),
        (lambda: windows.exponential(3, tau=0), "Tau must be positive, got: 0 instead"),
        (lambda: windows.exponential(3, center=1), "Center must be None for symmetric windows"),
        (lambda: windows.kaiser(3, beta=-1), "beta must be non-negative, got: -1 instead"),
        (lambda: windows.general_cosine(3, a=[]), "Coefficients cannot be empty"),
        (
            lambda: windows.cosine(3, dtype=torch.float16),
            "cosine expects float32 or float64 dtypes, got: torch.float16",
        ),
        (
            lambda: windows.cosine(3, layout=torch.sparse_coo),
            "cosine is implemented for strided tensors only, got: torch.sparse_coo",
        ),
    ],
)
def test_refusals(call, says):
    with pytest.raises(ValueError, match=says):
        call()
