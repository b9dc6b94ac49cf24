"""GradScaler: a loss multiplied up so that small gradients survive float16.

Keeps     torch's rules: a step with infinite gradients is skipped and lowers the scale,
          growth_interval good steps raise it.
Touches   tensor.functions, the optimizers' parameter groups.
Not here  regions of lower precision (autocast_mode.py)."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base import dtypes
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer has come since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, takes the scale out of gradients, and skips steps that overflowed.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), GradScaler("cpu")
    >>> scaler.scale((w * 2).sum()).backward()
    >>> _ = scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach(), scaler.get_scale()
    (tensor([0.]), 65536.0)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = device
        if enabled and device != "cpu":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # Optimizer -> (its state, whether its gradients were found infinite).
        self._optimizers: dict[int, tuple[OptState, bool]] = {}

    def scale(self, outputs: Any) -> Any:
        """Outputs times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * creation.tensor(self._scale, dtype=dtypes.float32)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Take the scale out of the optimizer's gradients, for clipping before the step."""
        if not self._enabled:
            return
        state, _ = self._optimizers.get(id(optimizer), (OptState.READY, False))
        if state is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._optimizers[id(optimizer)] = (OptState.UNSCALED, self._unscaled(optimizer))

    def _unscaled(self, optimizer: Any) -> bool:
        """Whether a gradient, its scale taken out, is not finite."""
        found = []
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    if parameter.grad.dtype is dtypes.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    parameter.grad.mul_(1.0 / self._scale)
                    found.append(t.isfinite(parameter.grad).all())
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        return not bool(t.stack(found).all())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), unless its gradients are not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state, infinite = self._optimizers.get(id(optimizer), (OptState.READY, False))
        if state is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state is OptState.READY:
            self.unscale_(optimizer)
            _, infinite = self._optimizers[id(optimizer)]
        found = None if infinite else optimizer.step(*args, **kwargs)
        self._optimizers[id(optimizer)] = (OptState.STEPPED, infinite)
        return found

    def update(self, new_scale: Any = None) -> None:
        """Lower the scale after an overflow, raise it after enough steps without one."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._optimizers:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(infinite for _, infinite in self._optimizers.values()):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    self._scale *= self._growth_factor
                    self._growth_tracker = 0
        self._optimizers.clear()

    def get_scale(self) -> float:
        """The scale; 1 where disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what an overflow lowers the scale."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what an overflow lowers the scale."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        return self._growth_tracker if self._enabled else 0

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps; empty where disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state back."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = int(state_dict["_growth_tracker"])
