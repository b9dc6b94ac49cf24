"""VonMises: angles around a direction.

Keeps     draws are made in float64 and are torch's for the same seed.
Touches   distribution, random.
Not here  Bessel functions (ops.special.bessel).
Source    Best and Fisher, Efficient simulation of the von Mises distribution, 1979."""

from __future__ import annotations

import math
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base import dtypes
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all, uniform_draws
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles in [-pi, pi), the denser around `loc` the greater `concentration` is."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(VonMises, batch_shape, _instance, "loc", "concentration")

    @property
    def mean(self) -> Tensor:
        """The direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """1 - the mean's distance from the circle's middle."""
        return 1 - t.special_i1e(self.concentration) / t.special_i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # log I0(k) is k + log i0e(k), which does not overflow.
        turned = self.concentration * (t.cos(value - self.loc) - 1)
        return turned - math.log(2 * math.pi) - t.special_i0e(self.concentration).log()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            return self._drawn(shape).to(self.loc.dtype)

    def _drawn(self, shape: tuple[int, ...]) -> Tensor:
        """Angles of a wrapped Cauchy variable, of which some are refused."""
        loc, kappa = self.loc.to(dtypes.float64), self.concentration.to(dtypes.float64)
        tau = 1 + t.sqrt(1 + 4 * kappa * kappa)
        rho = (tau - t.sqrt(2 * tau)) / (2 * kappa)
        # For tiny concentrations rho is lost to rounding: the first two terms of its series.
        proposal = t.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))
        angle = t.zeros(shape, dtype=dtypes.float64)
        is_done = t.zeros(shape, dtype=dtypes.bool_)
        while not is_done.all():
            turn, height, side = uniform_draws((3, *shape), loc).unbind()
            cosine = t.cos(math.pi * turn)
            found = (1 + proposal * cosine) / (proposal + cosine)
            bound = kappa * (proposal - found)
            accepted = (bound * (2 - bound) - height > 0) | (
                (bound / height).log() + 1 - bound >= 0
            )
            angle = t.where(accepted, (side - 0.5).sign() * t.acos(found), angle)
            is_done = is_done | accepted
        return t.remainder(angle + math.pi + loc, 2 * math.pi) - math.pi
