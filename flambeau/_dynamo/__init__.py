"""torch._dynamo: settings of a compiler that has to be asked; here fusion is always on.

Keeps     settings can be made and read; what would be compiled is the function itself.
Touches   nothing.
Not here  fusion (engine, codegen)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flambeau.base.missing import module_getattr

__all__ = ["allow_in_graph", "config", "disable", "graph_break", "is_compiling", "reset"]

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


def disable(fn: Any = None, recursive: bool = True, **named: Any) -> Any:
    """The function itself, or a decorator that gives it back."""
    return allow_in_graph if fn is None else fn


_MODULES = ("eval_frame", "utils")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "OptimizedModule":
        return import_module(f"{__name__}.eval_frame").OptimizedModule
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    return _missing(name)


_missing = module_getattr(__name__)
