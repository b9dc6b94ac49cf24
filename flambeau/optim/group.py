"""What steps have in common: settings checked, closures called, tensors gathered.

Keeps     parameters without a gradient are left alone and keep no state.
Touches   state.py, autograd (closures run with gradients on).
Not here  the rules of the optimizers."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.base.errors import helped
from flambeau.gradients.runtime import RUNTIME
from flambeau.optim import sparse_rows
from flambeau.optim.state import ParameterState
from flambeau.tensor import Tensor
from flambeau.tensor.public import fills


def number(value: Any) -> Any:
    """A setting as a Python number; tensors of one element are read."""
    return value.item() if isinstance(value, Tensor) else value


def rate(group: dict[str, Any]) -> Any:
    """The learning rate as a Python number, or as the tensor whose gradient is wanted."""
    lr = group["lr"]
    return lr if isinstance(lr, Tensor) and lr.requires_grad else number(lr)


def check_rate(lr: Any) -> None:
    """Refuse learning rates below zero and tensors of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_one_rate(lr: Any) -> None:
    """The same in the words of torch's newer optimizers."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")


def check_decay(name: str, value: float) -> None:
    """Refuse a setting below zero, in the words of torch's newer optimizers."""
    if not value >= 0.0:
        raise ValueError(f"{name} should be >= 0 but is: {value}")


def check_betas(betas: Any) -> None:
    """Refuse betas outside [0, 1)."""
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def check_not_negative(**settings: Any) -> None:
    """Refuse settings below zero, by torch's words for them."""
    for name, value in settings.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_capturable(
    group: dict[str, Any], what: str = "params and state_steps", *, has_xla: bool = True
) -> None:
    """Refuse steps for CUDA graphs: there is no device that captures them."""
    if group.get("capturable") and any(p._grad is not None for p in group["params"]):
        devices = ["cuda", "xpu", "hpu", "privateuseone", *["xla"] * has_xla]
        raise AssertionError(
            helped(
                f"If capturable=True, {what} must be on supported devices: {devices}.",
                given="parameters on the CPU",
                fix="capturable=False",
            )
        )


def check_flags(settings: dict[str, Any]) -> None:
    """Refuse flags that exclude each other."""
    if settings.get("fused"):
        if settings.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if settings.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def closed(closure: Any, optimizer: Any) -> Any:
    """The loss of a closure, with gradients on; None without one. Refuses sparse gradients that
    the optimizer does not take."""
    loss = None
    if closure is not None:
        with enable_grad():
            loss = closure()
    if RUNTIME.has_sparse and not getattr(optimizer, "takes_sparse", False):
        sparse_rows.refuse(optimizer)
    return loss


def recording(optimizer: Any) -> Any:
    """The mode a step runs in: without graph, unless the optimizer is differentiable."""
    return enable_grad() if optimizer.defaults.get("differentiable") else no_grad()


def zeros_of(parameter: Any) -> Any:
    """Zeros in the parameter's shape, dtype and memory order."""
    return fills.zeros_like(parameter, requires_grad=False)


def counted_state(optimizer: Any, parameter: Any) -> Any:
    """The state of a parameter, with a step count; empty where it is new."""
    state = optimizer.state[parameter]
    if type(state) is not ParameterState:
        made = ParameterState()
        made.update(state)
        state = optimizer.state[parameter] = made
    return state
