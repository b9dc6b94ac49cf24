"""RMSprop (Tieleman and Hinton, 2012).

Keeps     torch's settings, eps outside of the root.
Touches   ops.update through update.py.
Not here  the arithmetic (ops.update.optimizers)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.optim import differentiable
from flambeau.optim import group as groups
from flambeau.optim.each import each_step
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.update import update

_item = dict.__getitem__


class RMSprop(Optimizer):
    """Steps divided by the root of a running average of squared gradients."""

    _later_settings: ClassVar[dict[str, Any]] = {
        "momentum": 0, "centered": False, "maximize": False, "differentiable": False,
        "capturable": False, "foreach": None,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        groups.check_not_negative(
            epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        if self.defaults["differentiable"]:
            return each_step(self, closure, differentiable.start_rmsprop, differentiable.rmsprop)
        loss = groups.closed(closure, self)
        for group in self.param_groups:
            groups.check_capturable(group)
            lists: tuple[list[Any], ...] = ([], [], [], [], [])
            has_momentum, centered = group["momentum"] > 0, group["centered"]
            for parameter in group["params"]:
                if parameter._grad is None:
                    continue
                state = groups.counted_state(self, parameter)
                if not state:
                    state["step"] = 0
                    state["square_avg"] = groups.zeros_of(parameter)
                    if has_momentum:
                        state["momentum_buffer"] = groups.zeros_of(parameter)
                    if centered:
                        state["grad_avg"] = groups.zeros_of(parameter)
                state.advance()
                lists[0].append(parameter)
                lists[1].append(parameter._grad)
                lists[2].append(_item(state, "square_avg"))
                if centered:
                    lists[3].append(_item(state, "grad_avg"))
                if has_momentum:
                    lists[4].append(_item(state, "momentum_buffer"))
            if lists[0]:
                alpha = group["alpha"]
                update("rmsprop_update")(
                    lists, lr=groups.number(group["lr"]), alpha=alpha, one_minus_alpha=1 - alpha,
                    eps=group["eps"], weight_decay=group["weight_decay"],
                    momentum=group["momentum"], maximize=group["maximize"],
                )  # fmt: skip
        return loss
