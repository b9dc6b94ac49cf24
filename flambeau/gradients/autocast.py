"""Autocast: which operators compute in a lower precision, which in float32, and whether they do.

Keeps     what torch's autocast does on a CPU: tensors of a policy's operators are converted before
          the call, float64 and integers never; a parameter is converted once in a region. While no
          thread is in a region, nothing but one test in Python's general path stands in the way.
Touches   RUNTIME for the Tensor class.
Not here  the contexts and scalers that users see (amp/)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout
from flambeau.gradients.graph import AccumulateGrad
from flambeau.gradients.runtime import RUNTIME

LOWER: Final = "lower"  # into the region's dtype
FLOAT32: Final = "float32"  # out of lower precision
WIDEST: Final = "widest"  # all into the widest there is

# Policies of operators; functions written over operators have theirs as a decorator.
POLICIES: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("addbmm", "addmm", "attention", "baddbmm", "bmm", "convolution", "linear", "lstm_steps",
         "matmul", "mm", "prelu_kernel"),
        LOWER,
    ),
    **dict.fromkeys(
        ("adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "binary_cross_entropy",
         "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div", "l1_loss",
         "max_pool3d_with_indices", "mse_loss", "nll_loss", "prod", "smooth_l1_loss"),
        FLOAT32,
    ),
    **dict.fromkeys(("cat", "index_copy", "stack"), WIDEST),
    "einsum": LOWER,
}  # fmt: skip
DEVICE_DTYPES: Final = {
    "cpu": dtypes.bfloat16, "cuda": dtypes.float16, "hpu": dtypes.bfloat16, "ipu": dtypes.float16,
    "maia": dtypes.bfloat16, "mps": dtypes.float16, "mtia": dtypes.bfloat16,
    "xla": dtypes.bfloat16, "xpu": dtypes.float16,
}  # fmt: skip


class _Local(threading.local):
    """A thread's state: `enabled` tells whether CPU operators are cast now."""

    def __init__(self) -> None:
        self.enabled = False
        self.others: dict[str, bool] = {}
        self.dtypes = dict(DEVICE_DTYPES)
        self.nesting = 0
        self.caches = True
        self.kept: dict[int, tuple[Any, Any]] = {}


_LOCAL: Final = _Local()
# Threads in a region; whoever keeps faster ways hears of the first that enters, the last to leave.
_regions: Final = [0]
OBSERVERS: Final[list[Callable[[bool], None]]] = []
_LOCK: Final = threading.Lock()


def is_anywhere() -> bool:
    """Whether any thread is in a region."""
    return _regions[0] > 0


def _known(device_type: str) -> str:
    if device_type not in DEVICE_DTYPES:
        raise RuntimeError(
            "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, "
            "maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of "
            f"device string: {device_type}"
        )
    return device_type


