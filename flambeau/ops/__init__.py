"""What every operator means: one class each, by family.

Keeps     importing this imports no family: REGISTRY finds an operator's file by its name.
Touches   define, names, lazily.
Not here  any operator; namespaces of operators, as torch.ops has them (_ops.py, which the root
          package names here, since the names are the same)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _no_namespace(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# What finds torch.ops.NAME; the root package puts it here.
namespace: Callable[[str], Any] = _no_namespace


def __getattr__(name: str) -> Any:
    if name != "REGISTRY":
        return namespace(name)
    from flambeau.ops.define import REGISTRY

    return REGISTRY


__all__ = ["REGISTRY"]
