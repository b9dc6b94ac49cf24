"""counts(): differences of what the rooms count."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.debug import counts


def test_counts_of_one_segment() -> None:
    """Records, segments and launches of what the block did, and no more."""
    x = torch.arange(8.0)
    x.tolist()
    with counts() as seen:
        y = (x * 2 + 1).tolist()
    assert y[3] == 7.0
    assert (seen.records, seen.segments_flushed, seen.kernels_launched) == (2, 1, 1)
    again = seen.records
    (x + 1).tolist()
    assert seen.records == again  # counted at the end of the block


def test_counts_while_inside() -> None:
    """Inside the block the counts are those of now."""
    x = torch.ones(3)
    with counts() as seen:
        (x + 1).tolist()
        assert seen.segments_flushed == 1
        (x + 2).tolist()
        assert seen.segments_flushed == 2


def test_peak_bytes_above_the_start() -> None:
    """Memory at entry does not count."""
    kept = torch.ones(100_000)
    kept.tolist()
    with counts() as seen:
        (kept + 1).sum().item()
    assert seen.peak_bytes < kept.nbytes


def test_a_name_that_is_not_counted() -> None:
    """The error names what is."""
    with counts() as seen:
        pass
    with pytest.raises(AttributeError, match="kernels_launched"):
        _ = seen.kernels
    assert "records=0" in repr(seen)
