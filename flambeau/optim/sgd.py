"""Stochastic gradient descent, with momentum and Nesterov's variant.

Keeps     torch's settings; the first momentum is the gradient itself.
Touches   ops.update through update.py.
Not here  the arithmetic (ops.update.optimizers)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.base.layout import contiguous
from flambeau.optim import differentiable, sparse_rows
from flambeau.optim import group as groups
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.update import update
from flambeau.tensor import creation


class SGD(Optimizer):
    """p -= lr * (gradient, its running average with momentum, or a look ahead with nesterov).

    >>> import flambeau as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> w.grad = torch.ones(2)
    >>> torch.optim.SGD([w], lr=0.25).step()
    >>> w
    tensor([0.7500, 0.7500], requires_grad=True)
    """

    takes_sparse: ClassVar[bool] = True
    _later_settings: ClassVar[dict[str, Any]] = {
        "nesterov": False, "maximize": False, "differentiable": False, "fused": False,
        "foreach": None,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: Any = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        groups.check_flags(defaults)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        loss = groups.closed(closure, self)
        if self.defaults["differentiable"]:
            self._differentiable_step()
            return loss
        for group in self.param_groups:
            params = sparse_rows.dense_ones(group, self._sparse_step)
            if group["momentum"] == 0:
                self._update(group, params, [], False)
                continue
            fresh = [p for p in params if self.state[p].get("momentum_buffer") is None]
            if fresh:
                for p in fresh:
                    layout = p._layout
                    self.state[p]["momentum_buffer"] = (
                        creation.empty_layout(layout)
                        if layout.is_dense
                        else creation.empty_layout(contiguous(layout.shape, layout.dtype))
                    )
                self._update(group, fresh, self._buffers(fresh), True)
                new = set(map(id, fresh))
                params = [p for p in params if id(p) not in new]
            self._update(group, params, self._buffers(params), False)
        return loss

    def _sparse_step(self, parameter: Any, gradient: Any, group: dict[str, Any]) -> None:
        rate = groups.number(group["lr"])
        sparse_rows.sgd(self.state[parameter], parameter, gradient, group, rate)

    def _differentiable_step(self) -> None:
        with groups.recording(self):
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter._grad
                    if gradient is not None:
                        gradient = -gradient if group["maximize"] else gradient
                        differentiable.sgd(parameter, gradient, self.state[parameter], group)

    def _buffers(self, params: list[Any]) -> list[Any]:
        return [self.state[p]["momentum_buffer"] for p in params]

    def _update(
        self, group: dict[str, Any], params: list[Any], buffers: list[Any], first_step: bool
    ) -> None:
        if not params:
            return
        update("sgd_update")(
            (params, [p._grad for p in params], buffers),
            lr=groups.number(group["lr"]), weight_decay=groups.number(group["weight_decay"]),
            momentum=group["momentum"], dampening=group["dampening"],
            nesterov=group["nesterov"], maximize=group["maximize"], first_step=first_step,
        )  # fmt: skip
