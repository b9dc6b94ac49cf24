"""Switches of the whole process that torch has as functions.

Keeps     a setting that would change nothing here is accepted and remembered, so that programs
          that ask what they set get it back.
Touches   base.config, engine (denormals), devices.cpu.features.
Not here  grad mode (gradients.modes), print options (printing.py)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.engine import run, stream

_PRECISIONS: Final = ("highest", "high", "medium")
_DEBUG_MODES: Final = {"default": 0, "warn": 1, "error": 2}


class _Remembered:
    """What was set last."""

    interop_threads: int | None = None
    precision: str = "highest"
    is_deterministic: bool = False
    warns_only: bool = False
    warns_always: bool = False


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if value <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return value


def set_num_threads(count: int) -> None:
    """How many threads kernels use; results do not depend on it, to the last bit."""
    count = _count(count, "set_num_threads")
    stream.flush_all("set_num_threads")
    CONFIG.threads = count


def get_num_threads() -> int:
    """How many threads kernels use."""
    from flambeau.devices.cpu import features

    return features.n_threads()


def set_num_interop_threads(count: int) -> None:
    """Accepted and remembered: operators run one after the other, each on all threads."""
    count = _count(count, "set_num_interop_threads")
    if _Remembered.interop_threads is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _Remembered.interop_threads = count


def get_num_interop_threads() -> int:
    """What set_num_interop_threads set, or the number of threads."""
    return _Remembered.interop_threads or get_num_threads()


def set_flush_denormal(mode: bool) -> bool:
    """Whether results too small for normal numbers become 0. What was recorded keeps its mode."""
    if not isinstance(mode, bool):
        raise TypeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    stream.flush_all("set_flush_denormal")
    run.FLUSH_DENORMALS[0] = mode
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted and remembered: products are always computed in full float32."""
    if precision not in _PRECISIONS:
        # torch warns, too, and changes nothing.
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32"
            "MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _Remembered.precision = precision


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision set."""
    return _Remembered.precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted and remembered: every operator is deterministic always."""
    _Remembered.is_deterministic = bool(mode)
    _Remembered.warns_only = bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms set."""
    return _Remembered.is_deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The warn_only that use_deterministic_algorithms set."""
    return _Remembered.is_deterministic and _Remembered.warns_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same switch by number or name: 0 "default", 1 "warn", 2 "error"."""
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES[debug_mode]
    elif debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """What set_deterministic_debug_mode set."""
    if not _Remembered.is_deterministic:
        return 0
    return 1 if _Remembered.warns_only else 2


def set_warn_always(mode: bool) -> None:
    """Accepted and remembered: Python's warnings filters decide what is shown."""
    _Remembered.warns_always = bool(mode)


def is_warn_always_enabled() -> bool:
    """What set_warn_always set."""
    return _Remembered.warns_always


def compile(model: Any = None, **options: Any) -> Any:
    """The model itself: operators are fused and compiled without being asked."""
    if model is None:

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            return function

        return decorate
    return model
