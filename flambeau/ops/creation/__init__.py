"""Operators without a tensor operand: constants, numbers, ranges, identity matrices."""

from flambeau.ops.creation import constants, ranges

__all__ = ["constants", "ranges"]
