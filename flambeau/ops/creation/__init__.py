"""Operators without a tensor operand: constants, numbers, ranges, identity matrices."""
