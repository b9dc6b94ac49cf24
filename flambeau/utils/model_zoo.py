"""torch.utils.model_zoo: the older name of torch.hub.load_state_dict_from_url.

Keeps     nothing of its own.
Touches   hub.
Not here  the downloading (hub)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]

__getattr__ = module_getattr(__name__)
