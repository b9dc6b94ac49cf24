"""torch.autograd.functional against closed forms."""

import pytest

import flambeau as torch

F = torch.autograd.functional


def cubes(x):
    return x * x * x


def test_vjp():
    x = torch.tensor([1.0, 2.0])
    value, found = F.vjp(cubes, x, torch.tensor([1.0, 10.0]))
    assert value.tolist() == [1.0, 8.0]
    assert found.tolist() == [3.0, 120.0]
    assert not value.requires_grad
    assert not found.requires_grad
    assert x.grad is None


def test_vjp_of_several_inputs():
    value, found = F.vjp(
        lambda a, b: (a * b).sum(), (torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    )
    assert value.tolist() == 11.0
    assert [each.tolist() for each in found] == [[3.0, 4.0], [1.0, 2.0]]


def test_jvp():
    value, found = F.jvp(cubes, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
    assert value.tolist() == [1.0, 8.0]
    assert found.tolist() == [3.0, 120.0]


def test_jacobian():
    x = torch.tensor([1.0, 2.0])
    assert F.jacobian(cubes, x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    blocks = F.jacobian(lambda a, b: (a * b, a + b), (x, torch.tensor([3.0, 4.0])))
    assert [[each.tolist() for each in row] for row in blocks] == [
        [[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]],
        [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]],
    ]


def test_jacobian_within_a_graph():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    F.jacobian(cubes, x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_hessian():
    x = torch.tensor([1.0, 2.0])
    assert F.hessian(lambda a: (a * a * a).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert F.hessian(lambda a: a.select(0, 0) * a.select(0, 1), x).tolist() == [
        [0.0, 1.0], [1.0, 0.0]
    ]  # fmt: skip


@pytest.mark.parametrize("product", [F.hvp, F.vhp])
def test_products_with_the_hessian(product):
    value, found = product(
        lambda a: (a * a * a).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    )
    assert value.tolist() == 9.0
    assert found.tolist() == [6.0, 120.0]


def test_errors():
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="The vector v can only be None if the user-provided"):
        F.vjp(cubes, x)
    with pytest.raises(RuntimeError, match="The vector v can only be None if the input to the"):
        F.jvp(cubes, x)
    with pytest.raises(RuntimeError, match="v has invalid size: should be"):
        F.vjp(cubes, x, torch.tensor([1.0]))
    with pytest.raises(RuntimeError, match="given to hessian should contain a single element"):
        F.hessian(cubes, x)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors but the"):
        F.jacobian(cubes, [x])
    with pytest.raises(RuntimeError, match="`strict=True` and `vectorized=True` are not supported"):
        F.jacobian(cubes, x, strict=True, vectorize=True)
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        F.jacobian(cubes, x, strategy="forward-mode")
    for product in (F.hessian, F.vhp, F.hvp):
        arguments = () if product is F.hessian else (x,)
        with pytest.raises(RuntimeError, match="with respect to input 0 is independent of the"):
            product(lambda a: a.sum(), x, *arguments, strict=True)
    with pytest.raises(RuntimeError, match="must be computed in a differentiable manner"):
        F.jacobian(lambda a: torch.tensor([1.0]) * 2.0, x, strict=True)


def test_independent_outputs_give_zeros():
    x = torch.tensor([1.0, 2.0])
    assert F.jacobian(lambda a: torch.tensor([1.0]) * 2.0, x).tolist() == [[0.0, 0.0]]


def test_derivatives_of_powers_end_in_zeros():
    """As in torch: the second derivative of a square is in the graph, the third is zero."""
    for square in (lambda x: x**2, torch.square):
        x = torch.tensor([3.0], requires_grad=True)
        (first,) = torch.autograd.grad(square(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        (third,) = torch.autograd.grad(second.sum(), x, create_graph=True)
        assert [each.item() for each in (first, second, third)] == [6.0, 2.0, 0.0]
        assert second.requires_grad
    hessian = torch.autograd.functional.hessian(
        lambda x: (x**2).sum(), torch.ones(2), create_graph=True
    )
    assert hessian.tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_what_strict_mode_and_vectors_refuse():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"^Output 0 of the user-provided function is independe"):
        torch.autograd.functional.jacobian(lambda a, b: a * 2, (x, x), strict=True)
    with pytest.raises(RuntimeError, match=r"^The given v should contain a single Tensor"):
        torch.autograd.functional.vjp(lambda a: a * 2, x, (x, x))
