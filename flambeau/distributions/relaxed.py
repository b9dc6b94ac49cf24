"""Continuous relaxations of bits and categories, with a temperature.

Keeps     draws are torch's for the same seed.
Touches   distribution, discrete, transforms.
Not here  the distributions they relax (discrete.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.discrete import Chances, OverCategories
from flambeau.distributions.element_transforms import ExpTransform, SigmoidTransform
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.utils import broadcast_all, clamp_probs, uniform_draws
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = [
    "ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]  # fmt: skip


class LogitRelaxedBernoulli(Chances):
    """Log odds of a relaxed bit."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        self.temperature = temperature
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        kept = ("temperature",)
        return self._expand_chances(LogitRelaxedBernoulli, batch_shape, _instance, kept=kept)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        probs = clamp_probs(t.expand(self.probs, shape))
        drawn = clamp_probs(uniform_draws(shape, probs))
        odds = drawn.log() - (-drawn).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value.mul(self.temperature)
        is_tensor = isinstance(self.temperature, Tensor)
        scale = self.temperature.log() if is_tensor else math.log(self.temperature)
        return scale + away - 2 * away.exp().log1p()


class _Relaxed(TransformedDistribution):
    """The image of a relaxed variable, with the parameters of that variable."""

    has_rsample = True

    @property
    def temperature(self) -> Any:
        """How soft the relaxation is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log odds, or logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Chances, or probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """A bit relaxed to the interval from 0 to 1."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(RelaxedBernoulli, _instance)
        return super().expand(batch_shape, _instance=made)


class ExpRelaxedCategorical(OverCategories):
    """Logarithm of a relaxed one-hot vector."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names, kept = ("_categorical",), ("temperature",)
        return self._expanded(ExpRelaxedCategorical, batch_shape, _instance, *names, kept=kept)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = clamp_probs(uniform_draws(shape, self.logits))
        gumbels = -((-(drawn.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - t.logsumexp(scores, -1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        count = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = t.full_like(logits[..., 0], 1.0) * self.temperature
        scale = math.lgamma(count) + t.log(temperature) * (count - 1)
        score = logits - value.mul(self.temperature)
        score = (score - t.logsumexp(score, -1, True)).sum(-1)
        return score + scale


class RelaxedOneHotCategorical(_Relaxed):
    """A one-hot vector relaxed to the simplex."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=made)
