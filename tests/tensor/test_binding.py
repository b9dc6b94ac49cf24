"""Numbers among the operands of operators."""

import pytest

import flambeau as torch


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_integers_beyond_64_bits_are_refused_everywhere(number):
    """torch's class and words, whoever reads the number first, and again when the way is known."""
    whole, real = torch.ones(2, dtype=torch.int64), torch.ones(2)
    calls = [
        lambda: whole + number, lambda: number - whole, lambda: real * number, lambda: real**number,
        lambda: real.add_(number), lambda: torch.where(whole > 0, whole, number),
        lambda: real.clamp(number),
    ]  # fmt: skip
    for _ in range(3):
        for call in calls:
            with pytest.raises(OverflowError, match="int too big to convert"):
                call()
    assert (whole + (2**63 - 1)).tolist() == [-(2**63)] * 2
    assert real.tolist() == [1.0, 1.0]
