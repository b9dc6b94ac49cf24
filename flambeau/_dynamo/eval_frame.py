"""torch._dynamo.eval_frame: the class that libraries look for to find a compiled module's own.

Keeps     no module is of it: torch.compile returns the module.
Touches   nn.Module.
Not here  fusion (engine, codegen)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.nn.modules.module import Module

__all__ = ["OptimizedModule", "is_dynamo_supported"]


class OptimizedModule(Module):
    """What torch.compile makes of a module in torch; here it is the module."""


def is_dynamo_supported() -> bool:
    """Whether programs can be traced: no."""
    return False


__getattr__ = module_getattr(__name__)
