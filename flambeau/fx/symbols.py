"""torch.SymInt and its kind: numbers that a tracer does not know yet.

Keeps     no number is one: sizes are ints; libraries ask isinstance.
Touches   nothing.
Not here  tracing (_symbolic_trace.py)."""

from __future__ import annotations

__all__ = ["SymBool", "SymFloat", "SymInt"]


class SymInt:
    """An int that a tracer does not know: there are none."""


class SymFloat:
    """A float that a tracer does not know: there are none."""


class SymBool:
    """A bool that a tracer does not know: there are none."""
