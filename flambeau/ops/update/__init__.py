"""Operators that update lists of tensors in place."""

from flambeau.ops.update import optimizers

__all__ = ["optimizers"]
