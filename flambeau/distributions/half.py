"""Absolute values of variables around 0: HalfNormal and HalfCauchy.

Keeps     no density below 0, twice the other variable's above; draws are torch's for the same seed.
Touches   normal, continuous, transformed_distribution.
Not here  the variables themselves (normal.py, continuous.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.continuous import Cauchy
from flambeau.distributions.element_transforms import AbsTransform
from flambeau.distributions.normal import Normal
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["HalfCauchy", "HalfNormal"]


class _Half(TransformedDistribution):
    """Absolute value of a variable that is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, base: Any, validate_args: Any) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """Scale of the variable whose absolute value this is."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return t.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return t.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """Absolute value of a normal variable of mean 0."""

    base_dist: Normal

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(HalfNormal, _instance)
        return super().expand(batch_shape, _instance=made)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """Absolute value of a Cauchy variable around 0."""

    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=made)

    @property
    def mean(self) -> Tensor:
        return t.full(tuple(self._extended_shape()), math.inf, dtype=self.scale.dtype)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
