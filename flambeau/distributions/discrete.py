"""Distributions over two values, over categories and over their one-hot vectors.

Keeps     probabilities and logits follow from each other, the other one lazily; draws are
          torch's for the same seed.
Touches   distribution, random (bernoulli, multinomial).
Not here  counts (counts.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution, ExponentialFamily
from flambeau.distributions.utils import (
    binary_cross_entropy,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from flambeau.random import sampled_tensors
from flambeau.random import tensors as draws
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = [
    "Bernoulli", "Categorical", "Multinomial", "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
]  # fmt: skip


def given_one(probs: Any, logits: Any) -> tuple[str, Any]:
    """Which of the two was given, and its value."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("probs", probs) if logits is None else ("logits", logits)


class Chances(Distribution):
    """Distributions of one chance an element, given as probabilities or log odds."""

    def _take(self, probs: Any, logits: Any) -> Size:
        """Keep the one given; the batch's shape."""
        name, given = given_one(probs, logits)
        (value,) = broadcast_all(given)
        setattr(self, name, value)
        self._is_by_probs = name == "probs"
        return value.shape

    def _expand_chances(
        self, cls: Any, batch_shape: Any, _instance: Any, *names: str, kept: tuple[str, ...] = ()
    ) -> Any:
        names, kept = ("probs", "logits", *names), ("_is_by_probs", *kept)
        return self._expanded(cls, batch_shape, _instance, *names, kept=kept)

    @property
    def _param(self) -> Tensor:
        return self.probs if self._is_by_probs else self.logits

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Chances."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """Shape of what was given."""
        return self._param.shape


class Bernoulli(Chances, ExponentialFamily):
    """1 with a chance, else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_chances(Bernoulli, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        found = (self.probs >= 0.5).to(self.probs.dtype)
        return t.masked_fill(found, self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            return draws.bernoulli(t.expand(self.probs, shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(t.arange(2, dtype=self._param.dtype), expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (t.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return t.log1p(t.exp(natural_params[0]))


class Categorical(Distribution):
    """One of the categories in the last dim.

    >>> Categorical(probs=Categorical(logits=Bernoulli(0.5).enumerate_support()).probs).mode
    tensor(1)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        name, given = given_one(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        self._is_by_probs = name == "probs"
        if self._is_by_probs:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - t.logsumexp(logits, -1, True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        kept = ("_is_by_probs", "_num_events")
        return self._expanded(Categorical, batch_shape, _instance, "probs", "logits", kept=kept)

    @property
    def _param(self) -> Tensor:
        return self.probs if self._is_by_probs else self.logits

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The categories' numbers."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        """Shape of what was given."""
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return t.full(tuple(self._extended_shape()), math.nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return t.argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        return t.full(tuple(self._extended_shape()), math.nan, dtype=self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        rows = self.probs.reshape((-1, self._num_events))
        drawn = sampled_tensors.multinomial(rows, math.prod(shape), True)
        return t.transpose(drawn, 0, 1).reshape(tuple(self._extended_shape(shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index = t.unsqueeze(value.long(), -1)
        index, log_mass = queries.broadcast_tensors(index, self.logits)
        return t.gather(log_mass, -1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = t.clamp(self.logits, min=queries.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(t.arange(self._num_events), expand)


class OverCategories(Distribution):
    """Distributions of vectors over the categories in the last dim."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any, logits: Any, validate_args: Any) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """Shape of what was given."""
        return self._categorical.param_shape


class OneHotCategorical(OverCategories):
    """The one-hot vector of one of the categories in the last dim."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(OneHotCategorical, batch_shape, _instance, "_categorical")

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return t.one_hot(t.argmax(self.probs, -1), self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        index = self._categorical.sample(Size(sample_shape))
        return t.one_hot(index, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, _ = broadcast_all(value, self.logits)
        return self._categorical.log_prob(t.argmax(value, -1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.event_shape[0]
        values = t.eye(count, dtype=self._param.dtype)
        values = values.reshape((count, *(1,) * len(self.batch_shape), count))
        return t.expand(values, (count, *self.batch_shape, count)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())


class Multinomial(OverCategories):
    """How often each category came in `total_count` draws."""

    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        kept = ("total_count",)
        return self._expanded(Multinomial, batch_shape, _instance, "_categorical", kept=kept)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum to the total."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def entropy(self) -> Tensor:
        from flambeau.distributions.counts import Binomial

        count = t.full((), float(self.total_count))
        constant = count * self._categorical.entropy() - t.lgamma(count + 1)
        chances = Binomial(total_count=self.total_count, probs=self.probs)
        support = chances.enumerate_support(expand=False)[1:]
        weights = t.exp(chances.log_prob(support)) * t.lgamma(support + 1)
        return constant + weights.sum((0, -1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count, *shape)))
        order = (*range(1, drawn.ndim), 0)
        shifted = t.permute(drawn, order)
        counts = t.zeros(tuple(self._extended_shape(shape)), dtype=shifted.dtype)
        counts = t.scatter_add(counts, -1, shifted, t.ones_like(shifted))
        return counts.to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        factorial_n = t.lgamma(value.sum(-1) + 1)
        factorials = t.lgamma(value + 1).sum(-1)
        logits = t.masked_fill(logits, (value == 0) & (logits == -math.inf), 0)
        return factorial_n - factorials + (logits * value).sum(-1)
