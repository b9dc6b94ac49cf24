"""Instance norm layers: batch norm of every sample by itself.

Keeps     torch's defaults: no weight, no running statistics.
Touches   batchnorm.py, nn.functional.
Not here  the kernels (ops.rows.normalization)."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.nn import functional as F
from flambeau.nn.modules.batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    n_spatial = 0

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (self.n_spatial + 1, self.n_spatial + 2):
            raise ValueError(
                f"expected {self.n_spatial + 1}D or {self.n_spatial + 2}D input "
                f"(got {input.dim()}D input)"
            )

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        is_single = input.dim() == self.n_spatial + 1
        channels = input.shape[0 if is_single else 1]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={0 if is_single else 1} to match num_features "
                    f"({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={0 if is_single else 1} does not match num_features. You can "
                "silence this warning by not passing in num_features, which is not used because "
                "affine=False",
                stacklevel=2,
            )
        batch = input.unsqueeze(0) if is_single else input
        result = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0, self.eps,
        )  # fmt: skip
        return result.squeeze(0) if is_single else result


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of (N, C, L) or (C, L)."""

    n_spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of (N, C, H, W) or (C, H, W)."""

    n_spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of (N, C, D, H, W) or (C, D, H, W)."""

    n_spatial = 3
