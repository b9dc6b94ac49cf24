"""torch.func: gradients, Jacobians and batches of functions, as functions of functions.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_WHERE = {
    **dict.fromkeys(("grad", "grad_and_value", "jvp", "linearize", "vjp"), "derivatives"),
    **dict.fromkeys(("hessian", "jacfwd", "jacrev"), "jacobians"),
    **dict.fromkeys(("stack_module_state", "vmap"), "batches"),
    **dict.fromkeys(("functional_call", "functionalize"), "calls"),
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise missing_name(__name__, name, __dir__())
    found = getattr(import_module(f"flambeau.func.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
