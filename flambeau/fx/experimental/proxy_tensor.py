"""torch.fx.experimental.proxy_tensor: whether operators are being traced as they run.

Keeps     they are not.
Touches   nothing.
Not here  tracing (fx/_symbolic_trace.py)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The mode that traces operators: there is none.

    >>> get_proxy_mode() is None
    True
    """


__getattr__ = module_getattr(__name__)
