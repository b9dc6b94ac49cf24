"""gradcheck finds wrong gradients and passes right ones."""

import pytest

import flambeau as torch

gradcheck = torch.autograd.gradcheck
gradgradcheck = torch.autograd.gradgradcheck


def doubles(*values):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


class WrongCube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2.0 * x * x * grad


def test_right_gradients_pass():
    assert gradcheck(lambda a, b: a * b + a.exp(), (doubles(0.3, -0.7), doubles(1.5, 0.2)))
    assert gradcheck(lambda a: (a.sigmoid(), a.sum()), doubles(0.3, -0.7))


def test_wrong_gradients_fail():
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to"):
        gradcheck(WrongCube.apply, doubles(0.3, -0.7))
    assert not gradcheck(WrongCube.apply, doubles(0.3, -0.7), raise_exception=False)


def test_a_forgotten_path_fails():
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda a: a.detach() * 2.0 + a, (doubles(0.3),))


def test_second_order():
    assert gradgradcheck(lambda a, b: a * a * b, (doubles(0.3, -0.7), doubles(1.5, 0.2)))


def test_arguments():
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require"):
        gradcheck(lambda a: a, torch.tensor([1.0], dtype=torch.float64))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double"):
        gradcheck(lambda a: a * 2.0, torch.tensor([0.5], requires_grad=True), atol=0.1)


class WithoutConjugate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad


def test_complex_gradients():
    z = torch.tensor([0.3 - 0.7j, -1.1 + 0.2j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda a, b: a * b + a.exp(), (z, doubles(1.5, 0.2)))
    assert gradcheck(lambda a: (a.abs(), a.angle(), a.conj() * a * a), z)
    assert gradcheck(lambda a: torch.outer(a, a.conj()).sum(0) / (2 + a), z)
    assert gradgradcheck(lambda a: a * a.abs(), z)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to"):
        gradcheck(WithoutConjugate.apply, z)
