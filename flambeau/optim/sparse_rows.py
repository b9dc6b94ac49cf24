"""Steps of parameters whose gradient is sparse: only rows with a gradient move.

Keeps     torch's order of operations; duplicates are added up first where the rule is not linear.
Touches   sparse, through the operators of its tensors.
Not here  SparseAdam's rule (sparse_adam.py), dense gradients (the optimizers' own files)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.errors import helped
from flambeau.gradients.runtime import RUNTIME


def refuse(optimizer: Any) -> None:
    """torch's error of optimizers that take no sparse gradients."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if getattr(parameter._grad, "is_sparse", False):
                name = type(optimizer).__name__
                words = f"{name} does not support sparse gradients"
                if name in ("Adam", "AdamW"):
                    words = "Adam does not support sparse gradients, please consider SparseAdam"
                    words += " instead"
                raise RuntimeError(
                    helped(words, fix="sparse=False in the layer, or SGD, Adagrad, SparseAdam")
                )


def dense_ones(
    group: dict[str, Any], step: Callable[[Any, Any, dict[str, Any]], None]
) -> list[Any]:
    """Parameters with a dense gradient; step(parameter, gradient, group) takes the others."""
    params = [each for each in group["params"] if each._grad is not None]
    if not RUNTIME.has_sparse or not any(each._grad.is_sparse for each in params):
        return params
    with no_grad():
        for parameter in params:
            gradient = parameter._grad
            if gradient.is_sparse:
                step(parameter, -gradient if group["maximize"] else gradient, group)
    return [each for each in params if not each._grad.is_sparse]


def sgd(state: Any, parameter: Any, gradient: Any, group: dict[str, Any], lr: float) -> None:
    """One parameter's step of SGD."""
    if group["weight_decay"]:
        gradient = gradient.add(parameter, alpha=group["weight_decay"])  # torch refuses it
    momentum = group["momentum"]
    if momentum:
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = gradient.clone()
        else:
            buffer.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])
        gradient = gradient.add(buffer, alpha=momentum) if group["nesterov"] else buffer
    parameter.add_(gradient, alpha=-lr)


def adagrad(
    total: Any, parameter: Any, gradient: Any, group: dict[str, Any], step_size: float
) -> None:
    """One parameter's step of Adagrad; `total` is its sum of squares."""
    if group["weight_decay"]:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    gradient = gradient.coalesce()
    total.add_(gradient.pow(2))
    roots = total.sparse_mask(gradient)._values().sqrt().add(group["eps"])
    parameter.add_(gradient._with_values(gradient._values() / roots), alpha=-step_size)
