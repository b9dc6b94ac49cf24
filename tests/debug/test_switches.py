"""The switches: set for a block, put back after it, errors included."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import debug
from flambeau.base.config import CONFIG


def test_fuse_off_makes_a_segment_of_every_operator() -> None:
    """As FLAMBEAU_FUSE=0."""
    x = torch.ones(4)
    x.tolist()
    with debug.fuse(False), debug.counts() as seen:
        y = x + 1
        z = y * 2
        assert z.tolist() == [4.0] * 4
    assert seen.segments_flushed == 2
    with debug.counts() as seen:
        ((x + 1) * 2).tolist()
    assert seen.segments_flushed == 1


@pytest.mark.parametrize(
    ("switch", "name", "value"),
    [(debug.threads, "threads", 3), (debug.vector_bits, "vector_bits", 512),
     (debug.codegen_level, "codegen_level", 0), (debug.cache_dir, "cache_dir", "/nowhere"),
     (debug.keep_plans, "keep_plans", True)],
)  # fmt: skip
def test_switches_are_put_back(switch: object, name: str, value: object) -> None:
    """Also when the block raises."""
    before = getattr(CONFIG, name)

    def fails_inside() -> None:
        with switch(value):  # type: ignore[operator]
            assert getattr(CONFIG, name) == value
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_inside()
    assert getattr(CONFIG, name) == before


def test_codegen_levels_give_equal_bits() -> None:
    """0 to 3."""
    x = torch.linspace(-3, 3, 1001)
    expected = torch.softmax(torch.tanh(x) * x.exp(), 0).tolist()
    for level in (0, 2, 3):
        with debug.codegen_level(level):
            assert torch.softmax(torch.tanh(x) * x.exp(), 0).tolist() == expected


def test_values_that_are_none() -> None:
    """Refused before anything changes."""
    with pytest.raises(ValueError, match="256 or 512"):
        debug.vector_bits(128)
    with pytest.raises(ValueError, match="0, 1, 2 or 3"):
        debug.codegen_level(7)
