"""Adadelta (Zeiler, 2012).

Keeps     torch's order of operations.
Touches   each.py.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.optim.each import EachParameter, decayed


class Adadelta(EachParameter):
    """Steps scaled by the ratio of running averages of squared steps and gradients."""

    capturable_words = {"has_xla": False}

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        groups.check_not_negative(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        state["square_avg"] = groups.zeros_of(parameter)
        state["acc_delta"] = groups.zeros_of(parameter)

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        gradient = decayed(parameter, gradient, group)
        square_avg, acc_delta = state["square_avg"], state["acc_delta"]
        square_avg.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        std = square_avg.add(eps).sqrt()
        delta = acc_delta.add(eps).sqrt().div(std).mul(gradient)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.add_(delta, alpha=-groups.number(group["lr"]))
