"""Adamax (Kingma and Ba, 2015): Adam with the largest gradient instead of their mean square.

Keeps     torch's order of operations.
Touches   each.py.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.optim.each import EachParameter, decayed
from flambeau.tensor import functions as t


class Adamax(EachParameter):
    """Steps divided by a decaying maximum of the gradients' sizes."""

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        groups.check_not_negative(epsilon=eps)
        groups.check_betas(betas)
        groups.check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        state["exp_avg"] = groups.zeros_of(parameter)
        state["exp_inf"] = groups.zeros_of(parameter)

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        beta1, beta2 = group["betas"]
        gradient = decayed(parameter, gradient, group)
        exp_avg, exp_inf = state["exp_avg"], state["exp_inf"]
        mean = exp_avg.lerp(gradient, 1 - beta1)
        largest = t.maximum(exp_inf.mul(beta2), gradient.abs().add(group["eps"]))
        exp_avg.copy_(mean)
        exp_inf.copy_(largest)
        rate = groups.number(group["lr"]) / (1 - beta1**count)
        parameter.addcdiv_(mean, largest, value=-rate)
