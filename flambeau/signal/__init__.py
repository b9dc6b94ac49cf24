"""torch.signal: windows.

Keeps     torch's names.
Touches   the file beside it.
Not here  torch.hann_window and the like (tensor/public/statistics/windows.py)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.signal import windows

__all__ = ["windows"]

__getattr__ = module_getattr(__name__)
