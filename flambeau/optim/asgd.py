"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

Keeps     torch's order of operations; rates are rounded as torch's tensors are.
Touches   each.py.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.optim.each import EachParameter, decayed
from flambeau.optim.state import rounded


class ASGD(EachParameter):
    """SGD with a falling rate, and the average of its way in state["ax"]."""

    capturable_words = {"what": "params, mus, etas, and state_steps"}

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        groups.check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        state.hold("eta", groups.number(group["lr"]))
        state["mu"] = 1.0
        state["ax"] = groups.zeros_of(parameter)

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        lr, lambd = groups.number(group["lr"]), group["lambd"]
        gradient = decayed(parameter, gradient, group)
        eta, mu, average = state.number("eta"), state.number("mu"), state["ax"]
        parameter.mul_(1 - lambd * eta)
        parameter.add_(gradient, alpha=-eta)
        if mu != 1:
            average.add_(parameter.sub(average).mul_(mu))
        else:
            average.copy_(parameter)
        state.hold("eta", rounded(lr / ((1 + lambd * lr * count) ** group["alpha"])))
        state.hold("mu", rounded(1 / max(1, count - group["t0"])))
