"""torch.cpu.amp: the old names of torch.amp.

Keeps     names alone.
Touches   amp.deprecated.
Not here  what they do (amp/)."""

from __future__ import annotations

from flambeau.amp.deprecated import CpuGradScaler as GradScaler
from flambeau.amp.deprecated import cpu_autocast as autocast

__all__ = ["GradScaler", "autocast"]
