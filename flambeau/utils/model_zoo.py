"""torch.utils.model_zoo: the older name of torch.hub.load_state_dict_from_url.

Keeps     nothing of its own.
Touches   hub.
Not here  the downloading (hub)."""

from __future__ import annotations

from typing import Any

from flambeau import hub
from flambeau.base.missing import module_getattr
from flambeau.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    return hub.tqdm if name == "tqdm" else _missing(name)


_missing = module_getattr(__name__)
