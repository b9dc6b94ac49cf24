"""Transforms element by element: exp, powers, sigmoid, tanh, softplus, abs, affine, a cdf.

Keeps     domains and images as torch states them.
Touches   transforms (their base), constraints, tensor.
Not here  composing and inverting (transforms.py), vectors and matrices (vector_transforms.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.transforms import Transform
from flambeau.distributions.utils import broadcast_all
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = [
    "AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform",
    "PowerTransform", "SigmoidTransform", "SoftplusTransform", "TanhTransform",
]  # fmt: skip


class WithoutParameters(Transform):
    """Maps that have no parameters: all of a class are equal."""

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class ExpTransform(WithoutParameters):
    """y = exp(x)."""

    codomain = constraints.positive
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:
        return t.sign(self.exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return queries.broadcast_shapes(shape, tuple(self.exponent.shape))

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class SigmoidTransform(WithoutParameters):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1."""

    codomain = constraints.unit_interval
    sign = +1

    def _call(self, x: Any) -> Any:
        facts = queries.finfo(x.dtype)
        return t.clamp(t.sigmoid(x), facts.tiny, 1.0 - facts.eps)

    def _inverse(self, y: Any) -> Any:
        facts = queries.finfo(y.dtype)
        y = t.clamp(y, facts.tiny, 1.0 - facts.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -t.softplus(-x) - t.softplus(x)


class SoftplusTransform(WithoutParameters):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    sign = +1

    def _call(self, x: Any) -> Any:
        return t.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -t.softplus(-x)


class TanhTransform(WithoutParameters):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return t.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - t.softplus(-2.0 * x))


class AbsTransform(WithoutParameters):
    """y = |x|."""

    codomain = constraints.positive
    bijective = False

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    >>> import flambeau as torch
    >>> transform = torch.distributions.AffineTransform(1.0, 2.0)
    >>> transform(torch.tensor([3.0])), transform.inv(torch.tensor([7.0]))
    (tensor([7.]), tensor([3.]))
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def _region(self) -> Any:
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """All numbers."""
        return self._region()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """All numbers."""
        return self._region()

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        same_loc = bool(t.all(t.eq(*broadcast_all(self.loc, other.loc))))
        return same_loc and bool(t.all(t.eq(*broadcast_all(self.scale, other.scale))))

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, (int, float)):
            return 1 if self.scale > 0 else -1 if self.scale < 0 else 0
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        shape = tuple(x.shape)
        if isinstance(self.scale, (int, float)):
            found = t.full_like(x, math.log(abs(self.scale)))
        else:
            found = t.log(t.abs(self.scale))
        if self.event_dim:
            found = t.sum(found.reshape((*found.shape[: -self.event_dim], -1)), -1)
            shape = shape[: -self.event_dim]
        return t.expand(found, shape)

    def forward_shape(self, shape: Any) -> Any:
        parts = [tuple(p.shape) for p in (self.loc, self.scale) if isinstance(p, Tensor)]
        return queries.broadcast_shapes(shape, *parts)

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The distribution's support."""
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
