"""autocast: inside, products and convolutions compute in a lower precision, losses in float32.

Keeps     the state is each thread's own. Programs that never enable a region pay nothing: functions
          and methods are surrounded when the first is.
Touches   tensor.functions, Tensor's methods.
Not here  loss scaling (grad_scaler.py).
Source    torch's lists of operators for CPU autocast."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

# Recorded operators that compute in the region's dtype, and those that compute in float32.
LOWER: Final = (
    "matmul", "mm", "bmm", "mv", "addmm", "addmv", "addbmm", "baddbmm", "linear", "convolution",
    "attention",
)  # fmt: skip
FULL: Final = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "nll_loss", "cross_entropy", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "prod",
)  # fmt: skip
WIDEST: Final = ("cat", "stack")
_METHODS: Final = {
    "__matmul__": LOWER, "__rmatmul__": LOWER, **dict.fromkeys(LOWER, LOWER),
    "prod": FULL,
}  # fmt: skip
_DEVICES: Final = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "maia")
_ALLOWED: Final = (dtypes.bfloat16, dtypes.float16)


class _State(threading.local):
    """What is enabled in this thread."""

    enabled: bool = False
    dtype: Any = dtypes.bfloat16
    cache: bool = True


_STATE: Final = _State()
_surrounded: list[bool] = []


def is_autocast_available(device_type: str) -> bool:
    """Whether regions for a type of device can be written down."""
    return device_type in _DEVICES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether a region is enabled here; without an argument torch asks about CUDA."""
    return device_type == "cpu" and _STATE.enabled


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype of regions on a type of device."""
    return _STATE.dtype if device_type == "cpu" else dtypes.float16


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights would be kept for the region: remembered only."""
    return _STATE.cache


def _cast(value: Any, to: Callable[[Any], Any]) -> Any:
    if isinstance(value, Tensor):
        element = to(value._layout.dtype)
        return value if element is value._layout.dtype else value.to(element)
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(each, to) for each in value])
    return value


def _lowered(element: Any) -> Any:
    """Floating dtypes but float64 become the region's."""
    eligible = element.is_floating_point and element is not dtypes.float64
    return _STATE.dtype if eligible else element


def _raised(element: Any) -> Any:
    return dtypes.float32 if element in _ALLOWED else element


def _around(function: Any, to: Callable[[Any], Any]) -> Any:
    @functools.wraps(function)
    def surrounded(*arguments: Any, **named: Any) -> Any:
        if not _STATE.enabled or named.get("out") is not None:
            return function(*arguments, **named)
        arguments = tuple([_cast(each, to) for each in arguments])
        named = {name: _cast(value, to) for name, value in named.items()}
        return function(*arguments, **named)

    return surrounded


def _around_joined(function: Any) -> Any:
    @functools.wraps(function)
    def surrounded(tensors: Any, *arguments: Any, **named: Any) -> Any:
        if _STATE.enabled and any(each.dtype is dtypes.float32 for each in tensors):
            tensors = [_cast(each, _raised) for each in tensors]
        return function(tensors, *arguments, **named)

    return surrounded


def _surround() -> None:
    """Put the casts around functions and methods, once for the process."""
    if _surrounded:
        return
    _surrounded.append(True)
    t.surround(
        {
            **{name: functools.partial(_around, to=_lowered) for name in LOWER},
            **{name: functools.partial(_around, to=_raised) for name in FULL},
            **dict.fromkeys(WIDEST, _around_joined),
        }
    )
    for name, names in _METHODS.items():
        method = getattr(Tensor, name, None)
        if method is not None:
            to = _lowered if names is LOWER else _raised
            setattr(Tensor, name, _around(method, to))


class autocast:  # noqa: N801 - torch's name
    """A region, as `with autocast("cpu", dtype):` or as a decorator.

    dtype     torch.bfloat16 (None) or torch.float16
    enabled   whether the region does anything; a region for CUDA does nothing here, and warns

    >>> import flambeau as torch
    >>> with torch.autocast("cpu"):
    ...     print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
    torch.bfloat16
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = _STATE.cache if cache_enabled is None else cache_enabled
        if enabled and device_type != "cpu":
            warnings.warn(
                f"{device_type.upper()} is not available or torch_xla is imported. Disabling "
                "autocast.",
                stacklevel=2,
            )
            enabled = False
        elif enabled and self.fast_dtype not in _ALLOWED:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[bool, Any, bool]] = []

    def __enter__(self) -> Any:
        self._before.append((_STATE.enabled, _STATE.dtype, _STATE.cache))
        if self.device == "cpu":
            if self._enabled:
                _surround()
            _STATE.enabled, _STATE.dtype = self._enabled, self.fast_dtype
        _STATE.cache = self._cache_enabled
        return self

    def __exit__(self, *exception: object) -> None:
        _STATE.enabled, _STATE.dtype, _STATE.cache = self._before.pop()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def decorated(*arguments: Any, **named: Any) -> Any:
            with self:
                return function(*arguments, **named)

        return decorated


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorates the forward of an autograd.Function: inputs in one dtype, regions switched off."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*arguments: Any, **named: Any) -> Any:
        context = arguments[0]
        context._dtype = get_autocast_dtype(device_type)
        within = is_autocast_enabled(device_type)
        if cast_inputs is None or not within:
            context._fwd_used_autocast = within
            return fwd(*arguments, **named)
        context._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            made = tuple([_cast(each, _into(cast_inputs)) for each in arguments])
            return fwd(*made, **{k: _cast(v, _into(cast_inputs)) for k, v in named.items()})

    return decorated


def _into(wanted: Any) -> Callable[[Any], Any]:
    def to(element: Any) -> Any:
        eligible = element.is_floating_point and element is not dtypes.float64
        return wanted if eligible else element

    return to


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the backward of an autograd.Function: in the region that its forward was in."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*arguments: Any, **named: Any) -> Any:
        context = arguments[0]
        within = context._fwd_used_autocast
        with autocast(device_type, enabled=within, dtype=context._dtype):
            return bwd(*arguments, **named)

    return decorated
