"""torch.fx.experimental: what libraries ask of torch's other tracers.

Keeps     names are found when used.
Touches   the file beside it.
Not here  tracing (fx/_symbolic_trace.py)."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_MODULES = ("proxy_tensor",)

__getattr__, __dir__ = lazy_names(__name__, {}, _MODULES)
