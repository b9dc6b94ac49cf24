"""torch._dynamo.utils: what libraries ask of a compiler that has to be asked.

Keeps     nothing is compiled that way, and that is the answer.
Touches   nothing.
Not here  fusion (engine, codegen)."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """Whether torch.compile would write kernels for a type of device: no, they are written unasked.

    >>> is_compile_supported("cpu")
    False
    """
    return False


__getattr__ = module_getattr(__name__)
