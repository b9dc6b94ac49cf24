"""biject_to and transform_to: maps from all numbers onto a constrained space.

Keeps     a registry from a constraint's class to what makes its map; users may add to it.
Touches   constraints, transforms.
Not here  the maps (transforms.py, vector_transforms.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.distributions import constraints, transforms, vector_transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Constraint -> map onto its region."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(
        self, constraint: Any, factory: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """Tell what makes the map for a constraint's class; a decorator without `factory`."""
        if factory is None:
            return functools.partial(self.register, constraint)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The map for a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    def register(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


def _register_joined(onto: ConstraintRegistry) -> None:
    """Constraints made of others: the map is made of the others' maps in the same registry."""

    @onto.register(constraints.independent)
    def _independent(constraint: Any) -> Any:
        base = onto(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @onto.register(constraints.cat)
    def _cat(constraint: Any) -> Any:
        parts = [onto(each) for each in constraint.cseq]
        return vector_transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @onto.register(constraints.stack)
    def _stack(constraint: Any) -> Any:
        parts = [onto(each) for each in constraint.cseq]
        return vector_transforms.StackTransform(parts, constraint.dim)


_register_joined(biject_to)
_register_joined(transform_to)


@_both(constraints.real)
def _identity(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any) -> Any:
    above = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), above])


@_both(constraints.less_than)
def _below(constraint: Any) -> Any:
    below = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), below])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    scaled = transforms.AffineTransform(loc=low, scale=high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scaled])


@biject_to.register(constraints.simplex)
def _biject_simplex(constraint: Any) -> Any:
    return vector_transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_simplex(constraint: Any) -> Any:
    return vector_transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: Any) -> Any:
    return vector_transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: Any) -> Any:
    return vector_transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> Any:
    return vector_transforms.CorrCholeskyTransform()
