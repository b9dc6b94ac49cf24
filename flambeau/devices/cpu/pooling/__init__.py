"""Native kernels that pool windows, and their gradients."""

from flambeau.devices.cpu.pooling.plan import average, average_gradient, largest, largest_gradient

__all__ = ["average", "average_gradient", "largest", "largest_gradient"]
