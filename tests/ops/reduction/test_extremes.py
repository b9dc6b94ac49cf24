"""Extremes: NaN wins, the first of equals is found, empty dims are refused in torch's words."""

import math

import pytest

import flambeau as torch


def test_nan_wins_and_is_found():
    """In values and in positions."""
    numbers = torch.tensor([1.0, math.nan, 3.0])
    assert math.isnan(numbers.amax().item())
    assert numbers.argmax().item() == 1
    assert numbers.argmin().item() == 1


def test_the_first_of_equals():
    """Along a dim and over all."""
    numbers = torch.tensor([[2.0, 5.0, 5.0], [5.0, 1.0, 1.0]])
    assert numbers.argmax(1).tolist() == [1, 0]
    assert numbers.argmax().item() == 1
    assert numbers.argmin(1).tolist() == [0, 1]


def test_equals_share_the_gradient_of_amax():
    """One goes to each of them in equal parts."""
    numbers = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    numbers.amax().backward()
    assert numbers.grad.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda t: t.amax(), RuntimeError, "amax(): Expected reduction dim to be specified for "),
        (lambda t: t.amax(1), IndexError, "amax(): Expected reduction dim 1 to have non-zero size"),
        (lambda t: t.argmax(), IndexError, "argmax(): Expected reduction dim to be specified for "),
        (lambda t: t.aminmax(), RuntimeError, "aminmax(): cannot compute aminmax over an empty"),
    ],
)
def test_nothing_has_no_extreme(call, kind, sentence):
    """torch's class and sentence."""
    with pytest.raises(kind) as caught:
        call(torch.zeros(2, 0))
    assert str(caught.value).startswith(sentence)


def test_the_gradient_of_nan_goes_to_nans():
    """Shared out among them, as torch's max and min do."""
    for name in ("max", "min"):
        given = torch.tensor([1.0, math.nan, math.nan], requires_grad=True)
        getattr(given, name)().backward()
        assert given.grad.tolist() == [0.0, 0.5, 0.5]
    for name in ("amax", "amin"):  # which torch asks for equality alone
        given = torch.tensor([[1.0, math.nan], [1.0, 2.0]], requires_grad=True)
        getattr(given, name)(1).sum().backward()
        assert given.grad.isnan().tolist() == [[True, True], [False, False]]


def test_no_dims_are_no_quantifier():
    """all(dim=()) says of each element whether it is not 0; sums take the same as all dims."""
    numbers = torch.tensor([[0, 2], [3, 0]])
    expected = [[False, True], [True, False]]
    assert numbers.all(dim=()).tolist() == numbers.any(dim=(), keepdim=True).tolist() == expected
    assert numbers.sum(dim=()).item() == 5
