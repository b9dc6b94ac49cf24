"""SparseAdam: Adam for sparse gradients, which moves only the averages of rows that have one.

Keeps     torch's arithmetic and state: a step count, and dense averages.
Touches   optimizer.py, group.py.
Not here  Adam of dense gradients (adam.py)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from flambeau.autograd.grad_mode import no_grad
from flambeau.optim import group as groups
from flambeau.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam (Kingma and Ba, 2015) of the elements that a sparse gradient stores.

    Raises   RuntimeError: a gradient is dense.

    >>> import flambeau as torch
    >>> table = torch.nn.Embedding(4, 2, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    """

    takes_sparse: ClassVar[bool] = True
    _later_settings: ClassVar[dict[str, Any]] = {"maximize": False}

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, maximize: bool = False,
    ) -> None:  # fmt: skip
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        groups.check_betas(betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        loss = groups.closed(closure, self)
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter._grad
                    if gradient is None:
                        continue
                    if not gradient.is_sparse:
                        raise RuntimeError(
                            "SparseAdam does not support dense gradients, please consider Adam "
                            "instead"
                        )
                    self._update(parameter, -gradient if group["maximize"] else gradient, group)
        return loss

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = groups.zeros_of(parameter)
            state["exp_avg_sq"] = groups.zeros_of(parameter)
        state["step"] += 1
        gradient = gradient.coalesce()
        if not gradient._nnz():
            return
        beta1, beta2 = group["betas"]
        values = gradient._values()
        first, second = state["exp_avg"], state["exp_avg_sq"]
        old_first = first.sparse_mask(gradient)._values()
        change = values.sub(old_first).mul(1 - beta1)
        first.add_(gradient._with_values(change))
        old_second = second.sparse_mask(gradient)._values()
        change_second = values.pow(2).sub(old_second).mul(1 - beta2)
        second.add_(gradient._with_values(change_second))
        steps = state["step"]
        root = change_second.add(old_second).sqrt().add(group["eps"])
        size = groups.number(group["lr"]) * math.sqrt(1 - beta2**steps) / (1 - beta1**steps)
        parameter.add_(gradient._with_values(change.add(old_first).div(root)), alpha=-size)
