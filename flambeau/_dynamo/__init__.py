"""torch._dynamo: settings of a compiler that has to be asked; here fusion is always on.

Keeps     settings can be made and read; what would be compiled is the function itself.
Touches   nothing.
Not here  fusion (engine, codegen)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flambeau.base.missing import module_getattr

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
    "forbid_in_graph", "graph_break", "is_compiling", "mark_dynamic", "mark_static",
    "maybe_mark_dynamic", "nonstrict_trace", "reset",
]  # fmt: skip

config = ModuleType("torch._dynamo.config")
vars(config).update(
    accumulated_cache_size_limit=256, assume_static_by_default=True, automatic_dynamic_shapes=True,
    cache_size_limit=8, capture_dynamic_output_shape_ops=False, capture_scalar_outputs=False,
    dynamic_shapes=True, recompile_limit=8, suppress_errors=False, verbose=False,
)  # fmt: skip


def reset() -> None:
    """Forget what was compiled: nothing is kept here."""


def graph_break(msg: str = "") -> None:
    """End the graph being traced: there is none."""


def is_compiling() -> bool:
    """Whether a function is being traced: no."""
    return False


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


assume_constant_result = forbid_in_graph = nonstrict_trace = allow_in_graph


def mark_dynamic(t: Any, index: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Let a size change from call to call: sizes may always."""


def mark_static(t: Any, index: Any = None) -> None:
    """Compile anew for each size: plans of other sizes are shared anyway."""


maybe_mark_dynamic = mark_dynamic


def disable(fn: Any = None, recursive: bool = True, **named: Any) -> Any:
    """The function itself, or a decorator that gives it back."""
    return allow_in_graph if fn is None else fn


_MODULES = ("_trace_wrapped_higher_order_op", "eval_frame", "utils")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "OptimizedModule":
        return import_module(f"{__name__}.eval_frame").OptimizedModule
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    return _missing(name)


_missing = module_getattr(__name__)
