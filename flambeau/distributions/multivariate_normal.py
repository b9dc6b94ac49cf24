"""MultivariateNormal: normal variables with a covariance.

Keeps     everything is computed from the lower Cholesky factor; draws are torch's.
Touches   distribution, linalg.
Not here  independent normals (normal.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import lazy_property, standard_normal
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

__all__ = ["MultivariateNormal"]


def times_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of batches of matrices and vectors."""
    return t.matmul(matrix, t.unsqueeze(vector, -1)).squeeze(-1)


def squared_distance(factor: Tensor, away: Tensor) -> Tensor:
    """Squared distances in the metric of a covariance's lower factor."""
    from flambeau import linalg

    batch = queries.broadcast_shapes(tuple(factor.shape[:-2]), tuple(away.shape[:-1]))
    size = factor.shape[-1]
    if tuple(factor.shape[:-2]) == () and away.ndim > 1:  # one factor: all vectors at once
        columns = away.reshape((-1, size)).mT
        solved = linalg.solve_triangular(factor, columns, upper=False)
        return solved.pow(2).sum(0).reshape(tuple(away.shape[:-1]))
    wide = t.expand(factor, (*batch, size, size))
    column = t.unsqueeze(t.expand(away, (*batch, size)), -1)
    solved = linalg.solve_triangular(wide, column, upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _factor_of_precision(precision: Tensor) -> Tensor:
    """The covariance's lower factor from the precision matrix."""
    from flambeau import linalg

    flipped = linalg.cholesky(t.flip(precision, (-2, -1)))
    inverse = t.transpose(t.flip(flipped, (-2, -1)), -2, -1)
    eye = t.eye(precision.shape[-1], dtype=precision.dtype)
    return linalg.solve_triangular(inverse, eye, upper=False)


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The covariance's lower factor, from what the argument of this name is."""
    from flambeau import linalg

    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return linalg.cholesky(matrix)
    return _factor_of_precision(matrix)


# By these names libraries import them.
_batch_mv, _batch_mahalanobis = times_vector, squared_distance
_precision_to_scale_tril = _factor_of_precision


class ByFactor(Distribution):
    """Distributions computed from the lower Cholesky factor of a positive definite matrix."""

    _unbroadcasted_scale_tril: Tensor

    def _widened(self, matrix: Tensor) -> Tensor:
        return t.expand(matrix, (*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The matrix's lower Cholesky factor."""
        return self._widened(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The matrix."""
        factor = self._unbroadcasted_scale_tril
        return self._widened(t.matmul(factor, factor.mT))


class MultivariateNormal(ByFactor):
    """Normal variables of a mean and a covariance, a precision matrix or a lower factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: Any = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "scale_tril": scale_tril, "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }  # fmt: skip
        names = [name for name, matrix in given.items() if matrix is not None]
        if len(names) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, matrix = names[0], given[names[0]]
        if matrix.ndim < 2:
            extra = ", with optional leading batch dimensions"
            raise ValueError(f"{name} must be at least two-dimensional{extra}")
        size = loc.shape[-1]
        batch = queries.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        setattr(self, name, t.expand(matrix, (*batch, -1, -1)))
        self.loc = t.expand(loc, (*batch, size))
        super().__init__(Size(batch), Size((size,)), validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names, kept = self.arg_constraints, ("_unbroadcasted_scale_tril",)
        return self._expanded(MultivariateNormal, batch_shape, _instance, *names, kept=kept)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The covariance's inverse."""
        from flambeau import linalg

        factor = self._unbroadcasted_scale_tril
        eye = t.eye(factor.shape[-1], dtype=factor.dtype)
        inverse = linalg.solve_triangular(factor, t.expand(eye, tuple(factor.shape)), upper=False)
        return self._widened(t.matmul(inverse.mT, inverse))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return t.expand(found, (*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + times_vector(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = squared_distance(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_determinant()

    def _half_log_determinant(self) -> Tensor:
        return t.diagonal(self._unbroadcasted_scale_tril, 0, -2, -1).log().sum(-1)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        found = constant + self._half_log_determinant()
        return found if len(self._batch_shape) == 0 else t.expand(found, tuple(self._batch_shape))
