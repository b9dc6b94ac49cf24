"""Operators whose results share their input's memory, and the gradients of those."""

from flambeau.ops.views import backward, movement, parts, splitting

__all__ = ["backward", "movement", "parts", "splitting"]
