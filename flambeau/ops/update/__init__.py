"""Operators that update lists of tensors in place."""
