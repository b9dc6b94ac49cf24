"""Continuous distributions of one variable: Uniform, Laplace, Cauchy, Gumbel, Student's t.

Keeps     draws are torch's for the same seed.
Touches   distribution, transformed_distribution, random.
Not here  normal variables (normal.py), gamma variables (gamma.py), absolute values (half.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.element_transforms import AffineTransform, ExpTransform
from flambeau.distributions.gamma import Chi2
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import Transform
from flambeau.distributions.utils import (
    broadcast_all,
    euler_constant,
    standard_normal,
    uniform_draws,
)  # fmt: skip
from flambeau.random import in_place
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = ["Cauchy", "Gumbel", "Laplace", "StudentT", "Uniform"]


class Uniform(Distribution):
    """Uniform in [low, high).

    >>> import flambeau as torch
    >>> torch.distributions.Uniform(0.0, 4.0).cdf(torch.tensor(1.0))
    tensor(0.2500)
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """Either bound by the other."""
        return {
            "low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)
        }  # fmt: skip

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Uniform, batch_shape, _instance, "low", "high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """low to high."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = uniform_draws(self._extended_shape(sample_shape), self.low)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        above = self.low.le(value).type_as(self.low)
        below = self.high.gt(value).type_as(self.low)
        return t.log(above.mul(below)) - t.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return t.log(self.high - self.low)


class _LocationScale(Distribution):
    """A location and a scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc


class Laplace(_LocationScale):
    """Two exponential tails around a location."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Laplace, batch_shape, _instance, "loc", "scale")

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        eps = queries.finfo(self.loc.dtype).eps
        drawn = in_place.uniform_(t.zeros(shape, dtype=self.loc.dtype), eps - 1, 1)
        return self.loc - self.scale * drawn.sign() * t.log1p(-drawn.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -t.log(2 * self.scale) - t.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * t.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * t.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + t.log(2 * self.scale)


class Cauchy(_LocationScale):
    """Ratio of two normal variables, moved and scaled."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Cauchy, batch_shape, _instance, "loc", "scale")

    @property
    def mean(self) -> Tensor:
        return t.full(tuple(self._extended_shape()), math.nan, dtype=self.loc.dtype)

    @property
    def variance(self) -> Tensor:
        return t.full(tuple(self._extended_shape()), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = in_place.cauchy_(t.zeros(shape, dtype=self.loc.dtype))
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - away.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return t.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return t.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(TransformedDistribution):
    """-log(-log(u)) of a uniform variable, moved and scaled."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        facts = queries.finfo(self.loc.dtype)
        if not isinstance(loc, Tensor) and not isinstance(scale, Tensor):
            base = Uniform(facts.tiny, 1 - facts.eps, validate_args=validate_args)
        else:
            low = t.full_like(self.loc, facts.tiny)
            base = Uniform(low, t.full_like(self.loc, 1 - facts.eps), validate_args)
        transforms: list[Transform] = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-t.ones_like(self.scale)),
            ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Gumbel, _instance)
        made.loc = t.expand(self.loc, tuple(batch_shape))
        made.scale = t.expand(self.scale, tuple(batch_shape))
        return super().expand(batch_shape, _instance=made)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class StudentT(Distribution):
    """Student's t of `df` degrees of freedom, moved and scaled."""

    arg_constraints = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("df", "loc", "scale", "_chi2")
        return self._expanded(StudentT, batch_shape, _instance, *names)

    @property
    def mean(self) -> Tensor:
        return t.masked_fill(self.loc, self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self.scale.pow(2) * self.df / (self.df - 2)
        found = t.where(self.df > 2, found, math.inf)
        return t.masked_fill(found, self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.df)
        spread = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (drawn * t.rsqrt(spread / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        norm = norm + t.lgamma(0.5 * self.df) - t.lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * t.log1p(y**2.0 / self.df) - norm

    def entropy(self) -> Tensor:
        beta = t.lgamma(0.5 * self.df) + math.lgamma(0.5) - t.lgamma(0.5 * (self.df + 1))
        slope = t.digamma(0.5 * (self.df + 1)) - t.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * slope + 0.5 * self.df.log() + beta
