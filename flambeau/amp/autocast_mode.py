"""Regions of lower precision: autocast as a context and a decorator, and helpers of Functions.

Keeps     a region restores what was before it; the kept parameters go when the outermost ends.
Touches   gradients.autocast.
Not here  which operators are cast, and how (gradients/autocast.py)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype as dtype_type
from flambeau.gradients import autocast as state
from flambeau.gradients.autocast import is_autocast_available
from flambeau.tensor.tensor import Tensor

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

SUPPORTED: Final = (dtypes.bfloat16, dtypes.float16)


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


class autocast:  # noqa: N801 - torch's name
    """Operators inside compute in `dtype` where that is safe and in float32 where it is needed.

    dtype          bfloat16 unless given, for the CPU
    enabled        False: a region without casts, inside another
    cache_enabled  whether a parameter is converted once; as around unless given
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype_type | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device_type(device_type)
        self.device = device_type
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        if enabled and device_type == "cuda":
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2
            )
            enabled = False
        elif enabled and self.fast_dtype not in SUPPORTED:
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of "
                f"{', '.join(map(str, SUPPORTED))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[bool, dtype_type, bool]] = []

    def __enter__(self) -> Any:
        self._before.append(
            (
                state.is_autocast_enabled(self.device),
                state.get_autocast_dtype(self.device),
                state.is_autocast_cache_enabled(),
            )
        )
        state.set_autocast_enabled(self.device, self._enabled)
        state.set_autocast_dtype(self.device, self.fast_dtype)
        state.autocast_increment_nesting()
        state.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *_: object) -> None:
        if state.autocast_decrement_nesting() == 0:
            state.clear_autocast_cache()
        enabled, before, caches = self._before.pop()
        state.set_autocast_enabled(self.device, enabled)
        state.set_autocast_dtype(self.device, before)
        state.set_autocast_cache_enabled(caches)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a region around every call."""
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you "
                "mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n        output = model(input)"
            )
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the region around every call."""

    @functools.wraps(func)
    def decorated(*arguments: Any, **named: Any) -> Any:
        with autocast_instance:
            return func(*arguments, **named)

    return decorated


def _cast(value: Any, device_type: str, dtype: dtype_type) -> Any:
    """Floating tensors of a type of device, in whatever containers, as another dtype."""
    if isinstance(value, Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not dtypes.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)) or hasattr(value, "__array_interface__"):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(key, device_type, dtype): _cast(each, device_type, dtype)
            for key, each in value.items()
        }
    if isinstance(value, Iterable):
        parts = (_cast(each, device_type, dtype) for each in value)
        kind: Any = type(value)
        return kind(parts) if isinstance(value, (list, tuple)) else parts
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: dtype_type | None = None,
) -> Any:
    """Decorates the forward of an autograd Function: it runs in the region it is called in, or,
    with `cast_inputs`, outside any on inputs of that dtype."""
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*arguments: Any, **named: Any) -> Any:
        context = arguments[0]
        context._dtype = state.get_autocast_dtype(device_type)
        in_region = state.is_autocast_enabled(device_type)
        context._fwd_used_autocast = in_region and cast_inputs is None
        if cast_inputs is None or not in_region:
            return fwd(*arguments, **named)
        with autocast(device_type, enabled=False):
            return fwd(
                *_cast(arguments, device_type, cast_inputs),
                **_cast(named, device_type, cast_inputs),
            )

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the backward of an autograd Function: it runs as its forward ran."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*arguments: Any, **named: Any) -> Any:
        context = arguments[0]
        with autocast(device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*arguments, **named)

    return decorated
