"""torch.amp: regions of lower precision, and loss scaling.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_WHERE = {
    **dict.fromkeys(
        ("autocast", "custom_bwd", "custom_fwd", "is_autocast_available"), "autocast_mode"
    ),
    "GradScaler": "grad_scaler",
}
_MODULES = ("autocast_mode", "grad_scaler")

__getattr__, __dir__ = lazy_names(__name__, _WHERE, _MODULES)
