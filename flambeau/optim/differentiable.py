"""Steps with a graph, for optimizers whose ordinary step is one operator: differentiable=True.

Keeps     the arithmetic of ops.update.optimizers in tensor operators; what a gradient needs is not
          written to afterwards, so that several steps can be differentiated.
Touches   tensors through their methods.
Not here  optimizers that are made of tensor operators anyway (each.py)."""

from __future__ import annotations

from typing import Any

from flambeau.optim import group as groups
from flambeau.tensor import functions as t

Group = dict[str, Any]


def start_adam(state: Any, parameter: Any, group: Group) -> None:
    """Adam's averages."""
    for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 2 + group["amsgrad"]]:
        state[name] = groups.zeros_of(parameter)


def start_rmsprop(state: Any, parameter: Any, group: Group) -> None:
    """RMSprop's averages, those that the settings need."""
    needed = {
        "square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"],
    }  # fmt: skip
    for name in needed:
        if needed[name]:
            state[name] = groups.zeros_of(parameter)


def _decayed(parameter: Any, gradient: Any, decay: Any) -> Any:
    is_number = not hasattr(decay, "shape")
    return gradient if is_number and decay == 0 else gradient + decay * parameter


def sgd(parameter: Any, gradient: Any, state: Any, group: Group) -> None:
    """As SgdUpdate; the first buffer is the gradient without its graph, as in torch."""
    gradient = _decayed(parameter, gradient, group["weight_decay"])
    momentum = group["momentum"]
    if momentum != 0:
        held = state.get("momentum_buffer")
        if held is None:
            held = gradient.detach().clone()
        else:
            held = held * momentum + gradient * (1 - group["dampening"])
        state["momentum_buffer"] = held
        gradient = gradient + held * momentum if group["nesterov"] else held
    parameter.sub_(gradient * group["lr"])


def adam(parameter: Any, gradient: Any, state: Any, group: Group, count: float) -> None:
    """As AdamUpdate."""
    beta1, beta2 = group["betas"]
    lr, decay = group["lr"], group["weight_decay"]
    if group["decoupled_weight_decay"]:
        parameter.mul_(1 - lr * decay)
    else:
        gradient = _decayed(parameter, gradient, decay)
    mean = state["exp_avg"].lerp(gradient, 1 - beta1)
    square = state["exp_avg_sq"] * beta2 + gradient * gradient * (1 - beta2)
    state["exp_avg"].copy_(mean)
    state["exp_avg_sq"].copy_(square)
    if group["amsgrad"]:
        square = t.maximum(state["max_exp_avg_sq"].clone(), square)
        state["max_exp_avg_sq"].copy_(square)
    root = square.sqrt() / (1 - beta2**count) ** 0.5 + group["eps"]
    parameter.sub_(mean / root * (lr / (1 - beta1**count)))


def rmsprop(parameter: Any, gradient: Any, state: Any, group: Group, count: float) -> None:
    """As RmspropUpdate."""
    alpha = group["alpha"]
    gradient = _decayed(parameter, gradient, group["weight_decay"])
    square = state["square_avg"] * alpha + gradient * gradient * (1 - alpha)
    state["square_avg"].copy_(square)
    if group["centered"]:
        mean = state["grad_avg"].lerp(gradient, 1 - alpha)
        state["grad_avg"].copy_(mean)
        square = square - mean * mean
    step = gradient / (square.sqrt() + group["eps"])
    if group["momentum"] > 0:
        step = state["momentum_buffer"] * group["momentum"] + step
        state["momentum_buffer"].copy_(step)
    parameter.sub_(step * group["lr"])


def adagrad(parameter: Any, gradient: Any, state: Any, group: Group, count: float) -> None:
    """As AdagradUpdate."""
    gradient = _decayed(parameter, gradient, group["weight_decay"])
    total = state["sum"] + gradient * gradient
    state["sum"].copy_(total)
    rate = group["lr"] / (1 + (count - 1) * group["lr_decay"])
    parameter.sub_(gradient / (total.sqrt() + group["eps"]) * rate)
