"""Normal and its kin: Normal, LogNormal, LogisticNormal.

Keeps     draws are torch's for the same seed.
Touches   distribution, transformed_distribution, random.
Not here  several correlated normals (multivariate_normal.py), absolute values (half.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.distribution import ExponentialFamily
from flambeau.distributions.element_transforms import ExpTransform
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.utils import broadcast_all, standard_normal
from flambeau.distributions.vector_transforms import StickBreakingTransform
from flambeau.random import tensors
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["LogNormal", "LogisticNormal", "Normal"]

LOG_ROOT_TWO_PI = math.log(math.sqrt(2 * math.pi))


class Normal(ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    >>> Normal(0.0, 1.0).log_prob(Normal(0.0, 1.0).mean)
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Normal, batch_shape, _instance, "loc", "scale")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            return tensors.normal(t.expand(self.loc, shape), t.expand(self.scale, shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        var = self.scale**2
        distance = -((value - self.loc) ** 2) / (2 * var)
        return distance - self.scale.log() - LOG_ROOT_TWO_PI

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = (value - self.loc) * self.scale.reciprocal() / math.sqrt(2)
        return 0.5 * (1 + t.erf(away))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * t.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + t.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        one, two = natural_params
        return -0.25 * one.pow(2) / two + 0.5 * t.log(-math.pi / two)


class LogNormal(TransformedDistribution):
    """exp of a normal variable."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(LogNormal, _instance)
        return super().expand(batch_shape, _instance=made)

    @property
    def loc(self) -> Tensor:
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Normal variables on the simplex, by breaking a stick."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(LogisticNormal, _instance)
        return super().expand(batch_shape, _instance=made)

    @property
    def loc(self) -> Tensor:
        """Mean of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the normal variables."""
        return self.base_dist.base_dist.scale
