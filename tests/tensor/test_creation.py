"""Sizes that are none."""

import re

import pytest

import flambeau as torch


@pytest.mark.parametrize("make", [torch.empty, torch.zeros, lambda size: torch.full(size, 1)])
def test_sizes_are_ints(make):
    """torch looks at the first size before it unpacks the others."""
    first = "(position 1) must be tuple of ints, but found element of type float at pos 0"
    with pytest.raises(TypeError, match=re.escape(first)):
        make((2.5, 3))
    with pytest.raises(TypeError, match="failed to unpack the object at pos 2 with error"):
        make((3, 2.5))
