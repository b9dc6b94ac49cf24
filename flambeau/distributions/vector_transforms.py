"""Transforms of vectors and matrices, and of parts of a tensor.

Keeps     shapes as torch's; log determinants over the event's dims.
Touches   transforms, constraints, tensor.
Not here  transforms element by element (element_transforms.py)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.element_transforms import WithoutParameters
from flambeau.distributions.transforms import Transform
from flambeau.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from flambeau.tensor import Size
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = [
    "CatTransform", "CorrCholeskyTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform",
    "StickBreakingTransform",
]  # fmt: skip


class ReshapeTransform(Transform):
    """Another shape of the event."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Numbers of the shape before."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Numbers of the shape after."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Any) -> Any:
        batch = tuple(x.shape)[: x.ndim - len(self.in_shape)]
        return x.reshape((*batch, *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        batch = tuple(y.shape)[: y.ndim - len(self.out_shape)]
        return y.reshape((*batch, *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        batch = tuple(x.shape)[: x.ndim - len(self.in_shape)]
        return t.zeros(batch, dtype=x.dtype)

    def _reshaped(self, shape: Any, old: Size, new: Size) -> Any:
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return Size((*shape[:cut], *new))

    def forward_shape(self, shape: Any) -> Any:
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._reshaped(shape, self.out_shape, self.in_shape)


class SoftmaxTransform(WithoutParameters):
    """exp(x), normalised along the last dim."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False

    def _call(self, x: Any) -> Any:
        probs = (x - t.amax(x, -1, True)).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(WithoutParameters):
    """Shares of a stick broken piece by piece."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        offset = x.shape[-1] + 1 - t.cumsum(t.ones(x.shape[-1], dtype=x.dtype), -1)
        z = _clipped_sigmoid(x - offset.log())
        rest = t.cumprod(1 - z, -1)
        return t.constant_pad_nd(z, (0, 1), 1) * t.constant_pad_nd(rest, (1, 0), 1)

    def _inverse(self, y: Any) -> Any:
        cropped = y[..., :-1]
        offset = y.shape[-1] - t.cumsum(t.ones(cropped.shape[-1], dtype=y.dtype), -1)
        rest = 1 - t.cumsum(cropped, -1)
        rest = t.clamp(rest, min=queries.finfo(y.dtype).tiny)
        return cropped.log() - rest.log() + offset.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        offset = x.shape[-1] + 1 - t.cumsum(t.ones(x.shape[-1], dtype=x.dtype), -1)
        x = x - offset.log()
        return (-x + t.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


def _clipped_sigmoid(x: Any) -> Any:
    facts = queries.finfo(x.dtype)
    return t.clamp(t.sigmoid(x), facts.tiny, 1.0 - facts.eps)


class LowerCholeskyTransform(WithoutParameters):
    """Any matrix as a lower triangular one with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    bijective = False

    def _call(self, x: Any) -> Any:
        return t.tril(x, -1) + _diagonal_matrix(t.diagonal(x, 0, -2, -1).exp())

    def _inverse(self, y: Any) -> Any:
        return t.tril(y, -1) + _diagonal_matrix(t.diagonal(y, 0, -2, -1).log())


def _diagonal_matrix(values: Any) -> Any:
    size = values.shape[-1]
    return t.diagonal_backward(values, (*values.shape, size), 0, -2, -1)


class PositiveDefiniteTransform(WithoutParameters):
    """Any matrix as a positive definite one."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    bijective = False

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return t.matmul(factor, factor.mT)

    def _inverse(self, y: Any) -> Any:
        from flambeau import linalg

        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """A vector as the Cholesky factor of a correlation matrix."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = t.tanh(x)
        eps = queries.finfo(x.dtype).eps
        x = x.clamp(min=-1 + eps, max=1 - eps)
        r = vec_to_tril_matrix(x, diag=-1)
        rest = t.cumprod((1 - r**2).sqrt(), -1)
        eye = t.eye(r.shape[-1], dtype=r.dtype)
        return (r + eye) * t.constant_pad_nd(rest[..., :-1], (1, 0), 1)

    def _inverse(self, y: Any) -> Any:
        squares = 1 - t.cumsum(y * y, -1)
        shifted = t.constant_pad_nd(squares[..., :-1], (1, 0), 1)
        below = tril_matrix_to_vec(y, diag=-1)
        r = below / tril_matrix_to_vec(shifted, diag=-1).sqrt()
        return (r.log1p() - r.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        rest = 1 - (y * y).cumsum(-1)
        below = tril_matrix_to_vec(rest, diag=-2)
        stick = 0.5 * below.log().sum(-1)
        tanh = -2 * (x + t.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return stick + tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        side = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if side * (side - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], side, side)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        side = shape[-1]
        return (*shape[:-2], side * (side - 1) // 2)


class _Joined(Transform):
    """Maps of parts along a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements in tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq]
        self.dim = dim

    def _parts(self, value: Any) -> list[Any]:
        raise NotImplementedError

    def _join(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _region(self, regions: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return self._join([each(part) for each, part in pairs])

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return self._join([each.inv(part) for each, part in pairs])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        found = [each.log_abs_det_jacobian(before, after) for each, before, after in triples]
        return self._join(found)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(each.bijective for each in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The parts' domains."""
        return self._region([each.domain for each in self.transforms])

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The parts' images."""
        return self._region([each.codomain for each in self.transforms])


class CatTransform(_Joined):
    """Maps of parts of given lengths along a dim."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths and transforms must match in size, got {len(self.lengths)} and "
                f"{len(self.transforms)}"
            )

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Any) -> list[Any]:
        ends = itertools.accumulate(self.lengths)
        places = zip(ends, self.lengths, strict=True)
        return [t.narrow(value, self.dim, end - length, length) for end, length in places]

    def _join(self, parts: list[Any]) -> Any:
        return t.cat(parts, self.dim)

    def _region(self, regions: list[Any]) -> Any:
        return constraints.cat(regions, self.dim, self.lengths)


class StackTransform(_Joined):
    """Maps of the places along a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, value: Any) -> list[Any]:
        return [t.select(value, self.dim, place) for place in range(value.shape[self.dim])]

    def _join(self, parts: list[Any]) -> Any:
        return t.stack(parts, self.dim)

    def _region(self, regions: list[Any]) -> Any:
        return constraints.stack(regions, self.dim)
