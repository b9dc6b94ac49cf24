"""Convolutions, plain and transposed, of one to three spatial dims."""

from flambeau.ops.convolution import convolution

__all__ = ["convolution"]
