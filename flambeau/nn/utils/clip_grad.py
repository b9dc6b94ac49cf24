"""Gradients clipped: by the norm of all of them together, or one by one.

Keeps     torch's formula: clip coefficient max_norm / (total + 1e-6), at most 1, multiplied in
          always, so that nothing has to be read.
Touches   tensor.functions.
Not here  the optimizers (optim)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t


def _gradients(parameters: Any) -> list[Any]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [each.grad for each in given if each.grad is not None]


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """Norm of all tensors seen as one vector."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return creation.tensor(0.0)
    with no_grad():
        norms = [t.vector_norm(each, norm_type) for each in tensors]
        total = t.vector_norm(t.stack(norms), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None
) -> None:
    """Multiply gradients by min(1, max_norm / (total_norm + 1e-6))."""
    gradients = _gradients(parameters)
    if not gradients:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)


def _kept(parameters: Any) -> list[Any]:
    """The parameters as a list; a generator that has nothing left is worth a warning."""
    if isinstance(parameters, Tensor):
        return [parameters]
    kept = list(parameters)
    if not kept and isinstance(parameters, Generator):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3
        )
    return kept


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:  # fmt: skip
    """Scale gradients down so that their common norm is at most max_norm; returns the norm.

    >>> import flambeau as torch
    >>> w = torch.ones(4, requires_grad=True)
    >>> w.grad = torch.ones(4)
    >>> torch.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(2.)
    """
    parameters = _kept(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Any:
    """The old name of clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Cut gradients off at -clip_value and clip_value."""
    clip_value = float(clip_value)
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(min=-clip_value, max=clip_value)
