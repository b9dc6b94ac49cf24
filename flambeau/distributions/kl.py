"""Kullback-Leibler divergences: the registry and the closed forms.

Keeps     the most specific registered pair of classes is used, as torch chooses it.
Touches   the distributions.
Not here  pairs of different families (cross_kl.py), the distributions themselves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any

from flambeau.distributions.continuous import Cauchy, Gumbel, Laplace, Uniform
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.counts import Binomial, Geometric, Poisson
from flambeau.distributions.cross_kl import register_crossed
from flambeau.distributions.discrete import Bernoulli, Categorical, OneHotCategorical
from flambeau.distributions.distribution import Distribution, ExponentialFamily
from flambeau.distributions.gamma import Beta, Dirichlet, Exponential, Gamma
from flambeau.distributions.half import HalfNormal
from flambeau.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from flambeau.distributions.multivariate_normal import MultivariateNormal, squared_distance
from flambeau.distributions.normal import Normal
from flambeau.distributions.powers import Pareto
from flambeau.distributions.transformed_distribution import Independent, TransformedDistribution
from flambeau.distributions.utils import euler_constant, sum_rightmost
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_FOUND: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorator: the function gives the divergence for this pair of classes, which need not be
    Distributions: libraries register interfaces of their own."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return register


@total_ordering
class _Match:
    """A pair of classes, ordered by how specific it is."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for mine, theirs in zip(self.types, other.types, strict=True):
            if not issubclass(mine, theirs):
                return False
            if mine is not theirs:
                break
        return True

    __hash__ = None  # type: ignore[assignment]


def _dispatch(type_p: type, type_q: type) -> Any:
    pairs = [
        (sup_p, sup_q)
        for sup_p, sup_q in _KL_REGISTRY
        if issubclass(type_p, sup_p) and issubclass(type_q, sup_q)
    ]
    if not pairs:
        return NotImplemented
    left_p, left_q = min(_Match(*pair) for pair in pairs).types
    right_q, right_p = min(_Match(*reversed(pair)) for pair in pairs).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Expected log p - log q under p.

    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _FOUND:
        _FOUND[key] = _dispatch(*key)
    function = _FOUND[key]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type "
            f"{q.__class__.__name__}"
        )
    return function(p, q)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (t.softplus(-q.logits) - t.softplus(-p.logits))
    one = t.masked_fill(one, q.probs == 0, math.inf)
    one = t.masked_fill(one, p.probs == 0, 0)
    two = (1 - p.probs) * (t.softplus(q.logits) - t.softplus(p.logits))
    two = t.masked_fill(two, q.probs == 1, math.inf)
    return one + t.masked_fill(two, p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    one = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    two = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    three = (p.concentration1 - q.concentration1) * t.digamma(p.concentration1)
    four = (p.concentration0 - q.concentration0) * t.digamma(p.concentration0)
    return one - two + three + four + (sum_q - sum_p) * t.digamma(sum_p)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    found = p.total_count * (
        p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    )
    return t.masked_fill(found, p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    found = p.probs * (p.logits - q.logits)
    shape = tuple(found.shape)
    found = t.masked_fill(found, t.expand(q.probs == 0, shape), math.inf)
    return t.masked_fill(found, t.expand(p.probs == 0, shape), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    one = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return one - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    scales = p._log_scale() - q._log_scale()
    rest = t.log1p(-p.probs) - t.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + scales + rest


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    sum_p = p.concentration.sum(-1)
    sum_q = q.concentration.sum(-1)
    one = sum_p.lgamma() - sum_q.lgamma()
    two = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slope = p.concentration.digamma() - t.unsqueeze(sum_p.digamma(), -1)
    return one - two + ((p.concentration - q.concentration) * slope).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    from flambeau.autograd import grad

    of_p = [each.detach().requires_grad_() for each in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = grad(normalizer.sum(), of_p, create_graph=True)
    found = q._log_normalizer(*of_q) - normalizer
    for one, other, gradient in zip(of_p, of_q, gradients, strict=True):
        found = found - sum_rightmost((other - one) * gradient, len(q.event_shape))
    return found


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    one = q.concentration * (p.rate / q.rate).log()
    two = t.lgamma(q.concentration) - t.lgamma(p.concentration)
    three = (p.concentration - q.concentration) * t.digamma(p.concentration)
    return one + two + three + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    moved = q.loc / q.scale
    own = p.loc / q.scale
    one = ratio.log() - moved + own
    two = ratio * euler_constant
    three = t.exp(moved + t.lgamma(1 + ratio) - own)
    return -one + two + three - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - t.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc).abs()
    one, two = -ratio.log(), apart / q.scale
    return one + two + ratio * t.exp(-apart / p.scale) - 1


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    from flambeau import linalg

    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    one = q._half_log_determinant() - p._half_log_determinant()
    size = p.event_shape[0]
    factor_q, factor_p = q.scale_tril, p.scale_tril
    solved = linalg.solve_triangular(factor_q, factor_p, upper=False)
    two = solved.pow(2).sum((-2, -1))
    three = squared_distance(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return one + 0.5 * (two + three - size)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event "
            "shapes cannot be computed"
        )
    precision, away = q.precision_matrix, t.unsqueeze(q.loc - p.loc, -1)
    trace = (precision * p.covariance_matrix).sum((-2, -1))
    distance = t.matmul(away.mT, t.matmul(precision, away)).squeeze(-1).squeeze(-1)
    determinants = q._half_log_determinant() - p._half_log_determinant()
    return determinants + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    apart = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + apart - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    alphas = q.alpha / p.alpha
    found = q.alpha * ratio.log() - alphas.log() + alphas - 1
    return t.masked_fill(found, p.support.lower_bound < q.support.lower_bound, math.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return t.masked_fill(found, (q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    found = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(found, p.reinterpreted_batch_ndims)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    apart = p.loc - q.loc
    ratio = p.scale / q.scale
    away = apart / p.scale
    one = t.log(ratio)
    two = math.sqrt(2 / math.pi) * p.scale * t.exp(-0.5 * away.pow(2))
    three = apart * t.erf(math.sqrt(0.5) * away)
    constant = 0.5 * math.log(0.5 * math.pi) + 0.5
    return -one + (two + three) / q.scale - constant


register_crossed(register_kl)
