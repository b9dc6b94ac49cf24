"""ContinuousBernoulli: numbers between 0 and 1 by a Bernoulli variable's likelihood.

Keeps     chances near 1/2, within `lims`, go by series: the formulas divide by their distance.
Touches   discrete (chances given either way), random.
Not here  Bernoulli itself (discrete.py).
Source    Loaiza-Ganem and Cunningham, The continuous Bernoulli, 2019."""

from __future__ import annotations

import math
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.discrete import Chances
from flambeau.distributions.distribution import ExponentialFamily
from flambeau.distributions.utils import (
    binary_cross_entropy,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    uniform_draws,
)
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Chances, ExponentialFamily):
    """Density proportional to probs^x (1 - probs)^(1 - x) in [0, 1]."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: Any = None,
    ) -> None:  # fmt: skip
        shape = self._take(probs, logits)
        if probs is not None:
            is_valid = constraints.unit_interval.check(self.probs).all()
            if validate_args is not None and not is_valid:
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_chances(ContinuousBernoulli, batch_shape, _instance, kept=("_lims",))

    @lazy_property
    def probs(self) -> Tensor:
        """Chances, never 0 or 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _away(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where chances are not near 1/2, those chances (others moved away), their log odds."""
        is_away = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        chances = t.where(is_away, self.probs, self._lims[0])
        return is_away, chances, t.log(chances) - t.log1p(-chances)

    def _log_scale(self) -> Tensor:
        """log of what makes the density integrate to 1: odds' log over 2 probs - 1."""
        is_away, chances, odds = self._away()
        x = (self.probs - 0.5) ** 2
        near = math.log(2) + (4 / 3 + 104 / 45 * x) * x
        return t.where(is_away, t.log(odds / (2 * chances - 1)), near)

    @property
    def mean(self) -> Tensor:
        is_away, chances, odds = self._away()
        x = self.probs - 0.5
        near = 0.5 + (1 / 3 + 16 / 45 * x * x) * x
        return t.where(is_away, chances / (2 * chances - 1) - 1 / odds, near)

    @property
    def variance(self) -> Tensor:
        is_away, chances, odds = self._away()
        x = (self.probs - 0.5) ** 2
        near = 1 / 12 - (1 / 15 - 128 / 945 * x) * x
        found = chances * (chances - 1) / (1 - 2 * chances) ** 2 + 1 / odds**2
        return t.where(is_away, found, near)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_draws(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._log_scale() - binary_cross_entropy(logits, value)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        is_away, chances, _ = self._away()
        both = chances**value * (1 - chances) ** (1 - value)
        inside = t.where(is_away, (both + chances - 1) / (2 * chances - 1), value)
        return t.where(value <= 0, 0.0, t.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        is_away, chances, odds = self._away()
        rest = t.log1p(-chances)
        found = (t.log1p(-chances + value * (2 * chances - 1)) - rest) / odds
        return t.where(is_away, found, value)

    def entropy(self) -> Tensor:
        rest = t.log1p(-self.probs)
        return self.mean * (rest - t.log(self.probs)) - self._log_scale() - rest

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """log((e^x - 1) / x)."""
        (x,) = natural_params
        is_away = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        away = t.where(is_away, x, self._lims[0] - 0.5)
        near = x / 2 + x**2 / 24 - x**4 / 2880
        return t.where(is_away, t.log(t.expm1(away) / away), near)
