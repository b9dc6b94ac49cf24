"""Frequencies of a transform's results, and their order.

Keeps     torch's order: zero, the positive ones, the negative ones.
Touches   tensor.functions.
Not here  the transforms (functions.py)."""

from __future__ import annotations

from typing import Any

from flambeau.tensor import functions as t
from flambeau.tensor.inplace import stored
from flambeau.tensor.public.queries import get_default_dtype


def fftfreq(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, **named: Any) -> Any:
    """Frequencies of fft's results, for samples d apart.

    >>> fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    element = dtype or get_default_dtype()
    places = t.arange(n, dtype=element)
    made = t.where(places < (n + 1) // 2, places, places - n) * (1.0 / (n * d))
    return stored(made.requires_grad_() if named.get("requires_grad") else made, out)


def rfftfreq(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, **named: Any) -> Any:
    """Frequencies of rfft's results, for samples d apart."""
    element = dtype or get_default_dtype()
    made = t.arange(n // 2 + 1, dtype=element) * (1.0 / (n * d))
    return stored(made.requires_grad_() if named.get("requires_grad") else made, out)


def _shifted(input: Any, dim: Any, back: bool) -> Any:
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = [(input.shape[each] + back) // 2 for each in dims]
    return t.roll(input, tuple(steps), tuple(dims))


def fftshift(input: Any, dim: Any = None) -> Any:
    """Frequency zero in the middle."""
    return _shifted(input, dim, back=False)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """Frequency zero first again."""
    return _shifted(input, dim, back=True)
