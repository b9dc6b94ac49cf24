"""Tables looked up by number: how one_hot is called and what it refuses, where bags end."""

import pytest

import flambeau as torch
from flambeau import debug
from flambeau.nn.functional import embedding_bag, one_hot


@pytest.mark.parametrize(
    ("given", "n_classes", "error", "message"),
    [([0, 2], 2, RuntimeError, "Class values must be smaller than num_classes."),
     ([0, 2], 0, RuntimeError, "Class values must be smaller than num_classes."),
     ([-1], 0, RuntimeError, "Class values must be non-negative."),
     ([-1], -1, RuntimeError, "Class values must be non-negative."),
     ([], -1, RuntimeError, "Can not infer total number of classes from empty tensor."),
     ([1], 2.0, TypeError, r"one_hot\(\): argument 'num_classes' must be int, not float")],
)  # fmt: skip
def test_one_hot_refuses_as_torch_does(given, n_classes, error, message):
    with pytest.raises(error, match=message):
        one_hot(torch.tensor(given, dtype=torch.int64), n_classes)


def test_one_hot_takes_torchs_names():
    index = torch.tensor([1])
    assert one_hot(input=index, num_classes=2).tolist() == [[0, 1]]
    assert one_hot(tensor=index, num_classes=2).tolist() == [[0, 1]]
    with pytest.raises(
        TypeError, match=r"argument 'input' \(position 1\) must be Tensor, not list"
    ):
        one_hot([1])
    with pytest.raises(TypeError, match="missing 1 required positional arguments"):
        one_hot()


def test_a_last_offset_ends_the_last_bag():
    table = torch.tensor([[1.0], [2.0], [4.0]], requires_grad=True)
    index, limits = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2, 3])
    found = embedding_bag(index, table, limits, mode="sum", include_last_offset=True)
    found.sum().backward()
    assert found.tolist() == [[3.0], [4.0]]
    assert table.grad.tolist() == [[1.0], [1.0], [1.0]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_bags_of_one_length_are_bags_of_their_limits(mode, padding_idx):
    index = torch.tensor([[1, 2, 2, 5], [2, 2, 2, 2], [0, 5, 1, 3]])
    limits = torch.tensor([0, 4, 8])
    weights = torch.randn(3, 4) if mode == "sum" else None
    found = []
    for given, flat in ((index, weights), (index.flatten(), weights)):
        table = torch.randn(6, 3, generator=torch.Generator().manual_seed(3)).requires_grad_()
        made = embedding_bag(
            given, table, None if given.dim() == 2 else limits, mode=mode, padding_idx=padding_idx,
            per_sample_weights=flat if flat is None or given.dim() == 2 else flat.flatten(),
        )  # fmt: skip
        (made * made).sum().backward()
        found.append((made, table.grad))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("row", [3, -4])
def test_a_padding_row_that_is_not_there_is_refused(row):
    says = f"padding_idx must be within the number of embeddings, -3 through 2, but got {row}"
    with pytest.raises(RuntimeError, match=says):
        embedding_bag(torch.tensor([[0]]), torch.ones(3, 2), padding_idx=row)


def test_even_bags_take_few_operators():
    table, index = torch.randn(6, 3), torch.randint(0, 6, (5, 4))
    with debug.counts() as seen:
        embedding_bag(index, table, mode="sum").sum().item()
    assert seen.records <= 4


def test_a_bag_names_the_index_that_is_outside():
    with pytest.raises(
        RuntimeError, match="Index 2 of input takes value 7 which is not in the val"
    ):
        embedding_bag(torch.tensor([[1, 0], [7, 9]]), torch.ones(4, 2))
