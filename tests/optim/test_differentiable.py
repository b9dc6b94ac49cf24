"""differentiable=True: gradients through steps, against numbers that torch gives."""

from __future__ import annotations

import pytest

import flambeau as torch

WHOLE = (
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {"amsgrad": True}),
    ("AdamW", {"weight_decay": 0.1}), ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}), ("Adamax", {}), ("ASGD", {"t0": 0}),
    ("NAdam", {}), ("RAdam", {}), ("Rprop", {}), ("SGD", {"weight_decay": 0.1, "maximize": True}),
)  # fmt: skip


VALUES = (1.0, 2.0, -1.5)


def trained(name, settings, differentiable, steps=2, lr=0.1, values=VALUES):
    """(the first value, the value after steps whose gradients depend on it, the optimizer)."""
    first = torch.tensor(values, dtype=torch.float64, requires_grad=differentiable)
    made = first.clone()
    kind = getattr(torch.optim, name)
    optimizer = kind([made], lr=lr, differentiable=differentiable, **settings)
    for step in range(steps):
        made.grad = first * first * (3 + step)
        optimizer.step()
    return first, made, optimizer


@pytest.mark.parametrize(("name", "settings"), WHOLE, ids=[name for name, _ in WHOLE])
def test_the_same_steps(name, settings):
    """With a graph and without, values and state are the same to rounding."""
    _, with_graph, one = trained(name, settings, True)
    _, without, other = trained(name, settings, False)
    assert torch.allclose(with_graph, without, rtol=1e-12, atol=1e-12)
    assert one.state[with_graph].keys() == other.state[without].keys()
    assert not without.requires_grad


# d (p * p).sum() / d first after one step of lr 0.1, by torch 2.13.
GRADIENTS = (
    ("Adagrad", {}, [1.8, 3.8, -3.2]),
    ("Rprop", {}, [1.8, 3.8, -3.2]),
    ("RAdam", {}, [0.56, -0.32, -8.265]),
)


@pytest.mark.parametrize(("name", "settings", "expected"), GRADIENTS)
def test_gradients_through_a_step(name, settings, expected):
    first, made, _ = trained(name, settings, True, steps=1)
    (found,) = torch.autograd.grad((made * made).sum(), first)
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("name", "settings"), WHOLE, ids=[name for name, _ in WHOLE])
def test_gradients_through_several_steps(name, settings):
    """Derivatives of two steps against central differences."""
    first, made, _ = trained(name, settings, True)
    (found,) = torch.autograd.grad(made.sum(), first)
    if settings.get("momentum") and name == "SGD":  # its first buffer has no graph, as in torch
        assert found.isfinite().all()
        return
    for place, value in enumerate(VALUES):
        ends = []
        for moved in (value + 1e-6, value - 1e-6):
            values = (*VALUES[:place], moved, *VALUES[place + 1 :])
            ends.append(trained(name, settings, False, values=values)[1].sum().item())
        assert found[place].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "RAdam"])
def test_gradients_of_the_rate(name):
    """A learning rate may be a tensor that wants a gradient."""
    values = []
    for rate in (0.1, 0.1 + 1e-6, 0.1 - 1e-6):
        values.append(trained(name, {}, False, lr=rate)[1].sum().item())
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    _, made, _ = trained(name, {}, True, lr=lr)
    (found,) = torch.autograd.grad(made.sum(), lr)
    assert found.item() == pytest.approx((values[1] - values[2]) / 2e-6, rel=1e-4)


def test_leaves_cannot_be_written_with_a_graph():
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        torch.optim.SGD([leaf], lr=0.1, differentiable=True).step()
