"""Constraints: what parameters and samples have to satisfy.

Keeps     `check` returns a bool tensor over the batch, events folded away by `event_dim` dims.
Touches   tensor, linalg where eigenvalues decide.
Not here  maps onto constrained spaces (constraint_registry.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flambeau.tensor import Tensor, functions
from flambeau.tensor.public import queries

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event lies in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other parameters; it cannot be checked by itself."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> Any:
        """Whether the region holds integers only."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> Any:
        """How many dims an event has."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint cannot be checked by itself."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a dependent constraint on its class."""

    def __init__(
        self, function: Any = None, *, is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:  # fmt: skip
        super().__init__(function)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(  # type: ignore[override]
        self, function: Callable[[Any], Any]
    ) -> _DependentProperty:
        return _DependentProperty(
            function, is_discrete=self._is_discrete, event_dim=self._event_dim
        )


class _IndependentConstraint(Constraint):
    """A constraint whose last batch dims belong to the event."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> Any:
        """As the base's."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """The base's and the dims taken over."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.ndim < count:
            expected = self.base_constraint.event_dim + count
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.ndim}")
        return _all_rightmost(result, count)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__[1:]}({self.base_constraint!r}, "
            f"{self.reinterpreted_batch_ndims})"
        )


def _all_rightmost(value: Tensor, count: int) -> Tensor:
    if not count:
        return value
    return functions.all(value.reshape((*value.shape[: value.ndim - count], -1)), -1)


class MixtureSameFamilyConstraint(Constraint):
    """The components' constraint, for each value of the mixture."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> Any:
        """As the components'."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """As the components'."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        apart = functions.unsqueeze(value, -1 - self.event_dim)
        result = self.base_constraint.check(apart)
        count = value.ndim - self.event_dim
        return functions.all(result.reshape((*result.shape[:count], -1)), -1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        is_boolean = (value == 0) | (value == 1)
        return functions.all(is_boolean, -1) & functions.eq(functions.sum(value, -1), 1)


class _Bounded(Constraint):
    """A constraint that shows its bounds."""

    names: ClassVar[tuple[str, ...]] = ()
    lower_bound: Any
    upper_bound: Any

    def __init__(self, *bounds: Any, **named: Any) -> None:
        given = {**dict(zip(self.names, bounds, strict=False)), **named}
        for name in self.names:
            setattr(self, name, given[name])
        super().__init__()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.names)
        return f"{self.__class__.__name__[1:]}({shown})"


def _whole(value: Tensor, inside: Tensor) -> Tensor:
    """Which of those inside are whole numbers: of integers, all."""
    return inside if value.dtype.category <= 1 else (value % 1 == 0) & inside


class _IntegerInterval(_Bounded):
    is_discrete = True
    names = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, (self.lower_bound <= value) & (value <= self.upper_bound))


class _IntegerGreaterThan(_Bounded):
    is_discrete = True
    names = ("lower_bound",)

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_Bounded):
    names = ("lower_bound",)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    names = ("lower_bound",)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    names = ("upper_bound",)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    names = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    names = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        near_one = functions.abs(functions.sum(value, -1) - 1) < 1e-6
        return functions.all(value >= 0, -1) & near_one


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return functions.all(x >= 0, -1) & (functions.sum(x, -1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_rightmost(functions.tril(value) == value, 2)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        lower = _all_rightmost(functions.tril(value) == value, 2)
        return lower & functions.all(functions.diagonal(value, 0, -2, -1) > 0, -1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = queries.finfo(value.dtype).eps * value.shape[-1] * 10
        norms = functions.vector_norm(value.detach(), 2, -1)
        unit = functions.all(functions.abs(norms - 1) <= tolerance, -1)
        return unit & lower_cholesky.check(value)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return functions.full(tuple(value.shape[:-2]), is_square)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square_check = super().check(value)
        if not bool(square_check.all()):
            return square_check
        return _all_rightmost(functions.isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        from flambeau import linalg

        symmetric_check = super().check(value)
        if not bool(symmetric_check.all()):
            return symmetric_check
        return functions.all(linalg.eigvalsh(value) >= 0, -1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        from flambeau import linalg

        symmetric_check = super().check(value)
        if not bool(symmetric_check.all()):
            return symmetric_check
        return functions.eq(linalg.cholesky_ex(value).info, 0)


class _Joined(Constraint):
    """Constraints of parts along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int) -> None:
        if not all(isinstance(each, Constraint) for each in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> Any:
        """Whether any part is."""
        return any(each.is_discrete for each in self.cseq)


class _Cat(_Joined):
    """Parts of given lengths, one after the other."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"Expected len(lengths) ({len(self.lengths)}) == len(cseq) ({len(self.cseq)})"
            )

    @property
    def event_dim(self) -> Any:
        """The largest of the parts'."""
        return max(each.event_dim for each in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        checks = []
        start = 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(functions.narrow(value, self.dim, start, length)))
            start += length
        return functions.cat(checks, self.dim)


class _Stack(_Joined):
    """Parts of one place each."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> Any:
        """The largest of the parts', and one for the dim itself where it lies among the event's."""
        dim = max(each.event_dim for each in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        parts = [functions.select(value, self.dim, n) for n in range(value.shape[self.dim])]
        checks = [each.check(part) for part, each in zip(parts, self.cseq, strict=True)]
        return functions.stack(checks, self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
