"""Divergences between different families: minus the entropy, minus the expected log density.

Keeps     the expected log density of q needs a few moments of p; a pair is closed where p has them.
          Where q has no mass where p has some, the divergence is infinite.
Touches   the distributions.
Not here  two of one family, the registry (kl.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from flambeau.distributions.continuous import Gumbel, Laplace, Uniform
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.counts import Binomial, Poisson
from flambeau.distributions.discrete import Bernoulli
from flambeau.distributions.gamma import Beta, Exponential, Gamma
from flambeau.distributions.normal import Normal
from flambeau.distributions.powers import Pareto
from flambeau.distributions.utils import euler_constant
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

Moment = Callable[[Any], Tensor]


def _log_uniform(low: Tensor, high: Tensor) -> Tensor:
    """Expected log of a uniform variable."""
    return (t.xlogy(high, high) - t.xlogy(low, low)) / (high - low) - 1


# Expected log x, by the family of x.
_LOG: Final[dict[type, Moment]] = {
    Beta: lambda p: t.digamma(p.concentration1) - t.digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: t.digamma(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _log_uniform(p.low, p.high),
}
# Expected exp(-x / scale), by the family of x.
_LAPLACE: Final[dict[type, Callable[[Any, Tensor], Tensor]]] = {
    Exponential: lambda p, scale: p.rate / (p.rate + scale.reciprocal()),
    Gamma: lambda p, scale: (1 + (p.rate * scale).reciprocal()).pow(-p.concentration),
    Normal: lambda p, scale: t.exp(0.5 * (p.scale / scale).pow(2) - p.loc / scale),
    Uniform: lambda p, scale: (
        scale * (t.exp(-p.low / scale) - t.exp(-p.high / scale)) / (p.high - p.low)
    ),
}


def _in_exponential(p: Any, q: Any) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _in_gamma(p: Any, q: Any) -> Tensor:
    shape = q.concentration
    constant = shape * q.rate.log() - t.lgamma(shape)
    return constant + (shape - 1) * _LOG[_family(p)](p) - q.rate * p.mean


def _in_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.pow(2)
    away = p.variance + (p.mean - q.loc).pow(2)
    return -0.5 * (2 * math.pi * variance).log() - 0.5 * away / variance


def _in_gumbel(p: Any, q: Any) -> Tensor:
    transform = _LAPLACE[_family(p)](p, q.scale)
    away = (p.mean - q.loc) / q.scale
    return -q.scale.log() - away - t.exp(q.loc / q.scale) * transform


def _in_uniform(p: Any, q: Any) -> Tensor:
    return -(q.high - q.low).log() + 0 * p.mean


def _in_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return p.mean * q.logits + t.log1p(-q.probs) + q._log_scale()


def _in_beta(p: Any, q: Any) -> Tensor:
    one, zero = q.concentration1, q.concentration0
    constant = t.lgamma(one + zero) - t.lgamma(one) - t.lgamma(zero)
    rest = _log_uniform(1 - p.high, 1 - p.low)
    return constant + (one - 1) * _LOG[_family(p)](p) + (zero - 1) * rest


def _in_pareto(p: Any, q: Any) -> Tensor:
    constant = q.alpha.log() + q.alpha * q.scale.log()
    return constant - (q.alpha + 1) * _LOG[_family(p)](p)


def _family(p: Any) -> type:
    return next(kind for kind in type(p).__mro__ if kind in _LOG or kind in _LAPLACE)


def _unit_beyond(p: Any, q: Any) -> Tensor:
    return (q.low > 0) | (q.high < 1)


def _beyond_unit(p: Any, q: Any) -> Tensor:
    return (p.low < 0) | (p.high > 1)


def _below_zero(p: Any, q: Any) -> Tensor:
    return p.low < 0


def _below_scale(p: Any, q: Any) -> Tensor:
    return p.low < q.scale


def _without_mean(p: Any, q: Any) -> Tensor:
    return p.alpha <= 1


def _without_variance(p: Any, q: Any) -> Tensor:
    return p.alpha <= 2


Outside = Callable[[Any, Any], Tensor]

# (p, q) -> (expected log density of q under p, where the divergence is infinite).
_PAIRS: Final[dict[tuple[type, type], tuple[Outside, Outside | None]]] = {
    (Beta, ContinuousBernoulli): (_in_continuous_bernoulli, None),
    (Beta, Exponential): (_in_exponential, None),
    (Beta, Gamma): (_in_gamma, None),
    (Beta, Normal): (_in_normal, None),
    (Beta, Uniform): (_in_uniform, _unit_beyond),
    (ContinuousBernoulli, Exponential): (_in_exponential, None),
    (ContinuousBernoulli, Normal): (_in_normal, None),
    (ContinuousBernoulli, Uniform): (_in_uniform, _unit_beyond),
    (Exponential, Gamma): (_in_gamma, None),
    (Exponential, Gumbel): (_in_gumbel, None),
    (Exponential, Normal): (_in_normal, None),
    (Gamma, Exponential): (_in_exponential, None),
    (Gamma, Gumbel): (_in_gumbel, None),
    (Gamma, Normal): (_in_normal, None),
    (Gumbel, Normal): (_in_normal, None),
    (Laplace, Normal): (_in_normal, None),
    (Normal, Gumbel): (_in_gumbel, None),
    (Pareto, Exponential): (_in_exponential, _without_mean),
    (Pareto, Gamma): (_in_gamma, _without_mean),
    (Pareto, Normal): (_in_normal, _without_variance),
    (Uniform, Beta): (_in_beta, _beyond_unit),
    (Uniform, ContinuousBernoulli): (_in_continuous_bernoulli, _beyond_unit),
    (Uniform, Exponential): (_in_exponential, _below_zero),
    (Uniform, Gamma): (_in_gamma, _below_zero),
    (Uniform, Gumbel): (_in_gumbel, None),
    (Uniform, Normal): (_in_normal, None),
    (Uniform, Pareto): (_in_pareto, _below_scale),
}
_UNIT: Final = (Beta, ContinuousBernoulli)
# p -> the families that are zero where p is not.
_INFINITE: Final[dict[type, tuple[type, ...]]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (*_UNIT, Pareto, Uniform),
    Gamma: (*_UNIT, Pareto, Uniform),
    Gumbel: (*_UNIT, Exponential, Gamma, Pareto, Uniform),
    Laplace: (*_UNIT, Exponential, Gamma, Pareto, Uniform),
    Normal: (*_UNIT, Exponential, Gamma, Pareto, Uniform),
    Pareto: (*_UNIT, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p: Any, q: Any) -> Tensor:
    return t.full_like(p.mean, math.inf)


def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _finite(expected: Outside, outside: Outside | None) -> Outside:
    def divergence(p: Any, q: Any) -> Tensor:
        found = -p.entropy() - expected(p, q)
        return found if outside is None else t.masked_fill(found, outside(p, q), math.inf)

    return divergence


def register_crossed(register: Callable[[type, type], Callable[[Any], Any]]) -> None:
    """Put all pairs into the registry."""
    register(Bernoulli, Poisson)(_bernoulli_poisson)
    for (p, q), (expected, outside) in _PAIRS.items():
        register(p, q)(_finite(expected, outside))
    for p, families in _INFINITE.items():
        for q in families:
            register(p, q)(_infinite)
