"""torch.autograd's other names."""

import pytest

import flambeau as torch


def test_variable():
    data = torch.tensor([1.0, 2.0])
    made = torch.autograd.Variable(data, requires_grad=True)
    assert isinstance(made, torch.Tensor)
    assert isinstance(data, torch.autograd.Variable)
    assert made.requires_grad
    assert not data.requires_grad
    with torch.no_grad():
        made.add_(1.0)
    assert data.tolist() == [2.0, 3.0]


def test_gradient_edges():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    edge = torch.autograd.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    (found,) = torch.autograd.grad((y * y).sum(), edge)
    assert found.tolist() == [6.0, 12.0]


def test_increment_version():
    x = torch.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    torch.autograd.graph.increment_version(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_save_on_cpu():
    x = torch.tensor([2.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0]
