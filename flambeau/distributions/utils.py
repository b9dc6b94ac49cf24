"""What distributions share: parameters made tensors, probabilities and logits, lazy attributes.

Keeps     numbers become tensors of the default dtype and device of the tensors beside them.
Touches   tensor.
Not here  checks of parameters (distribution.py, constraints.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from flambeau.autograd.grad_mode import enable_grad
from flambeau.base import promotion
from flambeau.nn.functions import losses
from flambeau.tensor import Tensor, creation, functions
from flambeau.tensor.public import queries

euler_constant: Final = 0.57721566490153286060

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs",
    "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Values of one shape; numbers take the dtype of the first tensor, or the default one.

    >>> import flambeau as torch
    >>> torch.distributions.utils.broadcast_all(1, torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(isinstance(each, (Tensor, int, float)) for each in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((each for each in values if isinstance(each, Tensor)), None)
    element = promotion.default_dtype() if like is None else like.dtype
    made = [
        each if isinstance(each, Tensor) else creation.tensor(each, dtype=element)
        for each in values
    ]
    return tuple(queries.broadcast_tensors(*made))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds, or of unnormalised log probabilities in the last dim."""
    if is_binary:
        return functions.sigmoid(logits)
    return functions.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the dtype's epsilon."""
    eps = queries.finfo(probs.dtype).eps
    return functions.clamp(probs, eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of probabilities, or their logarithms."""
    kept = clamp_probs(probs)
    if is_binary:
        return functions.log(kept) - functions.log1p(-kept)
    return functions.log(kept)


def binary_cross_entropy(logits: Tensor, value: Tensor) -> Tensor:
    """Cross entropy of bits with given log odds, element by element."""
    return losses.binary_cross_entropy_with_logits(logits, value, reduction="none")


def sum_rightmost(value: Any, count: int) -> Any:
    """Sum over the last `count` dims."""
    if count == 0:
        return value
    return functions.sum(value.reshape((*value.shape[:-count], -1)), -1)


def standard_normal(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Normal draws of a shape, in another tensor's dtype."""
    from flambeau.random import tensors

    return tensors.normal(
        functions.zeros(tuple(shape), dtype=like.dtype),
        functions.ones(tuple(shape), dtype=like.dtype),
    )


def uniform_draws(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Uniform draws from [0, 1) of a shape, in another tensor's dtype."""
    from flambeau.random import tensors

    return tensors.rand(tuple(shape), dtype=like.dtype, device=like.device)


class lazy_property:  # noqa: N801 - torch's name
    """An attribute worked out when it is first read, with gradients, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return _ReadOnClass(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _ReadOnClass(lazy_property, property):
    """A lazy attribute as its class shows it."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Elements on and below a diagonal of the last two dims, row by row."""
    size = mat.shape[-1]
    if diag < -size or diag >= size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    places = _lower_places(size, diag)
    flat = mat.reshape((*mat.shape[:-2], size * size))
    return functions.index_select(flat, -1, creation.tensor(places))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrix whose elements on and below a diagonal are given row by row."""
    size = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1))
            ** 0.5) / 2  # fmt: skip
    if not round(size) - size < queries.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    side = round(size)
    flat = functions.zeros((*vec.shape[:-1], side * side), dtype=vec.dtype)
    places = creation.tensor(_lower_places(side, diag))
    return functions.index_copy(flat, -1, places, vec).reshape((*vec.shape[:-1], side, side))


def _lower_places(size: int, diag: int) -> list[int]:
    return [row * size + column for row in range(size) for column in range(size)
            if column <= row + diag]  # fmt: skip


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Normal draws, by the name and with the arguments by which libraries ask for them."""
    return standard_normal(tuple(shape), functions.empty((), dtype=dtype, device=device))


_sum_rightmost = sum_rightmost
