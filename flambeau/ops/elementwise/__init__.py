"""Operators whose result at a place depends on their operands at that place alone."""

from flambeau.ops.elementwise import (
    activation,
    arithmetic,
    comparison,
    copying,
    logical,
    powers,
    rounding,
    smooth_activation,
    trigonometric,
)

__all__ = [
    "activation", "arithmetic", "comparison", "copying", "logical", "powers", "rounding",
    "smooth_activation", "trigonometric",
]  # fmt: skip
