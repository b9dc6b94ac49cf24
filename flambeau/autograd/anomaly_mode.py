"""torch.autograd.anomaly_mode: find the forward call behind a NaN gradient.

Keeps     torch's names.
Touches   gradients.anomaly.
Not here  how it is done."""

from __future__ import annotations

from flambeau.gradients.anomaly import (
    detect_anomaly,
    is_check_nan_enabled,
    is_enabled,
    set_detect_anomaly,
)

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
           "set_detect_anomaly"]  # fmt: skip

is_anomaly_enabled = is_enabled
is_anomaly_check_nan_enabled = is_check_nan_enabled
