"""torch.functional: functions of torch itself, by their older place.

Keeps     only where things are: torch.functional.einsum is torch.einsum.
Touches   flambeau itself.
Not here  any logic, torch.nn.functional."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import module_getattr

_NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
)  # fmt: skip

_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_NAMES)
    if name not in _NAMES:
        return _missing(name)
    found = globals()[name] = getattr(import_module("flambeau"), name)
    return found


def __dir__() -> list[str]:
    return sorted(_NAMES)
