"""Places of what is not zero: makers that `b.kernel` names as "compact.<maker>"."""

from flambeau.devices.cpu.compact.plan import nonzero

__all__ = ["nonzero"]
