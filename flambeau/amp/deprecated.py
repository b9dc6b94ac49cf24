"""The names that autocast and its kin had under torch.cuda.amp and torch.cpu.amp.

Keeps     each says, as torch's does, what to use instead.
Touches   autocast_mode, grad_scaler.
Not here  the modules that serve the names (cuda/amp.py, cpu/amp.py)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.amp import autocast_mode, grad_scaler
from flambeau.base import dtypes
from flambeau.base.dtypes import dtype as dtype_type


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class cuda_autocast(autocast_mode.autocast):  # noqa: N801 - a class that torch calls autocast
    """torch.cuda.amp.autocast."""

    def __init__(
        self, enabled: bool = True, dtype: dtype_type = dtypes.float16, cache_enabled: bool = True
    ) -> None:
        _warn("cuda.amp.autocast", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class cpu_autocast(autocast_mode.autocast):  # noqa: N801 - a class that torch calls autocast
    """torch.cpu.amp.autocast."""

    def __init__(
        self, enabled: bool = True, dtype: dtype_type = dtypes.bfloat16, cache_enabled: bool = True
    ) -> None:
        _warn("cpu.amp.autocast", "autocast('cpu', args...)")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class CudaGradScaler(grad_scaler.GradScaler):
    """torch.cuda.amp.GradScaler."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _warn("cuda.amp.GradScaler", "GradScaler('cuda', args...)")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


class CpuGradScaler(grad_scaler.GradScaler):
    """torch.cpu.amp.GradScaler."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _warn("cpu.amp.GradScaler", "GradScaler('cpu', args...)")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def cuda_custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """torch.cuda.amp.custom_fwd."""
    _warn("cuda.amp.custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return functools.partial(autocast_mode.custom_fwd, device_type="cuda")(
        fwd, cast_inputs=cast_inputs
    )


def cuda_custom_bwd(bwd: Callable[..., Any]) -> Any:
    """torch.cuda.amp.custom_bwd."""
    _warn("cuda.amp.custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
