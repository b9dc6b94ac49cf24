"""torch.distributed.nn: collectives that gradients pass through.

Keeps     only where things are.
Touches   functional.py.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.distributed.nn.functional import *  # noqa: F403 - torch's path of them

__getattr__ = module_getattr(__name__)
