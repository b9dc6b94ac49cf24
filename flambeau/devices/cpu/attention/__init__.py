"""Scaled dot product attention as native kernels: scores live in cache, a block of queries each."""

from flambeau.devices.cpu.attention.plan import backward, forward

__all__ = ["backward", "forward"]