# ---------------------------------------------------------------- torch's functions of the state


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows this type of device."""
    return _known(device_type) in DEVICE_DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on this type of device are cast on this thread."""
    if _known(device_type) == "cpu":
        return _LOCAL.enabled
    return _LOCAL.others.get(device_type, False)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast for a type of device; with one argument, for "cuda"."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if _known(device_type) != "cpu":
        _LOCAL.others[device_type] = bool(enabled)
        return
    before, _LOCAL.enabled = _LOCAL.enabled, bool(enabled)
    if before is _LOCAL.enabled:
        return
    with _LOCK:
        _regions[0] += 1 if enabled else -1
        if _regions[0] == (1 if enabled else 0):
            for each in OBSERVERS:
                each(bool(enabled))


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that operators on this type of device are cast into."""
    return _LOCAL.dtypes[_known(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Choose the dtype that operators on this type of device are cast into."""
    _LOCAL.dtypes[_known(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether a converted parameter is kept until the outermost region ends."""
    return _LOCAL.caches


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep converted parameters, or do not."""
    _LOCAL.caches = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the converted parameters."""
    _LOCAL.kept.clear()


def autocast_increment_nesting() -> int:
    """Count a region entered; how many there are."""
    _LOCAL.nesting += 1
    return _LOCAL.nesting


def autocast_decrement_nesting() -> int:
    """Count a region left; how many there are."""
    _LOCAL.nesting -= 1
    return _LOCAL.nesting


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")."""
    return _LOCAL.enabled


def get_autocast_cpu_dtype() -> dtype:
    """get_autocast_dtype("cpu")."""
    return _LOCAL.dtypes["cpu"]


def get_autocast_gpu_dtype() -> dtype:
    """get_autocast_dtype("cuda")."""
    return _LOCAL.dtypes["cuda"]


# ---------------------------------------------------------------- casting


def casting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator's function, which casts its tensors in a region; the function itself where no
    policy names it."""
    policy = POLICIES.get(name)
    if policy is None:
        return function

    def cast(*arguments: Any, **named: Any) -> Any:
        if _LOCAL.enabled and named.get("out") is None:
            arguments, named = _cast_call(name, policy, arguments, named)
        return function(*arguments, **named)

    return cast


_Function = TypeVar("_Function", bound=Callable[..., Any])


def in_float32(function: _Function) -> _Function:
    """A function over operators that takes no lower precision in a region."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        if not _LOCAL.enabled:
            return function(*arguments, **named)
        arguments, named = _cast_call("", FLOAT32, arguments, named)
        return outside(function, arguments, named)

    return wrapper  # type: ignore[return-value]


def lowered(*tensors: Any) -> tuple[Any, ...]:
    """Factors of a product that is none of the operators, as a region wants them."""
    return _cast_call("", LOWER, tensors, {})[0] if _LOCAL.enabled else tensors


def outside(function: Callable[..., Any], arguments: Any = (), named: Any = None) -> Any:
    """Call a function as if no region were there."""
    before, _LOCAL.enabled = _LOCAL.enabled, False
    try:
        return function(*arguments, **(named or {}))
    finally:
        _LOCAL.enabled = before


def _cast_call(
    name: str, policy: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call as its policy wants them."""
    wanted = _LOCAL.dtypes["cpu"]
    if policy is WIDEST:
        wanted = _widest((*arguments, *named.values()), wanted)
    elif policy is FLOAT32:
        wanted = dtypes.float32
    elif name == "einsum" and not _multiplies(arguments):
        return arguments, named
    keeps = policy is LOWER and _LOCAL.caches
    cast = functools.partial(_cast, wanted=wanted, keeps=keeps)
    return tuple([cast(each) for each in arguments]), {
        key: cast(value) for key, value in named.items()
    }


def _is_eligible(layout: Layout) -> bool:
    element = layout.dtype
    floating = element.is_floating_point and element is not dtypes.float64
    return floating and layout.device.type == "cpu"


def _cast(value: Any, wanted: dtype, keeps: bool) -> Any:
    if isinstance(value, RUNTIME.tensor):
        if value._layout.dtype is wanted or not _is_eligible(value._layout):
            return value
        is_parameter = (
            value._layout.dtype is dtypes.float32
            and value._autograd.__class__ is AccumulateGrad
            and value._base is None
        )
        if not keeps or not is_parameter:
            return value.to(wanted)
        found = _LOCAL.kept.get(id(value))
        if found is None or found[1]._layout.dtype is not wanted:
            found = _LOCAL.kept[id(value)] = (value, value.to(wanted))
        return found[1]
    if value.__class__ is tuple or value.__class__ is list:
        return type(value)([_cast(each, wanted, keeps) for each in value])
    return value


def _widest(values: Any, wanted: dtype) -> dtype:
    """float32 where a tensor of it is among the values, else the region's dtype."""
    for value in values:
        is_full = (
            _widest(value, wanted) is dtypes.float32
            if isinstance(value, (tuple, list))
            else isinstance(value, RUNTIME.tensor) and value._layout.dtype is dtypes.float32
        )
        if is_full:
            wanted = dtypes.float32
    return wanted


def _multiplies(arguments: tuple[Any, ...]) -> bool:
    """Whether an einsum sums over a label that two operands share: a matrix product."""
    equation: str = arguments[1]
    inputs, _, output = equation.replace(" ", "").partition("->")
    parts = inputs.split(",")
    shared = {label for label in inputs if sum(label in part for part in parts) > 1}
    return bool(shared - set(output) - {",", "."})
