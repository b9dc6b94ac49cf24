"""Optimizers that update one parameter after the other with recorded operators.

Keeps     the same order of operations as torch's single-tensor code; the fuser makes kernels of it.
          What a differentiable step may need for its gradients is not written to afterwards.
Touches   optimizer.py, group.py.
Not here  optimizers with an operator of their own (sgd.py, adam.py, rmsprop.py, adagrad.py)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.optim import group as groups
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import Tensor, functions


def as_reals(value: Any) -> Any:
    """A complex tensor as its parts, anything else as it is."""
    is_complex = isinstance(value, Tensor) and value.is_complex()
    return functions.view_as_real(value) if is_complex else value


class _PartsOfState:
    """A state whose complex tensors are seen as their parts."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self.number = state.number
        self.hold = state.hold

    def __getitem__(self, key: str) -> Any:
        return as_reals(self._state[key])


def each_step(optimizer: Optimizer, closure: Any, start: Any, update: Any) -> Any:
    """A step by rules for one parameter: start(state, parameter, group) for a new one, then
    update(parameter, gradient, state, group, count)."""
    loss = groups.closed(closure, optimizer)
    with groups.recording(optimizer):
        for group in optimizer.param_groups:
            groups.check_capturable(group, **optimizer.capturable_words)
            for parameter in group["params"]:
                gradient = parameter._grad
                if gradient is None:
                    continue
                state = groups.counted_state(optimizer, parameter)
                if not state:
                    state["step"] = 0
                    start(state, parameter, group)
                if group["maximize"]:
                    gradient = -gradient
                count = state.advance()
                if parameter.is_complex():
                    parameter, gradient = as_reals(parameter), as_reals(gradient)
                    state = _PartsOfState(state)
                update(parameter, gradient, state, group, count)
    return loss


class EachParameter(Optimizer):
    """`start` makes the state of a new parameter, `update` changes one parameter."""

    _later_settings: ClassVar[dict[str, Any]] = {
        "maximize": False, "capturable": False, "differentiable": False, "foreach": None,
    }  # fmt: skip

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        return each_step(self, closure, self.start, self.update)

    def start(self, state: Any, parameter: Any, group: dict[str, Any]) -> None:
        """Put zeros and the like into a new state."""
        raise NotImplementedError

    def update(
        self, parameter: Any, gradient: Any, state: Any, group: dict[str, Any], count: float
    ) -> None:
        """One parameter's step, the `count`-th."""
        raise NotImplementedError


def decayed(parameter: Any, gradient: Any, group: dict[str, Any]) -> Any:
    """The gradient with weight decay, or the parameter shrunk where that is decoupled."""
    decay = group["weight_decay"]
    if decay == 0:
        return gradient
    if group.get("decoupled_weight_decay"):
        parameter.mul_(1 - groups.number(group["lr"]) * decay)
        return gradient
    return gradient.add(parameter, alpha=decay)
