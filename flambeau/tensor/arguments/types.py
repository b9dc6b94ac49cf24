"""How torch names the types of arguments in its messages.

Keeps     one spelling for every message.
Touches   nothing.
Not here  names of dtypes (base/promotion.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.dtypes import dtype
from flambeau.tensor.tensor import Tensor


def named_type(value: Any) -> str:
    """Tensor, int, list, numpy.ndarray, torch.dtype ..."""
    if isinstance(value, Tensor):
        return "Tensor"
    kind = type(value)
    if kind is dtype:
        return "torch.dtype"
    if kind.__module__ == "numpy":
        return f"numpy.{kind.__name__}"
    return kind.__name__
