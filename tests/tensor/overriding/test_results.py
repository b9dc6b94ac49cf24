"""Tensor's own __torch_function__: tensors in results are of the subclass, the rest is as it is."""

import pytest

import flambeau as torch


class Length(torch.Tensor):
    """A subclass without members of its own."""


class Width(torch.Tensor):
    """Another, beside it."""


class Height(Length):
    """One derived from the first."""


def lengths(*values):
    return Length(list(values))


def test_tuples_lists_and_named_results():
    found = lengths(3.0, 1.0).sort()
    assert (type(found).__name__, type(found.values), type(found.indices)) == (
        "sort", Length, Length,
    )  # fmt: skip
    assert [type(each) for each in lengths(1.0, 2.0)] == [Length, Length]
    assert type(torch.meshgrid(lengths(1.0), lengths(2.0), indexing="ij")[1]) is Length
    assert type(lengths(1.0).tolist()[0]) is float


def test_of_two_classes_the_derived_one_is_meant():
    assert type(lengths(1.0) + Height([2.0])) is Height
    assert type(torch.ones(1) * lengths(2.0)) is Length
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.add'"):
        torch.add(lengths(1.0), Width([1.0]))
    with pytest.raises(TypeError, match="unsupported operand type"):
        lengths(1.0) + Width([1.0])


def test_in_place_and_out_keep_what_is_written():
    made = lengths(1.0, 2.0)
    kept = made
    made += 1
    assert made is kept
    target = torch.empty(2)
    assert type(torch.add(made, 1, out=target)) is Length
    assert target.tolist() == [3, 4]
    own = lengths(0.0, 0.0)
    assert torch.add(torch.ones(2), 1, out=own) is own


def test_views_share_memory_and_history():
    made = lengths(1.0, 2.0).requires_grad_()
    row = made[:1]
    (row * 3).sum().backward()
    assert type(row) is Length
    assert row.data_ptr() == made.data_ptr()
    assert (type(made.grad), made.grad.tolist()) == (torch.Tensor, [3, 0])
    assert repr(made * 2) == "Length([2., 4.], grad_fn=<AliasBackward0>)"


def test_a_pass_of_gradients_asks_nobody():
    asked = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    made = Seen([1.0, 2.0]).requires_grad_()
    total = (made * made).exp().sum()
    asked.clear()
    total.backward()
    assert asked == ["backward"]


def test_constructors():
    class Unit(torch.Tensor):
        def __new__(cls, data, unit=""):
            return super().__new__(cls, data)

        def __init__(self, data, unit=""):
            self.unit = unit

    made = Unit([1.0, 2.0], "m")
    assert (type(made), made.unit, made.tolist()) == (Unit, "m", [1, 2])
    assert type(Length(2, 3)) is Length
    assert type(torch.Tensor.__new__(Length, [1.0])) is Length
    assert type(Length(torch.ones(2))) is Length
    assert type(made.as_subclass(torch.Tensor)) is torch.Tensor
    with pytest.raises(TypeError, match="must be a subclass of Tensor"):
        made.as_subclass(int)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: torch.nn.Linear(4, 4), lambda: torch.nn.LayerNorm(4), lambda: torch.nn.ReLU(),
        lambda: torch.nn.Conv1d(2, 2, 1), lambda: torch.nn.Softmax(-1),
        lambda: torch.nn.Dropout(), lambda: torch.nn.BatchNorm1d(2), lambda: torch.nn.MaxPool1d(2),
        lambda: torch.nn.LSTM(4, 4), lambda: torch.nn.GRU(4, 4),
        lambda: torch.nn.TransformerEncoderLayer(4, 2, 8),
    ],
)  # fmt: skip
def test_layers_give_the_class_of_their_input(layer):
    found = layer()(torch.rand(3, 2, 4).as_subclass(Length))
    assert type(found[0] if isinstance(found, tuple) else found) is Length
