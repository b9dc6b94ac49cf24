"""explain(): what fused, why segments were cut, how long kernels took."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.debug import explain
from flambeau.engine import run


def test_a_fused_chain() -> None:
    """One segment, one kernel that names its operators, and why it was cut."""
    x = torch.arange(8.0)
    with explain() as report:
        (x * 2 + 1).tolist()
    (segment,) = report.segments
    assert segment.reason == "tolist()"
    assert segment.operators[-2:] == ["mul", "add"]
    assert len(segment.kernels) == 1
    assert segment.kernel_milliseconds[0] > 0
    assert "mul, add" in str(report)


def test_what_did_not_fuse_and_why() -> None:
    """A reduction over rows and one over columns cannot share a loop; the report says so."""
    x = torch.ones(40, 50) * 2
    with explain() as report:
        first, second = x.sum(0), x.sum(1)
        total = (first.sum() + second.sum()).item()
    assert total == 2 * 40 * 50 * 2
    text = str(report)
    assert "starts a kernel" in text
    assert __file__ in text  # the line that recorded it


def test_nothing_happened() -> None:
    """An empty block says so."""
    with explain() as report:
        pass
    assert str(report) == "nothing was flushed"


def test_a_block_that_ends_in_an_error_is_over() -> None:
    """What waits is run at the end of the block; where that fails nothing goes on being timed."""
    before = list(run.OBSERVERS)

    def failing(*_: Any) -> None:
        raise ZeroDivisionError

    kept = torch.ones(3)
    try:
        block = explain()
        block.__enter__()
        run.OBSERVERS.append(failing)
        kept = kept * 2
        with pytest.raises(ZeroDivisionError):
            block.__exit__()
    finally:
        run.OBSERVERS.remove(failing)
    assert before == run.OBSERVERS
    assert run.TIMED == [False]
    assert kept.tolist() == [2.0] * 3
