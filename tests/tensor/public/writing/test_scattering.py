"""scatter with reduce= against loops over Python numbers."""

import pytest

import flambeau as torch

INDEX = [[0, 2, 0], [0, 1, 2]]
SOURCE = [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]


def by_hand(apply):
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    for i in range(2):
        for j in range(3):
            rows[INDEX[i][j]][j] = apply(rows[INDEX[i][j]][j], SOURCE[i][j])
    return rows


def start():
    return torch.arange(1.0, 10.0).reshape(3, 3)


@pytest.mark.parametrize(
    ("reduce", "apply"), [("add", lambda a, b: a + b), ("multiply", lambda a, b: a * b)]
)
def test_reductions(reduce, apply):
    index, source = torch.tensor(INDEX), torch.tensor(SOURCE)
    assert start().scatter(0, index, source, reduce=reduce).tolist() == by_hand(apply)
    assert start().scatter_(0, index, source, reduce=reduce).tolist() == by_hand(apply)


def test_a_number_as_in_torchs_example():
    found = torch.full((2, 4), 2.0).scatter_(1, torch.tensor([[2], [3]]), 1.23, reduce="multiply")
    assert torch.allclose(found, torch.tensor([[2, 2, 2.46, 2], [2, 2, 2, 2.46]]))
    assert torch.zeros(3).scatter(0, torch.tensor([1]), value=2.0).tolist() == [0, 2, 0]


def test_other_reductions_are_refused():
    with pytest.raises(RuntimeError, match="reduce argument must be either add or multiply"):
        start().scatter(0, torch.tensor(INDEX), 1.0, reduce="mean")
