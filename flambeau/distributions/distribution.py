"""Distribution: the base of all, with its checks of parameters and samples.

Keeps     torch's checks, sentences and repr; sample() records no gradients.
Touches   constraints, utils.
Not here  any one distribution."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.utils import lazy_property
from flambeau.tensor import Size, Tensor, functions

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """Base of probability distributions: a batch of independent ones over events of one shape."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args: Any = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether arguments are checked where the constructor does not say."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: Any = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with `validate_args=False` "
                "to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            is_lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if name not in self.__dict__ and is_lazy:
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch."""
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        """Shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """Parameter -> what it has to satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """Constraint that events satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """Expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """Likeliest value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """Expected squared distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """Root of the variance."""
        return functions.sqrt(self.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """n draws."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density or mass at a value."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of a value or less."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Value of which the probability of it or less is given."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along the first dim."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Expected -log_prob, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return functions.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Refuse what is no event of this distribution."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.ndim - len(self._event_shape)
        if tuple(value.shape[start:]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs "
                f"{self._event_shape}."
            )
        expected = Size((*self._batch_shape, *self._event_shape))
        for one, other in zip(reversed(value.shape), reversed(expected), strict=False):
            if 1 not in (one, other) and one != other:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _expanded(
        self, cls: Any, batch_shape: Any, _instance: Any, *names: str, kept: tuple[str, ...] = ()
    ) -> Any:
        """A copy of a larger batch: `names` are the parameters and inner distributions that follow
        the batch, where it has them, `kept` is taken over as it is."""
        made = self._get_checked_instance(cls, _instance)
        shape = Size(batch_shape)
        for name in kept:
            setattr(made, name, self.__dict__[name])
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                if isinstance(value, Distribution):
                    wider = value.expand(shape)
                else:
                    wider = functions.expand(
                        value, (*shape, *value.shape[len(self._batch_shape) :])
                    )
                setattr(made, name, wider)
        Distribution.__init__(made, shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Values along a new first dim before the batch's, expanded over them on demand."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return functions.expand(values, (-1, *self._batch_shape)) if expand else values

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{self.__class__.__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Distributions of exponential families, whose entropy follows from the log normalizer."""

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Entropy by the Bregman divergence of the log normalizer."""
        from flambeau.autograd import grad

        result: Any = -self._mean_carrier_measure
        parameters = [each.detach().requires_grad_() for each in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        gradients = grad(normalizer.sum(), parameters, create_graph=True)
        result = result + normalizer
        for parameter, gradient in zip(parameters, gradients, strict=True):
            inner = parameter * gradient
            extra = tuple(range(-len(self.event_shape), 0))
            result = result - (inner.sum(extra) if extra else inner)
        return result
