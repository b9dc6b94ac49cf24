"""RAdam (Liu et al., 2020): Adam that waits until its variance can be estimated.

Keeps     torch's order of operations.
Touches   each.py.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.optim.each import EachParameter, decayed


class RAdam(EachParameter):
    """Adam, rectified in its first steps."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        groups.check_not_negative(epsilon=eps)
        groups.check_betas(betas)
        groups.check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        state["exp_avg"] = groups.zeros_of(parameter)
        state["exp_avg_sq"] = groups.zeros_of(parameter)

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        beta1, beta2 = group["betas"]
        lr = groups.rate(group)
        gradient = decayed(parameter, gradient, group)
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        exp_avg.lerp_(gradient, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        correction = 1 - beta2**count
        mean = exp_avg / (1 - beta1**count)
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * count * (beta2**count) / correction
        if length <= 5.0:
            parameter.add_(mean * lr, alpha=-1.0)
            return
        rectified = (
            (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        ) ** 0.5
        adapted = (correction**0.5) / exp_avg_sq.sqrt().add(group["eps"])
        parameter.add_(mean * lr * adapted * rectified, alpha=-1.0)
