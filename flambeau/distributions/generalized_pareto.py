"""GeneralizedPareto: what is left of a variable above a high threshold.

Keeps     a concentration of 0 is the exponential's limit; draws are torch's for the same seed.
Touches   distribution.
Not here  Pareto itself (powers.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all, uniform_draws
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Variables above `loc` with tails that fall as a power, the heavier by `concentration`."""

    arg_constraints = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = self.arg_constraints
        return self._expanded(GeneralizedPareto, batch_shape, _instance, *names)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `loc` on; up to where the tail ends, if concentration is negative."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, t.where(self.concentration < 0, end, math.inf))

    def _power(self) -> tuple[Tensor, Tensor]:
        """Whether the concentration is 0, and a concentration by which can be divided."""
        none = t.isclose(self.concentration, t.zeros_like(self.concentration))
        return none, t.where(none, t.ones_like(self.concentration), self.concentration)

    def _standardized(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_draws(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._standardized(value)
        none, power = self._power()
        factor = 1 / power + t.ones_like(z)
        falls = t.where(factor == 0, factor, factor * t.log1p(power * z))
        return -self.scale.log() - t.where(none, z, falls)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Logarithm of the probability of more than value."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._standardized(value)
        none, power = self._power()
        return t.where(none, -z, -t.log1p(power * z) / power)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Logarithm of the probability of at most value."""
        return t.log1p(-t.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return t.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        none, power = self._power()
        left = t.log1p(-value)
        above = self.scale / power * t.expm1(-power * left)
        return t.where(none, self.loc - self.scale * left, self.loc + above)

    def entropy(self) -> Tensor:
        return t.log(self.scale) + self.concentration + 1

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        found = self.loc + self.scale / (1 - t.where(finite, self.concentration, 0.5))
        return t.where(finite, found, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        power = t.where(finite, self.concentration, 0.25)
        return t.where(finite, self.scale**2 / ((1 - power) ** 2 * (1 - 2 * power)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc
