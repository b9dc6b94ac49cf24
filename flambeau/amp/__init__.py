"""torch.amp: regions of lower precision, and loss scaling.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_WHERE = {
    **dict.fromkeys(
        ("autocast", "custom_bwd", "custom_fwd", "is_autocast_available"), "autocast_mode"
    ),
    "GradScaler": "grad_scaler",
}
_MODULES = ("autocast_mode", "grad_scaler")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"flambeau.amp.{name}")
    if name not in _WHERE:
        raise missing_name(__name__, name, __dir__())
    found = getattr(import_module(f"flambeau.amp.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_WHERE, *_MODULES})
