"""LKJCholesky: Cholesky factors of random correlation matrices.

Keeps     draws are torch's: lengths of rows from Beta, directions from normal draws.
Touches   gamma (Beta), distribution.
Not here  covariances (multivariate_normal.py).
Source    Lewandowski, Kurowicka and Joe, 2009 (the onion method)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gamma import Beta
from flambeau.distributions.utils import broadcast_all
from flambeau.random.tensors import randn
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries
from flambeau.tensor.public.composed import diag_embed
from flambeau.tensor.public.statistics.gamma import mvlgamma

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower factors L with rows of length 1; their density grows with det(L L^T)^concentration."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: Any = None) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        element = self.concentration.dtype
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = t.clamp(t.arange(dim, dtype=element) - 1, min=0)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(LKJCholesky, _instance)
        batch = Size(batch_shape)
        made.dim = self.dim
        made.concentration = self.concentration.expand(batch)
        made._beta = self._beta.expand((*batch, self.dim))
        super(LKJCholesky, made).__init__(batch, self.event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def sample(self, sample_shape: Any = ()) -> Tensor:
        length = self._beta.sample(Size(sample_shape)).unsqueeze(-1)
        drawn = randn(self._extended_shape(sample_shape), dtype=length.dtype)
        below = drawn.tril(-1)
        direction = below / t.vector_norm(below, 2, (-1,), True)
        first = t.arange(self.dim)[:, None] == 0  # has no direction: nothing is below it
        found = t.sqrt(length) * t.masked_fill(direction, first, 0)
        tiny = queries.finfo(found.dtype).tiny
        rest = t.clamp(1 - (found * found).sum(-1), min=tiny).sqrt()
        return found + diag_embed(rest)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = t.diagonal(value, 0, -1, -2)[..., 1:]
        order = t.arange(2, self.dim + 1)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unscaled = (order * diagonal.log()).sum(-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        scale = 0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - t.lgamma(alpha) * n
        return unscaled - scale
