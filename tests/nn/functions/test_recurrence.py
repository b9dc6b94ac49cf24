"""Layers whose steps are one operator against the same steps taken one by one."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
import flambeau.debug
from flambeau.nn.functions import recurrence
from tests.ops.switches_support import same_under_every_switch


def drawn(steps: int, gates: int, bias: bool) -> tuple[Any, Any, dict[str, Any]]:
    torch.manual_seed(steps)
    weights = {"weight_ih": torch.randn(gates * 6, 5), "weight_hh": torch.randn(gates * 6, 6)}
    if bias:
        weights |= {"bias_ih": torch.randn(gates * 6), "bias_hh": torch.randn(gates * 6)}
    for each in weights.values():
        each.mul_(0.3).requires_grad_()
    inputs = torch.randn(steps, 3, 5, requires_grad=True)
    return inputs, torch.randn(3, 6, requires_grad=True), weights


def by_steps(inputs: Any, hidden: Any, weights: dict[str, Any], is_reverse: bool) -> Any:
    parts = torch.nn.functional.linear(inputs, weights["weight_ih"], weights.get("bias_ih"))
    made = []
    for part in reversed(parts.unbind(0)) if is_reverse else parts.unbind(0):
        (hidden,) = recurrence.step("GRU", part, [hidden], weights)
        made.append(hidden)
    return torch.stack(made[::-1] if is_reverse else made), hidden


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("steps", [1, 7, recurrence.MAX_STEPS + 3])
def test_gru(steps: int, is_reverse: bool, bias: bool) -> None:
    inputs, hidden, weights = drawn(steps, 3, bias)
    operands = (inputs, hidden, *weights.values())
    outputs, (last,) = recurrence.run("GRU", inputs, [hidden], weights, is_reverse)
    expected, expected_last = by_steps(inputs, hidden, weights, is_reverse)
    assert (outputs - expected).abs().max().item() < 1e-5
    assert (last - expected_last).abs().max().item() < 1e-5
    found = torch.autograd.grad((outputs * outputs).sum() + last.sum(), operands)
    wanted = torch.autograd.grad((expected * expected).sum() + expected_last.sum(), operands)
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max().item() < 1e-4 * max(1.0, other.abs().max().item())


def test_gru_has_the_same_bits_whatever_the_machine() -> None:
    inputs, hidden, weights = drawn(9, 3, True)

    def results() -> list[Any]:
        outputs, _ = recurrence.run("GRU", inputs, [hidden], weights)
        grads = torch.autograd.grad(outputs.square().sum(), (inputs, *weights.values()))
        return [each.tolist() for each in (outputs.detach(), *grads)]

    same_under_every_switch(results)
