"""Sums, products and quotients of short floats: where torch rounds what it is given."""

import pytest

import flambeau as torch

_SHORT = [1.5, 2.5, 3.25]
_WHOLE = [257, 259, 1027]


@pytest.mark.parametrize(
    ("name", "of_tensors", "of_number", "of_number_first"),
    [
        ("add", [258.0, 262.0, 1024.0], [258.0, 258.0, 260.0], [258.0, 258.0, 260.0]),
        ("sub", [-254.0, -258.0, -1020.0], [-254.0, -254.0, -253.0], [254.0, 254.0, 253.0]),
        ("mul", [384.0, 648.0, 3328.0], [386.0, 644.0, 836.0], [384.0, 640.0, 832.0]),
        (
            "div",
            [0.005859375, 0.0096435546875, 0.003173828125],
            [0.005828857421875, 0.00970458984375, 0.01263427734375],
            [171.0, 102.5, 79.0],
        ),
        ("fmod", _SHORT, _SHORT, [1.0, 1.0, 2.5]),
        ("floor_divide", [0.0] * 3, [0.0] * 3, [170.0, 102.0, 78.0]),
    ],
)
def test_operands_are_rounded_to_a_short_dtype(name, of_tensors, of_number, of_number_first):
    """As torch's kernels see them; products and quotients take one second element as it is."""
    short = torch.tensor(_SHORT, dtype=torch.bfloat16)
    function = getattr(torch, name)
    assert function(short, torch.tensor(_WHOLE)).tolist() == of_tensors
    for number in (257, torch.tensor(257), torch.tensor([257])):
        assert function(short, number).tolist() == of_number
    assert function(torch.tensor(257), short).tolist() == of_number_first


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_comparisons_round_numbers_to_a_short_dtype(dtype):
    """An element made from a number is that number."""
    x = torch.tensor([0.3, 0.1, 0.7, 1.1], dtype=dtype)
    for place, number in enumerate((0.3, 0.1, 0.7, 1.1)):
        assert (x == number).tolist() == [each == place for each in range(4)]
        assert not (x != number)[place]
        assert not (x > number)[place]
        assert not (x < number)[place]
