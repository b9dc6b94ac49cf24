"""GradScaler: keeps the gradients of a low precision away from zero.

Keeps     torch's protocol: scale, backward, (unscale_), step, update; a step whose gradients are
          not finite is skipped and the scale goes down; without a GPU the default, a scaler for
          CUDA, is disabled with torch's warning.
Touches   tensor.functions.
Not here  regions of lower precision (autocast_mode.py)."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from flambeau.base import dtypes
from flambeau.gradients.modes import no_grad
from flambeau.tensor import functions as t
from flambeau.tensor.tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What has happened to an optimizer's gradients since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses before backward and gradients back before the optimizer's step.

    >>> GradScaler("cpu", init_scale=8.0).get_scale()
    8.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_state)

    def _started(self, function: str) -> Any:
        """The scale; an error where `scale` was never called."""
        if self._scale is None:
            raise AssertionError(
                f"Attempted {function} but _scale is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in whatever containers, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = t.full((), self._init_scale, dtype=dtypes.float32)
                self._growth_tracker = t.full((), self._init_growth_tracker, dtype=dtypes.int32)
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            parts = map(self.scale, outputs)
            if isinstance(outputs, (list, tuple)):
                return type(outputs)(parts)
            return parts
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale(self, optimizer: Any, inverse: Any, takes_float16: bool) -> dict[str, Any]:
        """Multiply all gradients; found_inf is 1 where one of them was not finite."""
        found = t.full((), 0.0, dtype=dtypes.float32)
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    grad = parameter.grad
                    if grad is None:
                        continue
                    if not takes_float16 and grad.dtype is dtypes.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    bad = t.logical_not(t.isfinite(grad)).any()
                    found = t.maximum(found, bad.to(dtypes.float32))
                    grad.mul_(inverse)
        return {self._device: found}

    def unscale_(self, optimizer: Any) -> None:
        """Scale the gradients of an optimizer back, before they are clipped, say."""
        if not self._enabled:
            return
        scale = self._started("unscale_")
        own = self._per_optimizer_states[id(optimizer)]
        if own["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if own["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal is rounded once, whatever the dtype it is used in.
        inverse = scale.double().reciprocal().float()
        own["found_inf_per_device"] = self._unscale(optimizer, inverse, False)
        own["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *arguments: Any, **named: Any) -> Any:
        """unscale_, where that was not done, and the optimizer's step if all gradients are
        finite. Raises RuntimeError for a closure or a second step."""
        if not self._enabled:
            return optimizer.step(*arguments, **named)
        if "closure" in named:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        own = self._per_optimizer_states[id(optimizer)]
        if own["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if own["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not own["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        made = None
        if not sum(found.item() for found in own["found_inf_per_device"].values()):
            made = optimizer.step(*arguments, **named)
        own["stage"] = OptState.STEPPED
        return made

    def update(self, new_scale: Any = None) -> None:
        """Down after a step with gradients that were not finite, up after `growth_interval` good
        ones in a row; or to `new_scale`."""
        if not self._enabled:
            return
        scale = self._started("update")
        if new_scale is None:
            self._follow(scale)
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        else:
            if (
                new_scale.device.type != self._device
                or new_scale.numel() != 1
                or new_scale.requires_grad
            ):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _follow(self, scale: Any) -> None:
        """Move the scale by what the steps since the last update found."""
        found = [
            each.item()
            for own in self._per_optimizer_states.values()
            for each in own["found_inf_per_device"].values()
        ]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        tracker = self._growth_tracker
        if sum(found):
            scale.mul_(self._backoff_factor)
            tracker.zero_()
            return
        good = tracker.item() + 1
        if good == self._growth_interval:
            larger = (scale * self._growth_factor).item()
            if math.isfinite(larger):  # else it stays: an infinite scale would never come down
                scale.fill_(larger)
            good = 0
        tracker.fill_(good)

    # Looking and setting ---------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale, 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale if self._scale is None else self._scale.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by after a bad step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Good steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many good steps in a row the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    # Saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Numbers to go on with; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with what state_dict gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        kept = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            kept["_init_scale"] = self.get_scale()
            kept["_init_growth_tracker"] = self._get_growth_tracker()
            kept["_scale"] = kept["_growth_tracker"] = None
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
