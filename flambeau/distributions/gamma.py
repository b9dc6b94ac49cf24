"""Gamma and its kin: Gamma, Chi2, Exponential, Dirichlet, Beta, InverseGamma, FisherSnedecor.

Keeps     draws are torch's for the same seed.
Touches   distribution, random (gamma and Dirichlet draws).
Not here  Student's t (continuous.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution, ExponentialFamily
from flambeau.distributions.element_transforms import PowerTransform
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.utils import broadcast_all
from flambeau.random import in_place, sampled_tensors
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = [
    "Beta", "Chi2", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma", "InverseGamma",
]  # fmt: skip


class Gamma(ExponentialFamily):
    """The gamma distribution of a shape `concentration` and a rate.

    >>> import flambeau as torch
    >>> torch.distributions.Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Gamma, batch_shape, _instance, "concentration", "rate")

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = sampled_tensors._standard_gamma(t.expand(self.concentration, shape))
        value = drawn / t.expand(self.rate, shape)
        value.detach().clamp_(min=queries.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Any) -> Tensor:
        value = creation.as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args:
            self._validate_sample(value)
        shape, rate = self.concentration, self.rate
        found = t.xlogy(shape, rate) + t.xlogy(shape - 1, value) - rate * value
        return found - t.lgamma(shape)

    def entropy(self) -> Tensor:
        shape = self.concentration
        found = shape - t.log(self.rate) + t.lgamma(shape)
        return found + (1.0 - shape) * t.digamma(shape)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return t.igamma(self.concentration, self.rate * value)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        one, two = natural_params
        return t.lgamma(one + 1) + (one + 1) * t.log(-two.reciprocal())


class Chi2(Gamma):
    """Sum of `df` squared normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: Any = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Chi2, _instance)
        return super().expand(batch_shape, made)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2


class Exponential(ExponentialFamily):
    """Waiting times of a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Exponential, batch_shape, _instance, "rate")

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return t.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return in_place.exponential_(t.zeros(shape, dtype=self.rate.dtype)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return t.log(self.rate) - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - t.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -t.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - t.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -t.log(-natural_params[0])


class Dirichlet(ExponentialFamily):
    """Shares that sum to 1."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: Any = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Dirichlet, batch_shape, _instance, "concentration")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return sampled_tensors._sample_dirichlet(t.expand(self.concentration, shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        shape = self.concentration
        found = t.xlogy(shape - 1.0, value).sum(-1) + t.lgamma(shape.sum(-1))
        return found - t.lgamma(shape).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(-1, True)
        largest = t.one_hot(t.argmax(mode, -1), above.shape[-1]).to(mode)
        return t.where(flat, largest, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        found = self.concentration * (total - self.concentration)
        return found / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        count = self.concentration.shape[-1]
        total = self.concentration.sum(-1)
        found = t.lgamma(self.concentration).sum(-1) - t.lgamma(total)
        found = found - (count - total) * t.digamma(total)
        inner = (self.concentration - 1.0) * t.digamma(self.concentration)
        return found - inner.sum(-1)


class Beta(ExponentialFamily):
    """One of two shares that sum to 1."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        pair = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(t.stack(pair, -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Beta, batch_shape, _instance, "_dirichlet")

    @property
    def concentration1(self) -> Tensor:
        """Shape of the first share."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """Shape of the second share."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return t.select(self._dirichlet.rsample(sample_shape), -1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(t.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class InverseGamma(TransformedDistribution):
    """1 over a gamma variable."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-t.ones((), dtype=base.rate.dtype))
        super().__init__(base, inverse, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, _instance=made)

    @property
    def concentration(self) -> Tensor:
        """Shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """Rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        found = self.rate / (self.concentration - 1)
        return t.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        shape = self.concentration
        found = self.rate.square() / ((shape - 1).square() * (shape - 2))
        return t.where(shape > 2, found, math.inf)

    def entropy(self) -> Tensor:
        shape = self.concentration
        found = shape + self.rate.log() + shape.lgamma()
        return found - (1 + shape) * shape.digamma()


class FisherSnedecor(Distribution):
    """Ratio of two scaled chi-squared variables."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: Any = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("df1", "df2", "_gamma1", "_gamma2")
        return self._expanded(FisherSnedecor, batch_shape, _instance, *names)

    @property
    def mean(self) -> Tensor:
        df2 = t.masked_fill(self.df2, self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return t.masked_fill(found, self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df2 = t.masked_fill(self.df2, self.df2 <= 4, math.nan)
        above = 2 * df2.pow(2) * (self.df1 + df2 - 2)
        return above / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        one = self._gamma1.rsample(sample_shape).reshape(shape)
        two = self._gamma2.rsample(sample_shape).reshape(shape)
        tiny = queries.finfo(two.dtype).tiny
        two.clamp_(min=tiny)
        found = one / two
        found.clamp_(min=tiny)
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        one, two = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        found = (one + two).lgamma() - one.lgamma() - two.lgamma()
        found = found + one * ratio.log() + (one - 1) * t.log(value)
        return found - (one + two) * t.log1p(ratio * value)
