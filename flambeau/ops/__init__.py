"""What every operator means: one class each, by family.

Keeps     importing this imports no family: REGISTRY finds an operator's file by its name.
Touches   define, names, lazily.
Not here  any operator."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "REGISTRY":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flambeau.ops.define import REGISTRY

    return REGISTRY


__all__ = ["REGISTRY"]
