"""torch.cuda.amp: the old names of torch.amp.

Keeps     names alone.
Touches   amp.deprecated.
Not here  what they do (amp/)."""

from __future__ import annotations

from flambeau.amp.deprecated import CudaGradScaler as GradScaler
from flambeau.amp.deprecated import cuda_autocast as autocast
from flambeau.amp.deprecated import cuda_custom_bwd as custom_bwd
from flambeau.amp.deprecated import cuda_custom_fwd as custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
