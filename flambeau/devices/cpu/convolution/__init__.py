"""Convolutions as native kernels: windows gathered in cache, tiles of matrix products on them."""

from flambeau.devices.cpu.convolution.plan import forward, transposed, weight_gradient

__all__ = ["forward", "transposed", "weight_gradient"]
