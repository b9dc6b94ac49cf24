"""LowRankMultivariateNormal: normal variables whose covariance is W W^T + D.

Keeps     no matrix of the variables' own size is factored: that of W's few columns is; draws are
          torch's for the same seed.
Touches   multivariate_normal, linalg.
Not here  full covariances (multivariate_normal.py).
Source    the Woodbury identity and the matrix determinant lemma."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.multivariate_normal import squared_distance, times_vector
from flambeau.distributions.utils import lazy_property, standard_normal
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal variables of covariance cov_factor cov_factor^T + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: Any = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        size = loc.shape[-1]
        if cov_factor.ndim < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m")
        if cov_diag.shape[-1:] != (size,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {loc.shape[-1:]}")
        leading = (loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        try:
            batch = queries.broadcast_shapes(*map(tuple, leading))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = t.expand(loc, (*batch, size))
        self.cov_factor = t.expand(cov_factor, (*batch, -1, -1))
        self.cov_diag = t.expand(cov_diag, (*batch, size))
        super().__init__(Size(batch), Size((size,)), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = self.arg_constraints
        return self._expanded(LowRankMultivariateNormal, batch_shape, _instance, *names)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def _capacity(self) -> Tensor:
        """Lower factor of I + W^T D^-1 W."""
        from flambeau import linalg

        inner = t.matmul(self._scaled_factor, self.cov_factor)
        return linalg.cholesky(inner + t.eye(inner.shape[-1], dtype=inner.dtype))

    @property
    def _scaled_factor(self) -> Tensor:
        """W^T D^-1."""
        return self.cov_factor.mT / t.unsqueeze(self.cov_diag, -2)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return t.matmul(self.cov_factor, self.cov_factor.mT) + self.cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The covariance's lower Cholesky factor."""
        from flambeau import linalg

        # The factor of a matrix near I, then scaled: variances of all sizes do no harm.
        root = t.unsqueeze(self.cov_diag.sqrt(), -1)
        scaled = self.cov_factor / root
        inner = t.matmul(scaled, scaled.mT) + t.eye(scaled.shape[-2], dtype=scaled.dtype)
        return root * linalg.cholesky(inner)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The covariance's inverse."""
        from flambeau import linalg

        solved = linalg.solve_triangular(self._capacity, self._scaled_factor, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - t.matmul(solved.mT, solved)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        common = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = standard_normal(shape, self.loc)
        return self.loc + times_vector(self.cov_factor, common) + self.cov_diag.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        common = squared_distance(self._capacity, times_vector(self._scaled_factor, away))
        distance = (away.pow(2) / self.cov_diag).sum(-1) - common
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_determinant()

    def _half_log_determinant(self) -> Tensor:
        common = t.diagonal(self._capacity, 0, -2, -1).log().sum(-1)
        return common + 0.5 * self.cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return constant + self._half_log_determinant()
