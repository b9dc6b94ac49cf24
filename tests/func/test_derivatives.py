"""grad, vjp, jvp of functions of nested tensors, and whose graph a result belongs to."""

import pytest

import flambeau as torch
from flambeau.func import grad, grad_and_value, jvp, linearize, vjp


def test_gradients_of_any_order():
    x = torch.tensor(2.0)
    power = lambda x: x**4  # noqa: E731
    assert float(grad(power)(x)) == 32.0
    assert float(grad(grad(power))(x)) == 48.0
    assert float(grad(grad(grad(power)))(x)) == 48.0
    assert not grad(power)(x).requires_grad


def test_nested_arguments_and_aux():
    given = {"w": torch.ones(2), "b": [torch.zeros(())]}

    def loss(parameters, x):
        value = (parameters["w"] * x).sum() + parameters["b"][0] * 3
        return value, value + 1

    made, (value, aux) = grad_and_value(loss, has_aux=True)(given, torch.tensor([2.0, 5.0]))
    assert made["w"].tolist() == [2.0, 5.0]
    assert float(made["b"][0]) == 3.0
    assert (float(value), float(aux)) == (7.0, 8.0)
    both = grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(torch.ones(2), torch.full((2,), 4.0))
    assert [each.tolist() for each in both] == [[4.0, 4.0], [1.0, 1.0]]


def test_a_result_belongs_to_the_graph_of_what_was_captured():
    w = torch.ones(3, requires_grad=True)
    found = grad(lambda x: (w * x * x).sum())(torch.tensor([1.0, 2.0, 3.0]))
    assert found.requires_grad
    found.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]


def test_inputs_that_ask_for_gradients_get_them():
    x = torch.tensor(3.0, requires_grad=True)
    grad(lambda x: x**3)(x).backward()
    assert float(x.grad) == 18.0


def test_products():
    x = torch.tensor([1.0, 2.0])
    value, along = jvp(lambda a, b: (a * b, a.sum()), (x, x + 1), (torch.ones(2), torch.zeros(2)))
    assert [each.tolist() for each in along] == [[2.0, 3.0], 2.0]
    assert value[1].tolist() == 3.0
    value, back = vjp(lambda a, b: a * b, x, x + 1)
    assert [each.tolist() for each in back(torch.ones(2))] == [[2.0, 3.0], [1.0, 2.0]]
    # A tuple for one primal, too.
    assert [each.tolist() for each in vjp(torch.square, x)[1](torch.ones(2))] == [[2.0, 4.0]]
    _, forward = linearize(torch.square, x)
    assert forward(torch.ones(2)).tolist() == [2.0, 4.0]


def test_mistakes():
    with pytest.raises(RuntimeError, match="to return a scalar Tensor, got tensor with 1 dims"):
        grad(lambda x: x)(torch.ones(2))
    with pytest.raises(RuntimeError, match="Got argnum=3, but only 1 positional inputs"):
        grad(torch.sum, argnums=3)(torch.ones(2))
    with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
        jvp(torch.sin, torch.ones(2), torch.ones(2))
