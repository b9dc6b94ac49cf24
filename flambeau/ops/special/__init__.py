"""Operators: special functions that have no word of the vocabulary."""
