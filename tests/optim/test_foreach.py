"""Functions of lists of tensors against the method of each."""

import pytest

import flambeau as torch


def pair():
    return [torch.tensor([1.0, 4.0]), torch.tensor([[2.0]])]


@pytest.mark.parametrize(
    ("name", "others", "options", "wanted"),
    [("neg", [], {}, [[-1.0, -4.0], [-2.0]]),
     ("add", [1], {}, [[2.0, 5.0], [3.0]]),
     ("add", [pair()], {"alpha": 2}, [[3.0, 12.0], [6.0]]),
     ("mul", [torch.tensor(2.0)], {}, [[2.0, 8.0], [4.0]]),
     ("div", [[1.0, 4.0]], {}, [[1.0, 4.0], [0.5]]),
     ("maximum", [3.0], {}, [[3.0, 4.0], [3.0]]),
     ("addcmul", [pair(), pair()], {"value": 0.5}, [[1.5, 12.0], [4.0]]),
     ("addcdiv", [pair(), pair(), [1.0, 2.0]], {}, [[2.0, 5.0], [4.0]]),
     ("lerp", [[torch.zeros(2), torch.zeros(1, 1)], 0.5], {}, [[0.5, 2.0], [1.0]])],
)  # fmt: skip
def test_each_is_as_alone(name, others, options, wanted):
    found = getattr(torch, f"_foreach_{name}")(pair(), *others, **options)
    assert isinstance(found, tuple)
    assert [each.reshape(-1).tolist() for each in found] == wanted
    tensors = pair()
    assert getattr(torch, f"_foreach_{name}_")(tensors, *others, **options) is tensors
    assert [each.reshape(-1).tolist() for each in tensors] == wanted


def test_those_that_have_one_form():
    assert [each.item() for each in torch._foreach_norm(pair(), 1)] == [5.0, 2.0]
    assert [each.tolist() for each in torch._foreach_pow(2.0, pair())] == [[2.0, 16.0], [[4.0]]]
    tensors = pair()
    torch._foreach_copy_(tensors, torch._foreach_neg(tensors))
    assert tensors[1].item() == -2.0
    torch._foreach_zero_(tensors)
    assert tensors[0].tolist() == [0.0, 0.0]
    for name in ("_foreach_norm_", "_foreach_copy", "_foreach_no_such"):
        assert not hasattr(torch, name)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [(([], 1), RuntimeError, "Tensor list must have at least one tensor"),
     ((pair(), pair()[:1]), RuntimeError, "must have the same number of tensors, got 2 and 1"),
     ((pair(), [1.0]), RuntimeError, "must have same number of elements as scalar list"),
     ((torch.ones(1), 1), TypeError, "must be tuple of Tensors, not Tensor"),
     (([1, 2], 1), TypeError, "expected Tensor as element 0 in argument 0, but got int")],
)  # fmt: skip
def test_lists_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        torch._foreach_add(*arguments)
