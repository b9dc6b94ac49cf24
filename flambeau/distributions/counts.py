"""Distributions of counts: Binomial, Geometric, NegativeBinomial, Poisson.

Keeps     draws are torch's for the same seed.
Touches   discrete (chances), random (binomial, poisson).
Not here  categories (discrete.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.discrete import Chances, given_one
from flambeau.distributions.distribution import ExponentialFamily
from flambeau.distributions.utils import binary_cross_entropy, broadcast_all, lazy_property
from flambeau.random import in_place, sampled_tensors
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = ["Binomial", "Geometric", "NegativeBinomial", "Poisson"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    """max(x, 0), with half a gradient at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class _Counted(Chances):
    """Distributions of a total count and a chance."""

    def _take_two(self, total_count: Any, probs: Any, logits: Any) -> Size:
        name, given = given_one(probs, logits)
        self.total_count, value = broadcast_all(total_count, given)
        self.total_count = self.total_count.type_as(value)
        setattr(self, name, value)
        self._is_by_probs = name == "probs"
        return value.shape


class Binomial(_Counted):
    """Successes among `total_count` trials.

    >>> import flambeau as torch
    >>> torch.distributions.Binomial(2, 0.5).log_prob(torch.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        shape = self._take_two(total_count, probs, logits)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_chances(Binomial, batch_shape, _instance, "total_count")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0 to the total."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            counts, chances = t.expand(self.total_count, shape), t.expand(self.probs, shape)
            return sampled_tensors.binomial(counts, chances)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count, logits = self.total_count, self.logits
        factorial_n = t.lgamma(count + 1)
        factorial_k = t.lgamma(value + 1)
        factorial_rest = t.lgamma(count - value + 1)
        normalizer = count * _clamp_by_zero(logits) + count * t.log1p(t.exp(-t.abs(logits)))
        normalizer = normalizer - factorial_n
        return value * logits - factorial_k - factorial_rest - normalizer

    def entropy(self) -> Tensor:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        found = self.log_prob(self.enumerate_support(False))
        return -(t.exp(found) * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return self._enumerated(t.arange(1 + total, dtype=self._param.dtype), expand)


class Geometric(Chances):
    """Failures before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            if not bool((value > 0).all()):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to be positive but found "
                    f"invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_chances(Geometric, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return t.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            probs: Any = self.probs
            made = t.zeros(shape, dtype=probs.dtype)
            drawn = in_place.uniform_(made, queries.finfo(probs.dtype).tiny, 1)
            return (drawn.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = t.masked_fill(probs, (probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + t.log(self.probs)

    def entropy(self) -> Tensor:
        return binary_cross_entropy(self.logits, self.probs) / self.probs


class NegativeBinomial(_Counted):
    """Successes before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        shape = self._take_two(total_count, probs, logits)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_chances(NegativeBinomial, batch_shape, _instance, "total_count")

    @property
    def mean(self) -> Tensor:
        return self.total_count * t.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        found = (self.total_count - 1) * t.exp(self.logits)
        return t.floor(found).clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / t.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        from flambeau.distributions.gamma import Gamma

        return Gamma(self.total_count, t.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return sampled_tensors.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits: Any = self.logits
        count = self.total_count
        found = count * t.logsigmoid(-logits) + value * t.logsigmoid(logits)
        norm = -t.lgamma(count + value) + t.lgamma(1.0 + value) + t.lgamma(count)
        norm = t.masked_fill(norm, count + value == 0.0, 0.0)
        return found - norm


class Poisson(ExponentialFamily):
    """Counts of independent events of a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Poisson, batch_shape, _instance, "rate")

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            return sampled_tensors.poisson(t.expand(self.rate, shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return t.xlogy(value, rate) - rate - t.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (t.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return t.exp(natural_params[0])
