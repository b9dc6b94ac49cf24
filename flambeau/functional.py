"""torch.functional: functions of torch itself, by their older place.

Keeps     only where things are: torch.functional.einsum is torch.einsum.
Touches   tensor.public, linalg, fft.
Not here  any logic, torch.nn.functional."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.fft.short_time import istft, stft
from flambeau.linalg.low_rank import pca_lowrank, svd_lowrank
from flambeau.linalg.top_level import chain_matmul, lu, norm
from flambeau.tensor.public.composed import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    cartesian_prod,
    tensordot,
)
from flambeau.tensor.public.distinct import unique, unique_consecutive
from flambeau.tensor.public.forms import einsum, meshgrid, split
from flambeau.tensor.public.queries import broadcast_shapes, broadcast_tensors
from flambeau.tensor.public.statistics.spread import cdist, unravel_index

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
]  # fmt: skip

__getattr__ = module_getattr(__name__)
