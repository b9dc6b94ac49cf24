"""torch._C: the few names that programs take from torch's C++ itself.

Keeps     settings of the script compiler change nothing, as there is none.
Touches   linalg, gradients.autocast.
Not here  anything else of torch's C++."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.gradients.autocast import is_autocast_enabled, set_autocast_enabled
from flambeau.linalg import LinAlgError as _LinAlgError
from flambeau.overrides import has_torch_function as _has_torch_function
from flambeau.overrides import has_torch_function_unary as _has_torch_function_unary
from flambeau.overrides import has_torch_function_variadic as _has_torch_function_variadic
from flambeau.tensor import Tensor as TensorBase
from flambeau.tensor.arguments import taken_over as _taken_over
from flambeau.tensor.arguments.taken_over import AllUndisturbed as DisableTorchFunction
from flambeau.tensor.arguments.taken_over import Undisturbed as DisableTorchFunctionSubclass
from flambeau.tensor.arguments.taken_over import disabled as _disabled_torch_function_impl
from flambeau.tensor.tensor import TensorMeta as _TensorMeta

_TensorBase = TensorBase

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "TensorBase", "_LinAlgError",
    "_TensorBase", "_TensorMeta", "_disabled_torch_function_impl", "_has_torch_function",
    "_has_torch_function_unary", "_has_torch_function_variadic",
]  # fmt: skip


def _is_torch_function_enabled() -> bool:
    """Whether arguments take calls over in this thread."""
    return _taken_over.HERE.arguments


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode takes calls over in this thread."""
    return _taken_over.present_mode() is not None


def _len_torch_function_stack() -> int:
    """How many modes this thread has entered."""
    return len(_taken_over.HERE.stack)


def _get_function_stack_at(level: int) -> Any:
    """A mode that this thread has entered, the first one at 0."""
    return _taken_over.HERE.stack[level]


def _log_api_usage_once(event: str) -> None:
    """Note that something was used: nothing is noted."""


def _get_tracing_state() -> None:
    """The trace being made: there is none."""


def _are_functorch_transforms_active() -> bool:
    """Whether tensors are a transform's own: none are, vmap's and grad's are ordinary ones."""
    return False


def _jit_set_profiling_mode(profiling_flag: bool) -> bool:
    """Profile scripts before they are compiled: they are not compiled; what was set before."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode


class DispatchKey(Enum):
    """Which of an operator's kernels is meant: by device, for gradients, under autocast."""

    Undefined = auto()
    CPU = auto()
    CUDA = auto()
    XPU = auto()
    MPS = auto()
    Meta = auto()
    Autograd = auto()
    AutogradCPU = auto()
    AutogradCUDA = auto()
    AutocastCPU = auto()
    AutocastCUDA = auto()
    AutocastXPU = auto()
    AutocastMPS = auto()
    CompositeExplicitAutograd = auto()
    CompositeImplicitAutograd = auto()


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether the key is in the set."""
        return key in self._keys


class _ExcludeDispatchKeyGuard:
    """Context in which kernels of some keys are passed over: without autocast, if it is among
    them."""

    def __init__(self, excluded: DispatchKeySet) -> None:
        self._pauses = excluded.has(DispatchKey.AutocastCPU)

    def __enter__(self) -> None:
        self._was_on = is_autocast_enabled("cpu")
        if self._pauses:
            set_autocast_enabled("cpu", False)

    def __exit__(self, *_: object) -> None:
        set_autocast_enabled("cpu", self._was_on)


__getattr__ = module_getattr(__name__)
