"""torch._custom_ops: older names of torch.library.

Keeps     the same functions.
Touches   library.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.library import custom_op, impl, impl_abstract

__all__ = ["custom_op", "impl", "impl_abstract"]

__getattr__ = module_getattr(__name__)
