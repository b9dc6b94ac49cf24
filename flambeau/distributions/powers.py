"""Powers of simpler variables: Weibull, Pareto, Kumaraswamy.

Keeps     draws are torch's for the same seed.
Touches   transformed_distribution, element_transforms.
Not here  the variables they are powers of (continuous.py, gamma.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.continuous import Uniform
from flambeau.distributions.element_transforms import AffineTransform, ExpTransform, PowerTransform
from flambeau.distributions.gamma import Exponential
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import Transform
from flambeau.distributions.utils import broadcast_all, euler_constant
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["Kumaraswamy", "Pareto", "Weibull"]


class Weibull(TransformedDistribution):
    """A power of an exponential variable."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(t.ones_like(self.scale), validate_args=validate_args)
        transforms: list[Transform] = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Weibull, _instance)
        made.scale = t.expand(self.scale, tuple(batch_shape))
        made.concentration = t.expand(self.concentration, tuple(batch_shape))
        made.concentration_reciprocal = made.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        transforms = [
            PowerTransform(exponent=made.concentration_reciprocal),
            AffineTransform(loc=0, scale=made.scale),
        ]
        super(Weibull, made).__init__(base, transforms, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @property
    def mean(self) -> Tensor:
        return self.scale * t.exp(t.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        shape = self.concentration
        return self.scale * ((shape - 1) / shape) ** shape.reciprocal()

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration_reciprocal
        spread = t.exp(t.lgamma(1 + 2 * inverse)) - t.exp(2 * t.lgamma(1 + inverse))
        return self.scale.pow(2) * spread

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + t.log(self.scale * inverse) + 1


class Pareto(TransformedDistribution):
    """exp of an exponential variable, scaled."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms: list[Transform] = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Pareto, _instance)
        made.scale = t.expand(self.scale, tuple(batch_shape))
        made.alpha = t.expand(self.alpha, tuple(batch_shape))
        return super().expand(batch_shape, _instance=made)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Values from the scale on."""
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(TransformedDistribution):
    """A relative of the beta distribution with a closed form."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            t.full_like(self.concentration0, 0), t.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )  # fmt: skip
        transforms: list[Transform] = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Kumaraswamy, _instance)
        made.concentration1 = t.expand(self.concentration1, tuple(batch_shape))
        made.concentration0 = t.expand(self.concentration0, tuple(batch_shape))
        return super().expand(batch_shape, _instance=made)

    def _moment(self, order: int) -> Tensor:
        share = 1 + order / self.concentration1
        count = self.concentration0
        beta = t.lgamma(share) + t.lgamma(count) - t.lgamma(share + count)
        return count * t.exp(beta)

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        one, two = self.concentration1, self.concentration0
        found = one.reciprocal() * (-two).log1p() - (-one * two).log1p()
        return t.masked_fill(found, (two < 1) | (one < 1), math.nan).exp()

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - t.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        one = 1 - self.concentration1.reciprocal()
        two = 1 - self.concentration0.reciprocal()
        harmonic = t.digamma(self.concentration0 + 1) + euler_constant
        found = two + one * harmonic
        return found - t.log(self.concentration1) - t.log(self.concentration0)
