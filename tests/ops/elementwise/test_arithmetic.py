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


@pytest.mark.parametrize(
    ("of", "bits"), [(torch.uint16, 16), (torch.uint32, 32), (torch.uint64, 64)], ids=str
)
def test_wide_unsigned_integers_compute(of, bits):
    """What torch refuses for want of a kernel is computed modulo the width, as uint8 is."""
    top = 2**bits - 1
    left = torch.tensor([10, top, 7] * 12, dtype=of)
    right = torch.tensor([5, 2, 0] * 12, dtype=of)
    for found, expected in (
        (left + right, [15, 1, 7]),
        (left - right, [5, top - 2, 7]),
        (right - left, [top - 4, 3, top - 6]),
        (left * right, [50, top - 1, 0]),
        (-left, [top - 9, 1, top - 6]),
        (~left, [top - 10, 0, top - 7]),
        (torch.maximum(left, right), [10, top, 7]),
        (left // right.clamp(min=2), [2, top // 2, 3]),
        (left % right.clamp(min=2), [0, 1, 1]),
        (left >> 1, [5, top // 2, 3]),
        (left.cummax(0)[0][:3], [10, top, top]),
    ):
        assert found.dtype is of
        assert found[:3].tolist() == expected
    assert (left > right)[:3].tolist() == [True, True, True]
    assert (left > 5)[:3].tolist() == [True, True, True]
    assert left.max().item() == top
    assert left.min().item() == 7
    assert left.sort(descending=True)[0][0].item() == top
    assert torch.arange(3, dtype=of).tolist() == [0, 1, 2]


def test_the_gradient_of_a_product_with_many_zeros():
    """Whatever the product of the others would overflow to."""
    rows = torch.tensor([[1e13, 0.0, 0.0], [1e13, 1e13, 0.0], [1e13, 1e13, 1e13]])
    assert torch.func.grad(torch.prod)(rows).tolist() == [[0.0] * 3] * 3
    one = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    assert torch.autograd.grad(one.prod(), one)[0].tolist() == [0.0, 6.0, 0.0]


@pytest.mark.parametrize(
    "divide",
    [
        lambda a, b: torch.div(a, b, rounding_mode="floor"),
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda a, b: a.clone().div_(b, rounding_mode="floor"),
        lambda a, b: a // b,
        lambda a, b: a % b,
        torch.fmod,
    ],
)
def test_zero_is_refused_after_other_divisors(divide):
    """What is remembered of a call with another number is not a call with 0."""
    a = torch.tensor([7, 1, 0])
    for divisor in (2, 3, 2):
        divide(a, divisor).tolist()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(a, 0)
