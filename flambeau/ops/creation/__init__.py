"""Operators that make tensors from numbers alone."""

from flambeau.ops.creation import fills

__all__ = ["fills"]
