"""Adafactor (Shazeer and Stern, 2018): second moments of matrices kept as a row and a column.

Keeps     torch's order of operations; sizes are read once a step, for all parameters of a group.
Touches   state.py, group.py, tensor.
Not here  what all optimizers share (optimizer.py)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from flambeau.autograd.grad_mode import no_grad
from flambeau.optim import group as groups
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import functions as t
from flambeau.tensor.public.queries import finfo


class Adafactor(Optimizer):
    """Steps as large as the parameter's own mean square, clipped at `d`.

    >>> import flambeau as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> Adafactor([w], lr=0.25).step()
    >>> w
    tensor([0.7500, 1.2500], requires_grad=True)
    """

    _later_settings: ClassVar[dict[str, Any]] = {"foreach": None}

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        groups.check_one_rate(lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        groups.check_decay("weight_decay", weight_decay)
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        loss = groups.closed(closure, self)
        with no_grad():
            for group in self.param_groups:
                self._update([p for p in group["params"] if p._grad is not None], group)
        return loss

    def _update(self, parameters: list[Any], group: dict[str, Any]) -> None:
        rate, decay, clip = groups.number(group["lr"]), group["weight_decay"], group["d"]
        floor, smallest = group["eps"]
        for parameter in parameters:
            if parameter.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
        sizes = _root_mean_squares(parameters)
        updates, steps = [], []
        for parameter, size in zip(parameters, sizes, strict=True):
            if floor is None:  # of the group's first parameter, as in torch
                floor = finfo(parameter.dtype).eps
            state = groups.counted_state(self, parameter)
            if not state:
                _start(state, parameter._grad)
            count = state.advance()
            if decay != 0:
                parameter.mul_(1 - rate * decay)
            gradient = -parameter._grad if group["maximize"] else parameter._grad
            share = float(count) ** group["beta2_decay"]
            estimate = _estimate(state, gradient, share, floor)
            updates.append(estimate.clamp_(min=floor * floor).rsqrt_().mul_(gradient))
            steps.append(max(smallest, size) * min(rate, 1 / count**0.5))
        for parameter, update, step, size in zip(
            parameters, updates, steps, _root_mean_squares(updates), strict=True
        ):
            parameter.add_(update, alpha=-step / max(1.0, size / clip))


def _root_mean_squares(tensors: list[Any]) -> list[float]:
    """Of each tensor; all are recorded before the first is read."""
    norms = [t.norm(each) if each.numel() else None for each in tensors]
    return [
        0.0 if norm is None else norm.item() / math.sqrt(each.numel())
        for norm, each in zip(norms, tensors, strict=True)
    ]


def _start(state: Any, gradient: Any) -> None:
    state["step"] = 0
    if gradient.dim() > 1:
        rows, columns = list(gradient.shape), list(gradient.shape)
        rows[-1] = columns[-2] = 1
        state["row_var"] = gradient.new_zeros(rows)
        state["col_var"] = gradient.new_zeros(columns)
    else:
        state["variance"] = groups.zeros_of(gradient)


def _estimate(state: Any, gradient: Any, share: float, floor: float) -> Any:
    """Second moments of the gradient, in a tensor of their own."""
    if gradient.dim() < 2:
        variance = state["variance"]
        variance.lerp_(gradient * gradient, share)
        return variance.clone()
    for name, dim in (("row_var", -1), ("col_var", -2)):
        squares = gradient.norm(dim=dim, keepdim=True).square_().div_(gradient.shape[dim])
        state[name].lerp_(squares, share)
    rows = state["row_var"]
    mean = rows.mean(dim=-2, keepdim=True).clamp_(min=floor)
    return (rows @ state["col_var"]).div_(mean)
