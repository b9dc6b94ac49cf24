"""Running combinations along a dim, by a function of two neighbours.

Keeps     the function may be any that is associative; gradients go through it.
Touches   tensor, utils._pytree.
Not here  running sums and products (torch.cumsum, torch.cumprod)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:  # fmt: skip
    """The combinations of all elements up to each, along a dim of the tensors in xs.

    combine_fn     combine_fn(left, right), of values of the form of xs
    reverse        from the end
    Raises         ValueError: no tensors, or dims of several sizes

    >>> import flambeau as torch
    >>> associative_scan(lambda a, b: a * b, torch.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(each, Tensor) for each in leaves):
        raise ValueError(f"xs leaves must be a Tensor, but got {leaves}")
    sizes = {each.size(dim) for each in leaves}
    if len(sizes) != 1:
        raise ValueError(f"All xs leaves must have same dim {dim} size, but got {sorted(sizes)}")
    count = sizes.pop()
    found = [each.flip(dim) if reverse else each for each in leaves]
    step = 1
    while step < count:
        left = [each.narrow(dim, 0, count - step) for each in found]
        right = [each.narrow(dim, step, count - step) for each in found]
        made = combine_fn(tree_unflatten(left, spec), tree_unflatten(right, spec))
        found = [
            t.cat([each.narrow(dim, 0, step), new], dim)
            for each, new in zip(found, tree_flatten(made)[0], strict=True)
        ]
        step *= 2
    return tree_unflatten([each.flip(dim) if reverse else each for each in found], spec)


__getattr__ = module_getattr(__name__)
