"""Operators over rows, recorded as one: softmax, normalisation, losses, attention."""

from flambeau.ops.rows import attention, cross_entropy, losses, normalization, softmax

__all__ = ["attention", "cross_entropy", "losses", "normalization", "softmax"]
