"""Parameters and buffers of subclasses of Tensor are of these, and count as what they are."""

import copy
import pickle

import pytest

import flambeau as torch


class Length(torch.Tensor):
    """A subclass without members of its own."""


class Model(torch.nn.Module):
    """Holds one of each."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(Length([1.0, 2.0]))
        self.seen = torch.nn.Buffer(Length([3.0]))


def test_kinds():
    model = Model()
    assert (type(model.weight), type(model.seen)) == (Length, Length)
    assert isinstance(model.weight, torch.nn.Parameter)
    assert not isinstance(model.weight, torch.nn.Buffer)
    assert isinstance(model.seen, torch.nn.Buffer)
    assert (model.weight.is_leaf, model.weight.requires_grad) == (True, True)
    assert [name for name, _ in model.named_parameters()] == ["weight"]
    assert [name for name, _ in model.named_buffers()] == ["seen"]
    assert repr(model.weight) == "Parameter(Length([1., 2.], requires_grad=True))"
    assert type(torch.nn.Buffer(torch.ones(1))) is torch.Tensor


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_training_and_conversion(optimizer):
    model = Model()
    step = optimizer(model.parameters(), lr=0.5)
    (model.weight * 2).sum().backward()
    step.step()
    assert type(model.weight) is Length
    assert model.weight[0] < 1
    model.double()
    assert (type(model.weight), model.weight.dtype) == (Length, torch.float64)
    assert isinstance(model.weight, torch.nn.Parameter)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_are_parameters_still(copied):
    made = copied(Model().weight)
    assert (type(made), made.requires_grad, made.tolist()) == (Length, True, [1, 2])
    assert isinstance(made, torch.nn.Parameter)


def test_a_class_whose_detach_is_of_another_class_is_refused():
    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    with pytest.raises(RuntimeError, match="Creating a Parameter from an instance of type Plain"):
        torch.nn.Parameter(torch.ones(1).as_subclass(Plain))
