"""torch._utils: tensors laid into one and taken out again, as programs import it.

Keeps     only where things are.
Touches   tensor.
Not here  any logic."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.base.missing import module_getattr
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors, one behind the other.

    >>> import flambeau as torch
    >>> flat = _flatten_dense_tensors([torch.zeros(2), torch.ones(1, 1)])
    >>> flat, _unflatten_dense_tensors(flat, [torch.zeros(2), torch.ones(1, 1)])
    (tensor([0., 0., 1.]), (tensor([0., 0.]), tensor([[1.]])))
    """
    return t.cat([each.reshape(-1) for each in tensors])  # type: ignore[no-any-return]


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor in the shapes of the tensors."""
    parts = flat.split([each.numel() for each in tensors])
    return tuple(part.view(each.shape) for part, each in zip(parts, tensors, strict=True))


__getattr__ = module_getattr(__name__)
