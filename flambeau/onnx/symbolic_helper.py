"""torch.onnx.symbolic_helper: how libraries mark functions that would write ONNX nodes.

Keeps     a marked function comes back as itself: nothing is exported.
Touches   nothing.
Not here  exporting, which raises (__init__.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.missing import module_getattr

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """A decorator that gives the function back.

    >>> parse_args("v", "i")(len) is len
    True
    """
    return lambda fn: fn


__getattr__ = module_getattr(__name__)
