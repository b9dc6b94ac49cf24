"""Dual tensors: tangents of results, gradients of tangents, levels, what is refused."""

from __future__ import annotations

import pytest

import flambeau as torch

fwd = torch.autograd.forward_ad
x = torch.tensor([1.0, 2.0], dtype=torch.float64)
t = torch.tensor([0.5, 0.25], dtype=torch.float64)


def test_tangents() -> None:
    """A result has the derivative along the tangents; what does not depend on them has none."""
    with fwd.dual_level():
        dual = fwd.make_dual(x, t)
        primal, tangent = fwd.unpack_dual((dual**2).sum())
        assert (primal.item(), tangent.item()) == (5.0, 2.0)
        assert not primal.requires_grad
        assert not tangent.requires_grad
        assert fwd.unpack_dual(dual).tangent is t
        assert fwd.unpack_dual(x * 2).tangent is None
        written = x * 1
        written.mul_(dual)
        assert fwd.unpack_dual(written).tangent.tolist() == [0.5, 0.5]
    assert fwd.unpack_dual(dual).tangent is None


def test_parameters_of_a_module() -> None:
    """Tangents of several duals add up, whoever holds the duals meanwhile."""
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    with fwd.dual_level():
        duals = {
            name: fwd.make_dual(each.detach(), torch.ones_like(each))
            for name, each in layer.named_parameters()
        }
        out = torch.func.functional_call(layer, duals, (x,))
        del duals
        assert fwd.unpack_dual(out).tangent.tolist() == [4.0]


def test_reverse_over_forward() -> None:
    """The gradient of a tangent with respect to a leaf."""
    leaf = x.clone().requires_grad_()
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(leaf, t) ** 3).tangent
        (found,) = torch.autograd.grad(tangent.sum(), leaf)
    assert found.tolist() == (6 * x * t).tolist()


def test_a_tangent_that_lies_otherwise_is_copied() -> None:
    square = torch.ones(2, 2)
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(square, square.T)).tangent
    assert tangent is not square.T
    assert tangent.stride() == square.stride()


def test_levels() -> None:
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fwd.make_dual(x, t)
    level = fwd.enter_dual_level()
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fwd.enter_dual_level()
    with pytest.raises(RuntimeError, match=r"Tensor is of size \[2\] while .* of size \[3\]"):
        fwd.make_dual(x, torch.ones(3))
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        fwd.make_dual(torch.tensor([1]), torch.tensor([1]))
    fwd.exit_dual_level(level=level)
