"""torch.backends.opt_einsum: the order of einsum's products, which is einsum's own here.

Keeps     settings can be made and read.
Touches   nothing.
Not here  einsum (ops.contraction)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr

enabled: bool = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package opt_einsum is used: no."""
    return False


__getattr__ = module_getattr(__name__)
