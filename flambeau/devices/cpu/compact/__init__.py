"""What a mask chooses: makers that `b.kernel` names as "compact.<maker>"."""

from flambeau.devices.cpu.compact.plan import masked_scatter, masked_select, nonzero

__all__ = ["masked_scatter", "masked_select", "nonzero"]
