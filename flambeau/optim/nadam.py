"""NAdam (Dozat, 2016): Adam with Nesterov's momentum.

Keeps     torch's order of operations; the product of momenta is rounded as torch's tensor is.
Touches   each.py.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.optim.each import EachParameter, decayed
from flambeau.optim.state import rounded


class NAdam(EachParameter):
    """Adam that looks ahead by a momentum which grows with the steps."""

    capturable_words = {"what": "params, mu_products and state_steps"}

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        groups.check_not_negative(epsilon=eps)
        groups.check_betas(betas)
        groups.check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        state["mu_product"] = 1.0
        state["exp_avg"] = groups.zeros_of(parameter)
        state["exp_avg_sq"] = groups.zeros_of(parameter)

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = groups.number(group["lr"]), group["momentum_decay"]
        correction = 1 - beta2**count
        gradient = decayed(parameter, gradient, group)
        now = beta1 * (1.0 - 0.5 * (0.96 ** (count * decay)))
        later = beta1 * (1.0 - 0.5 * (0.96 ** ((count + 1) * decay)))
        product = state.hold("mu_product", state.number("mu_product") * rounded(now))
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        mean = exp_avg.lerp(gradient, 1 - beta1)
        exp_avg.copy_(mean)
        exp_avg_sq.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        bottom = exp_avg_sq.div(correction).sqrt().add(group["eps"])
        parameter.addcdiv_(gradient, bottom, value=-lr * (1.0 - now) / (1.0 - product))
        parameter.addcdiv_(mean, bottom, value=(-lr * later) / (1.0 - product * later))
