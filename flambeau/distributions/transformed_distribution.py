"""Distributions made of others: TransformedDistribution, Independent, MixtureSameFamily.

Keeps     log_prob goes back through the transforms, sample forward.
Touches   distribution, transforms, constraints.
Not here  the transforms (transforms.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.transforms import ComposeTransform, Transform
from flambeau.distributions.utils import sum_rightmost
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The image of a distribution under transforms."""

    arg_constraints: dict[str, Any] = {}

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: Any = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(each, Transform) for each in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = tuple(base_distribution.batch_shape + base_distribution.event_shape)
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {base_shape}."
            )
        forward_shape = tuple(transform.forward_shape(base_shape))
        expanded = tuple(transform.inverse_shape(forward_shape))
        if base_shape != expanded:
            batch = expanded[: len(expanded) - base_event_dim]
            base_distribution = base_distribution.expand(batch)
        taken = transform.domain.event_dim - base_event_dim
        if taken > 0:
            base_distribution = Independent(base_distribution, taken)
        self.base_dist = base_distribution
        event_dim = transform.codomain.event_dim + max(
            base_event_dim - transform.domain.event_dim, 0
        )
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(TransformedDistribution, _instance)
        transform = ComposeTransform(self.transforms)
        shape = transform.inverse_shape(tuple(batch_shape) + tuple(self.event_shape))
        base_batch = tuple(shape)[: len(shape) - len(self.base_dist.event_shape)]
        made.base_dist = self.base_dist.expand(base_batch)
        return self._expanded(TransformedDistribution, batch_shape, made, kept=("transforms",))

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """Image of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        if len(self.event_shape) > support.event_dim:
            support = constraints.independent(support, len(self.event_shape) - support.event_dim)
        return support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """As the base's."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        found: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            determinant = transform.log_abs_det_jacobian(x, y)
            found = found - sum_rightmost(determinant, event_dim - transform.domain.event_dim)
            y = x
        rest = event_dim - len(self.base_dist.event_shape)
        return found + sum_rightmost(self.base_dist.log_prob(y), rest)

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotonize_cdf(value))
        for transform in self.transforms:
            value = transform(value)
        return value


class Independent(Distribution):
    """A distribution whose last batch dims belong to the event."""

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: Any = None
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        shape = tuple(batch) + tuple(base_distribution.event_shape)
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        cut = len(shape) - event_dim
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Independent, _instance)
        taken = tuple(self.event_shape)[: self.reinterpreted_batch_ndims]
        made.base_dist = self.base_dist.expand(tuple(batch_shape) + taken)
        kept = ("reinterpreted_batch_ndims",)
        return self._expanded(Independent, batch_shape, made, kept=kept)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """As the base's."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """As the base's, where no dim was taken over."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """The base's, over the larger event."""
        found = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            found = constraints.independent(found, self.reinterpreted_batch_ndims)
        return found

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        found = self.base_dist.log_prob(value)
        return sum_rightmost(found, self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture of the members of a batch, by a Categorical over its last dim."""

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: Any = None
    ) -> None:
        from flambeau.distributions.discrete import Categorical

        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions."
                "Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions."
                "Distribution"
            )
        mixture_batch = tuple(mixture_distribution.batch_shape)
        component_batch = tuple(component_distribution.batch_shape)[:-1]
        for one, other in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({component_batch})"
                )
        self._num_component = mixture_distribution.logits.shape[-1]
        if self._num_component != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({self._num_component}) does not equal "
                "`component_distribution.batch_shape[-1]` "
                f"({component_distribution.batch_shape[-1]})"
            )
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("_mixture_distribution", "_component_distribution")
        made = self._get_checked_instance(MixtureSameFamily, _instance)
        shape = Size(batch_shape)
        for name, wide in zip(names, (shape, (*shape, self._num_component)), strict=True):
            setattr(made, name, getattr(self, name).expand(wide))
        made._num_component, made._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(made, shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    @constraints.dependent_property
    def support(self) -> Any:
        """The components'."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """Which component is drawn."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    def _probs(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(tuple(probs.shape) + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return t.sum(self._probs() * self.component_distribution.mean, -1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        probs, dim = self._probs(), -1 - self._event_ndims
        inner = t.sum(probs * self.component_distribution.variance, dim)
        apart = self.component_distribution.mean - t.unsqueeze(self.mean, dim)
        return inner + t.sum(probs * apart.pow(2.0), dim)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        found = self.component_distribution.log_prob(t.unsqueeze(x, -1 - self._event_ndims))
        weights = t.log_softmax(self.mixture_distribution.logits, -1)
        return t.logsumexp(found + weights, -1)

    def cdf(self, x: Tensor) -> Tensor:
        found = self.component_distribution.cdf(t.unsqueeze(x, -1 - self._event_ndims))
        return t.sum(found * self.mixture_distribution.probs, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            sample_len, batch_len = len(sample_shape), len(self.batch_shape)
            at = sample_len + batch_len
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            ones = (1,) * (self._event_ndims + 1)
            index = chosen.reshape(tuple(chosen.shape) + ones)
            lead = (1,) * at
            index = index.repeat((*lead, 1, *tuple(self.event_shape)))
            return t.gather(drawn, at, index).squeeze(at)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
