"""functional_call: other tensors in a module's places, and its own again afterwards."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils.stateless import functional_call


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def test_gradients_reach_what_was_given():
    layer = nn.Linear(2, 1)
    own = layer.weight
    given = {"weight": torch.ones(1, 2, requires_grad=True), "bias": torch.zeros(1)}
    functional_call(layer, given, (torch.tensor([[3.0, 4.0]]),)).sum().backward()
    assert given["weight"].grad.tolist() == [[3.0, 4.0]]
    assert layer.weight is own
    assert own.grad is None


def test_tied_weights_are_replaced_together():
    unit = torch.eye(2)
    x = torch.tensor([[1.0, 2.0]])
    assert functional_call(Tied(), {"first.weight": unit}, x).tolist() == [[1.0, 2.0]]
    both = {"first.weight": unit, "second.weight": 2 * unit}
    with pytest.raises(ValueError, match="multiple values for keys"):
        functional_call(Tied(), both, x)
    assert functional_call(Tied(), both, x, tie_weights=False).tolist() == [[2.0, 4.0]]


def test_strict_names_what_is_missing():
    with pytest.raises(RuntimeError, match=r"Error.s. in reparametrizing for Linear"):
        functional_call(nn.Linear(2, 1), {"weigth": torch.ones(1, 2)}, torch.ones(1, 2),
                        strict=True)  # fmt: skip


def test_an_error_inside_leaves_the_module_as_it_was():
    layer = nn.Linear(2, 1)
    own = layer.weight
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": torch.ones(1, 7)}, torch.ones(1, 2)).tolist()
    assert layer.weight is own
