"""Numbers that a tracer does not know: there are none."""

import flambeau as torch


def test_sizes_are_ints():
    (size,) = torch.ones(3).shape
    assert not isinstance(size, torch.SymInt)
    assert not isinstance(1.0, (torch.SymFloat, torch.SymBool))
