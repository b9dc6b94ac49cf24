"""torch.distributed.distributed_c10d: the path by which some programs import the same names.

Keeps     the names of the package.
Touches   world.py, collectives.py.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.distributed.collectives import *  # noqa: F403 - torch's path of them
from flambeau.distributed.world import *  # noqa: F403 - torch's path of them

__getattr__ = module_getattr(__name__)
