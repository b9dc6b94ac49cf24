"""torch's functions that layers call, by the names torch has for them.

Keeps     only rooms below are imported, so that layers need not import the package itself.
Touches   tensor, random.
Not here  any logic."""

from __future__ import annotations

from typing import Any

from flambeau.base.dtypes import float64, int64
from flambeau.random.tensors import randperm
from flambeau.tensor import functions
from flambeau.tensor.creation import empty, tensor
from flambeau.tensor.public.fills import empty_like, full, ones, zeros, zeros_like
from flambeau.tensor.public.ranges import arange

__all__ = [
    "arange", "empty", "empty_like", "float64", "full", "int64", "ones", "randperm", "tensor",
    "zeros", "zeros_like",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(functions, name)
