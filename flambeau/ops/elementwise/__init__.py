"""Operators whose result at a place depends on their operands at that place alone."""
