"""torch._C: the few names that programs take from torch's C++ itself.

Keeps     settings of the script compiler change nothing, as there is none.
Touches   linalg.
Not here  anything else of torch's C++."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.linalg import LinAlgError as _LinAlgError

__all__ = ["_LinAlgError"]


def _log_api_usage_once(event: str) -> None:
    """Note that something was used: nothing is noted."""


def _get_tracing_state() -> None:
    """The trace being made: there is none."""


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A `__torch_function__` that lets the function be what it is."""
    return func(*args, **(kwargs or {}))


def _jit_set_profiling_mode(profiling_flag: bool) -> bool:
    """Profile scripts before they are compiled: they are not compiled; what was set before."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode

__getattr__ = module_getattr(__name__)
