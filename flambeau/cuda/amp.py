"""torch.cuda.amp: the older names of torch.amp, for CUDA.

Keeps     torch's warnings that these names are old.
Touches   amp.
Not here  what they do (amp)."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.amp import autocast_mode, grad_scaler
from flambeau.base import dtypes
from flambeau.base.missing import module_getattr

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _old(name: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}` is deprecated. Please use `torch.amp.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(autocast_mode.autocast):  # noqa: N801 - torch's name
    """autocast("cuda", ...)."""

    def __init__(
        self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True
    ) -> None:
        _old("autocast(args...)", "autocast('cuda', args...)")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """GradScaler("cuda", ...)."""

    def __init__(
        self, init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        _old("GradScaler(args...)", "GradScaler('cuda', args...)")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """amp.custom_fwd for CUDA."""
    _old("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """amp.custom_bwd for CUDA."""
    _old("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


__getattr__ = module_getattr(__name__)
