"""Running folds: makers that `b.kernel` names as "scans.<maker>"."""

from flambeau.devices.cpu.scans.plan import cumprod, cumsum

__all__ = ["cumprod", "cumsum"]
