"""torch.utils.backcompat: warnings about what changed with torch 0.2, kept as settings.

Keeps     they can be set and read; what they warn of is an error by now.
Touches   nothing.
Not here  any warning."""

from __future__ import annotations

from flambeau.base.missing import module_getattr

__all__ = ["broadcast_warning", "keepdim_warning"]


class Warning:
    """A warning that can be turned on."""

    enabled = False


broadcast_warning, keepdim_warning = Warning(), Warning()

__getattr__ = module_getattr(__name__)
