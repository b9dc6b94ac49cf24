"""make_tensor: tensors of random values to test with.

Keeps     torch's ranges by dtype.
Touches   random, tensor.
Not here  comparing (compare.py)."""

from __future__ import annotations

from typing import Any

from flambeau.random.tensors import randint
from flambeau.tensor import creation
from flambeau.tensor import functions as t


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: Any = None, high: Any = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:  # fmt: skip
    """Values drawn uniformly from [low, high): [-9, 9) for floats, [-9, 10) for integers, [0, 2)
    for bools."""
    sizes = creation.sizes_of(shape, "make_tensor")
    if noncontiguous and sizes:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    if dtype.is_floating_point or dtype.is_complex:
        first, last = -9 if low is None else low, 9 if high is None else high
        made = creation.empty(sizes, dtype=dtype).uniform_(first, last)
    elif dtype.name == "bool":
        made = randint(0, 2, sizes).to(dtype)
    else:
        least = -9 if dtype.is_signed else 0
        made = randint(
            int(least if low is None else low), int(10 if high is None else high), sizes
        ).to(dtype)
    if exclude_zero:
        made = t.where(t.eq(made, 0), t.ones_like(made), made)
    if noncontiguous and sizes:
        made = made[..., ::2]
    return made.requires_grad_() if requires_grad else made
