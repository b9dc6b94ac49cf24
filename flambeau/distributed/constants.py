"""torch.distributed.constants: how long a group waits, by the path that libraries import.

Keeps     torch's half an hour, and ten minutes for NCCL.
Touches   nothing.
Not here  waiting: a group of one process waits for nobody (world.py)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from flambeau.base.missing import module_getattr

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout: Final = timedelta(minutes=30)
default_pg_nccl_timeout: Final = timedelta(minutes=10)

__getattr__ = module_getattr(__name__)
