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
    assert gradcheck(lambda a: a * 2.0, doubles(0.5), check_batched_grad=True)
    with pytest.raises(RuntimeError, match="atol must be greater than or equal to zero, but got -"):
        gradcheck(lambda a: a, doubles(0.5), atol=-1)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda a: a, doubles(0.5).expand(3))
    with pytest.raises(AssertionError, match="Expected at least one of check_forward_ad or"):
        gradcheck(lambda a: a, doubles(0.5), check_backward_ad=False)


def test_forward_mode():
    """Derivatives along directions are compared, too; complex ones by their parts."""
    assert gradcheck(lambda a: a.exp(), doubles(0.3, -0.7), check_forward_ad=True)
    z = torch.tensor([1 + 2j, 0.5j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda a: a * a.conj().exp(), z, check_forward_ad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(
            WrongCube.apply, doubles(0.3, -0.7), check_forward_ad=True, check_backward_ad=False
        )
    assert gradgradcheck(lambda a: a**3, doubles(0.3), check_fwd_over_rev=True)


def test_a_function_that_forgets_its_input():
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda a: a.detach() * 2.0, doubles(0.3))
    assert gradcheck(lambda a: a.detach() * 0.0, doubles(0.3))


def test_one_tensor_given_twice_moves_in_both_places():
    x = torch.tensor([0.3, 0.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: a * b, (x, x))


def test_gradients_that_differ_from_pass_to_pass_are_refused():
    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 + torch.rand(2, dtype=torch.float64)

    x = torch.tensor([0.3, 0.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^Backward is not reentrant"):
        torch.autograd.gradcheck(Noisy.apply, x)
    assert torch.autograd.gradcheck(Noisy.apply, x, nondet_tol=9, atol=9)
