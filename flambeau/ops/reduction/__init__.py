"""Operators that fold dims away."""

from flambeau.ops.reduction import extremes, moments, norms, sums

__all__ = ["extremes", "moments", "norms", "sums"]
