"""Muon (Jordan et al., 2024): momentum of matrices, made nearly orthogonal.

Keeps     torch's arithmetic: a quintic Newton-Schulz iteration in bfloat16.
Touches   group.py, tensor.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.optim import group as groups
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import functions as t

# Coefficients, steps and floor of the author's.
_QUINTIC = (3.4445, -4.775, 2.0315)
_FLOOR = 1e-7
_N_STEPS = 5


class Muon(Optimizer):
    """For matrices of hidden layers; vectors and embeddings go to another optimizer."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True, ns_coefficients: tuple[float, float, float] = _QUINTIC,
        eps: float = _FLOOR, ns_steps: int = _N_STEPS, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        groups.check_one_rate(lr)
        groups.check_decay("momentum", momentum)
        groups.check_decay("weight decay", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{parameter.shape}"
                    )

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        loss = groups.closed(closure, self)
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter._grad is not None:
                        self._update(parameter, parameter._grad, group)
        return loss

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any]) -> None:
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = groups.zeros_of(gradient)
        buffer, momentum = state["momentum_buffer"], group["momentum"]
        buffer.lerp_(gradient, 1 - momentum)
        wanted = t.lerp(gradient, buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(wanted, group)
        rate = groups.number(group["lr"])
        parameter.mul_(1 - rate * group["weight_decay"])
        parameter.add_(update, alpha=-rate * _stretch(parameter.shape, group["adjust_lr_fn"]))


def _stretch(shape: Any, rule: str | None) -> float:
    """What the rate is multiplied by, so that steps of all shapes are alike."""
    rows, columns = shape
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix: Any, group: dict[str, Any]) -> Any:
    """Nearly U V^T of the matrix U S V^T: its singular values pulled towards 1."""
    coefficients, n_steps = group["ns_coefficients"], group["ns_steps"]
    if n_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    linear, cubic, quintic = coefficients
    is_tall = matrix.shape[0] > matrix.shape[1]
    made = matrix.bfloat16()
    made = made.T if is_tall else made
    # In place, as in torch: a momentum that is bfloat16 already is scaled itself.
    made.div_(made.norm().clamp(min=group["eps"]))
    for _ in range(n_steps):
        gram = made @ made.T
        polynomial = _rounded_once(cubic, gram, quintic, gram, gram)
        made = _rounded_once(linear, made, 1.0, polynomial, made)
    return made.T if is_tall else made


def _rounded_once(beta: float, added: Any, alpha: float, left: Any, right: Any) -> Any:
    """beta added + alpha left right, rounded to bfloat16 when all is summed, as torch's product
    rounds; coefficients of both signs cancel a good deal here."""
    product = left.float() @ right.float()
    return (product * alpha + added.float() * beta).bfloat16()
