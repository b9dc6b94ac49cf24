"""torch.fx: what programs say to a tracer, here to none.

Keeps     a program that marks its functions for tracing runs; one that traces is told that
          programs are run, not traced.
Touches   nothing.
Not here  a tracer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.missing import module_getattr

__all__ = ["wrap"]


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Marks a function of the module that a tracer is not to look into: returned as it is.

    >>> wrap(len) is len
    True
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    return fn_or_name


__getattr__ = module_getattr(__name__)
