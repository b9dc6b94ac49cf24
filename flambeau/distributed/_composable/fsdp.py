"""torch.distributed._composable.fsdp: an older path of fully_shard.

Keeps     the same functions.
Touches   fsdp.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]

__getattr__ = module_getattr(__name__)
