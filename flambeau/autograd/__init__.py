"""torch.autograd: gradients by name.

Keeps     torch's names and signatures; what they do is in flambeau.gradients.
Touches   gradients.
Not here  the graph and the backward pass (gradients/), derivatives (ops/)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd import (
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    variable,
)
from flambeau.autograd import (
    gradcheck as _gradcheck,
)
from flambeau.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from flambeau.autograd.function import Function, NestedIOFunction
from flambeau.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from flambeau.autograd.variable import Variable
from flambeau.base.missing import module_getattr
from flambeau.gradients import entry as _entry
from flambeau.gradients.modes import is_grad_enabled, is_inference_mode_enabled

gradcheck = _gradcheck.gradcheck
gradgradcheck = _gradcheck.gradgradcheck

__all__ = [
    "Function", "NestedIOFunction", "Variable", "anomaly_mode", "backward", "detect_anomaly",
    "enable_grad", "forward_ad", "function", "functional", "grad", "grad_mode", "gradcheck",
    "gradgradcheck", "graph", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
    "no_grad", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip

_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    """grad and backward, whose calls may be taken over; the profiler is imported when used."""
    if name in ("backward", "grad"):
        from flambeau.tensor.overriding.serving import served

        found = globals()[name] = served(getattr(_entry, name), name, __name__)
        return found
    if name in ("profiler", "profiler_util"):
        from importlib import import_module

        return import_module(f"flambeau.autograd.{name}")
    return _missing(name)
