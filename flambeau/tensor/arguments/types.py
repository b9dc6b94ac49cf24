"""How torch names the types of arguments in its messages.

Keeps     one spelling for every message.
Touches   nothing.
Not here  names of dtypes (base/promotion.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base.dtypes import dtype
from flambeau.tensor.tensor import Tensor

_PACKAGES: Final = ("numpy", "torch")


def named_type(value: Any) -> str:
    """Tensor, int, list, numpy.ndarray, torch.dtype ..."""
    if isinstance(value, Tensor):
        return "Tensor"
    kind = type(value)
    if kind is dtype:
        return "torch.dtype"
    return f"{kind.__module__}.{kind.__name__}" if kind.__module__ in _PACKAGES else kind.__name__
