"""Wishart: positive definite matrices, as sums of squares of normal vectors are.

Keeps     everything is computed from the lower Cholesky factor of the scale; draws are torch's for
          the same seed, its second drawing of every matrix included.
Touches   distribution, gamma, multivariate_normal, linalg.
Not here  correlations (correlations.py).
Source    Smith and Hocking, Wishart variate generator, 1972 (Bartlett's decomposition)."""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import ExponentialFamily
from flambeau.distributions.gamma import Chi2
from flambeau.distributions.multivariate_normal import ByFactor, factor_of
from flambeau.distributions.utils import lazy_property, standard_normal
from flambeau.tensor import Size, Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries
from flambeau.tensor.public.composed import tril_indices
from flambeau.tensor.public.statistics.gamma import mvlgamma

__all__ = ["Wishart"]

_TRIES = 10


class Wishart(ByFactor, ExponentialFamily):
    """Sums of squares of `df` normal vectors of a covariance, a precision or a lower factor."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: Any = None,
    ) -> None:  # fmt: skip
        given = {
            "covariance_matrix": covariance_matrix, "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }  # fmt: skip
        names = [name for name, matrix in given.items() if matrix is not None]
        if len(names) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, matrix = names[0], given[names[0]]
        if matrix.ndim < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        batch, size = tuple(matrix.shape[:-2]), matrix.shape[-1]
        if isinstance(df, Tensor):
            batch = queries.broadcast_shapes(batch, tuple(df.shape))
            self.df = t.expand(df, batch)
        else:
            self.df = creation.tensor(df, dtype=matrix.dtype)
        if bool((self.df <= size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        setattr(self, name, t.expand(matrix, (*batch, -1, -1)))
        if bool((self.df < size).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(Size(batch), Size((size, size)), validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)
        self._dist_chi2 = self._squares(batch)

    def _squares(self, batch: tuple[int, ...]) -> Chi2:
        """What the factor's diagonal is drawn from: a degree of freedom less in each row."""
        size = self._event_shape[-1]
        rows = t.arange(size, dtype=self._unbroadcasted_scale_tril.dtype)
        return Chi2(df=t.unsqueeze(self.df, -1) - t.expand(rows, (*batch, size)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("df", "covariance_matrix", "precision_matrix", "scale_tril")
        made = self._expanded(
            Wishart, batch_shape, _instance, *names, kept=("_unbroadcasted_scale_tril",)
        )
        made._dist_chi2 = made._squares(tuple(made._batch_shape))
        return made

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The scale's inverse."""
        return self._widened(self._solved(t.eye(self._event_shape[-1], dtype=self.df.dtype)))

    def _solved(self, matrix: Tensor) -> Tensor:
        from flambeau.linalg.decompositions import cholesky_solve

        return cholesky_solve(matrix, self._unbroadcasted_scale_tril)

    def _beside_matrices(self, numbers: Tensor) -> Tensor:
        return numbers.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._beside_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        factor = t.where(factor <= 0, math.nan, factor)
        return self._beside_matrices(factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        scale = self.covariance_matrix
        diagonal = t.diagonal(scale, 0, -2, -1)
        outer = t.unsqueeze(diagonal, -1) * t.unsqueeze(diagonal, -2)
        return self._beside_matrices(self.df) * (scale.pow(2) + outer)

    def _drawn(self, sample_shape: Any) -> Tensor:
        size = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=queries.finfo(roots.dtype).eps)
        rows, columns = tril_indices(size, size, offset=-1)
        shape = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        below = t.zeros((*roots.shape, size), dtype=roots.dtype)
        below[..., rows, columns] = standard_normal(shape, roots)
        factor = t.matmul(self._unbroadcasted_scale_tril, roots.diag_embed() + below)
        return t.matmul(factor, factor.mT)

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Tensor:
        """Draws; torch draws those again that are positive definite, and so does this."""
        sample = self._drawn(Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        if not bool(again.any()):
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(_TRIES if max_try_correction is None else max_try_correction):
            drawn = self._drawn((int(again.sum()),))
            sample[again] = drawn
            singular = self._any_of_batch(t.logical_not(self.support.check(drawn)))
            again[again.clone()] = singular
            if not bool(again.any()):
                break
        return sample

    def _any_of_batch(self, found: Tensor) -> Tensor:
        dims = tuple(range(-len(self._batch_shape), 0))
        return found.amax(dims) if dims else found

    def log_prob(self, value: Tensor) -> Tensor:
        from flambeau import linalg

        if self._validate_args:
            self._validate_sample(value)
        df, size = self.df, self._event_shape[-1]
        distance = t.diagonal(self._solved(value), 0, -2, -1).sum(-1)
        return (
            -df * self._half_log_determinant()
            - mvlgamma(df / 2, p=size)
            + (df - size - 1) / 2 * linalg.slogdet(value).logabsdet
            - distance / 2
        )

    def _half_log_determinant(self) -> Tensor:
        """Half the logarithm of the determinant of twice the scale."""
        diagonal = t.diagonal(self._unbroadcasted_scale_tril, 0, -2, -1)
        return self._event_shape[-1] * math.log(2) / 2 + diagonal.log().sum(-1)

    def entropy(self) -> Tensor:
        df, size = self.df, self._event_shape[-1]
        lower = t.arange(size, dtype=df.dtype) / 2
        slope = t.digamma(t.unsqueeze(df / 2, -1) - lower).sum(-1)
        return (
            (size + 1) * self._half_log_determinant()
            + mvlgamma(df / 2, p=size)
            - (df - size - 1) / 2 * slope
            + df * size / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        from flambeau import linalg

        matrix, number = natural_params
        size = self._event_shape[-1]
        half = number + (size + 1) / 2
        determinant = size * math.log(2) - linalg.slogdet(-2 * matrix).logabsdet
        return half * determinant + mvlgamma(half, p=size)
