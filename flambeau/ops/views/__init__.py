"""Operators whose results share their input's memory, and the gradients of those."""
