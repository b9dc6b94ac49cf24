"""Numbers as operands: which of them signatures name."""

import math

import pytest

import flambeau as torch
from flambeau.tensor.number_rules import is_special


@pytest.mark.parametrize(
    ("value", "wanted"), [(0, True), (0.0, True), (-0.0, False), (0j, True), (False, False)]
)
def test_zero_with_a_sign_is_no_zero_that_signatures_name(value, wanted):
    assert is_special(value, (0, 1)) is wanted


@pytest.mark.parametrize(
    "call",
    [
        lambda zero: torch.where(torch.tensor([True]), zero, 1.0),
        lambda zero: torch.where(torch.tensor([False]), torch.ones(1), zero),
        lambda zero: torch.ones(1) * torch.floor_divide(torch.ones(1), zero),
        lambda zero: torch.ones(1).floor_divide_(zero),
    ],
)
def test_a_zeros_sign_is_kept_whichever_came_first(call):
    for zero in (0.0, -0.0, 0.0, -0.0):  # the second time natively
        assert math.copysign(1.0, call(zero).item()) == math.copysign(1.0, zero)
