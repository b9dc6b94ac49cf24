"""Adagrad (Duchi et al., 2011).

Keeps     sums start at initial_accumulator_value when the optimizer is made, as torch's.
Touches   ops.update through update.py.
Not here  the arithmetic (ops.update.optimizers)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.optim import differentiable, sparse_rows
from flambeau.optim import group as groups
from flambeau.optim.each import each_step
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.update import update
from flambeau.tensor.public import fills

_item = dict.__getitem__


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients."""

    takes_sparse: ClassVar[bool] = True
    _later_settings: ClassVar[dict[str, Any]] = {
        "maximize": False, "differentiable": False, "foreach": None, "fused": None,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        groups.check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        groups.check_flags(defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                self._start(parameter)

    def _start(self, parameter: Any) -> Any:
        state = groups.counted_state(self, parameter)
        if not state:
            state["step"] = 0
            self._start_new(state, parameter, self.defaults)
        return state

    def _start_new(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        # The sum of a complex parameter is one of either part, and both start alike.
        start = group["initial_accumulator_value"]
        number = complex(start, start) if parameter.is_complex() else start
        state["sum"] = fills.full_like(parameter, number, requires_grad=False)

    def share_memory(self) -> None:
        """Move the sums to shared memory."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _sparse_step(self, parameter: Any, gradient: Any, group: dict[str, Any]) -> None:
        state = self._start(parameter)
        size = groups.number(group["lr"]) / (1 + (state.advance() - 1) * group["lr_decay"])
        sparse_rows.adagrad(_item(state, "sum"), parameter, gradient, group, size)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        if self.defaults["differentiable"]:
            return each_step(self, closure, self._start_new, differentiable.adagrad)
        loss = groups.closed(closure, self)
        for group in self.param_groups:
            by_count: dict[float, tuple[list[Any], ...]] = {}
            for parameter in sparse_rows.dense_ones(group, self._sparse_step):
                state = self._start(parameter)
                lists = by_count.setdefault(state.advance(), ([], [], []))
                lists[0].append(parameter)
                lists[1].append(parameter._grad)
                lists[2].append(_item(state, "sum"))
            lr, decay = groups.number(group["lr"]), group["lr_decay"]
            for count, lists in by_count.items():
                update("adagrad_update")(
                    lists, step_size=lr / (1 + (count - 1) * decay), eps=group["eps"],
                    weight_decay=group["weight_decay"], maximize=group["maximize"],
                )  # fmt: skip
        return loss
