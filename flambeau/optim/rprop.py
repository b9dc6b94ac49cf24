"""Rprop (Riedmiller and Braun, 1993): steps from the signs of gradients alone.

Keeps     torch's order of operations.
Touches   each.py.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.optim.each import EachParameter
from flambeau.tensor import functions as t
from flambeau.tensor.public import fills


class Rprop(EachParameter):
    """Steps that grow while the gradient keeps its sign and shrink when it changes."""

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        state["prev"] = groups.zeros_of(parameter)
        lr = groups.number(group["lr"])
        size = complex(lr, lr) if parameter.is_complex() else lr
        state["step_size"] = fills.full_like(parameter, size, requires_grad=False)

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        smaller, larger = group["etas"]
        lowest, highest = group["step_sizes"]
        agreement = gradient.detach().mul(state["prev"].detach()).sign()
        factor = t.where(agreement > 0, larger, t.where(agreement < 0, smaller, agreement + 1))
        size = state["step_size"].mul(factor.to(parameter.dtype)).clamp(lowest, highest)
        state["step_size"].copy_(size)
        gradient = gradient.masked_fill(agreement < 0, 0)
        parameter.addcmul_(gradient.sign(), size, value=-1)
        state["prev"].copy_(gradient)
