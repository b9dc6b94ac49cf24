"""torch.distributions: probability distributions, transforms, constraints, divergences.

Keeps     a family is imported when one of its names is used; torch's module paths are served.
Touches   the files beside it, lazily.
Not here  any distribution: the table says which file holds it."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from flambeau.base.missing import full_when_listed, missing_name

_FILES: dict[str, tuple[str, ...]] = {
    "continuous": ("Cauchy", "Gumbel", "Laplace", "StudentT", "Uniform"),
    "continuous_bernoulli": ("ContinuousBernoulli",),
    "correlations": ("LKJCholesky",),
    "counts": ("Binomial", "Geometric", "NegativeBinomial", "Poisson"),
    "discrete": (
        "Bernoulli", "Categorical", "Multinomial", "OneHotCategorical",
        "OneHotCategoricalStraightThrough",
    ),
    "distribution": ("Distribution", "ExponentialFamily"),
    "gamma": (
        "Beta", "Chi2", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma", "InverseGamma",
    ),
    "generalized_pareto": ("GeneralizedPareto",),
    "half": ("HalfCauchy", "HalfNormal"),
    "kl": ("kl_divergence", "register_kl"),
    "lowrank_multivariate_normal": ("LowRankMultivariateNormal",),
    "multivariate_normal": ("MultivariateNormal",),
    "normal": ("LogNormal", "LogisticNormal", "Normal"),
    "powers": ("Kumaraswamy", "Pareto", "Weibull"),
    "relaxed": ("RelaxedBernoulli", "RelaxedOneHotCategorical"),
    "constraint_registry": ("biject_to", "transform_to"),
    "transformed_distribution": ("Independent", "MixtureSameFamily", "TransformedDistribution"),
    "element_transforms": (
        "AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform",
        "PowerTransform", "SigmoidTransform", "SoftplusTransform", "TanhTransform",
    ),
    "transforms": ("ComposeTransform", "IndependentTransform", "Transform", "identity_transform"),
    "von_mises": ("VonMises",),
    "wishart": ("Wishart",),
    "vector_transforms": (
        "CatTransform", "CorrCholeskyTransform", "LowerCholeskyTransform",
        "PositiveDefiniteTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform",
        "StickBreakingTransform",
    ),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}
_MODULES = ("constraints", "utils")

# torch's modules that are files of another name here.
_TORCH_FILES: dict[str, str] = {
    "bernoulli": "discrete", "beta": "gamma", "binomial": "counts", "categorical": "discrete",
    "cauchy": "continuous", "chi2": "gamma", "dirichlet": "gamma", "exp_family": "distribution",
    "exponential": "gamma", "fishersnedecor": "gamma", "geometric": "counts",
    "gumbel": "continuous", "half_cauchy": "half", "half_normal": "half",
    "independent": "transformed_distribution", "inverse_gamma": "gamma",
    "kumaraswamy": "powers", "laplace": "continuous", "lkj_cholesky": "correlations",
    "log_normal": "normal",
    "logistic_normal": "normal", "mixture_same_family": "transformed_distribution",
    "multinomial": "discrete", "negative_binomial": "counts", "one_hot_categorical": "discrete",
    "pareto": "powers", "poisson": "counts", "relaxed_bernoulli": "relaxed",
    "relaxed_categorical": "relaxed", "studentT": "continuous", "uniform": "continuous",
    "weibull": "powers",
}  # fmt: skip


class _TorchFile(ModuleType):
    """A module of torch's under its own name: its names are those of the file that has them."""

    def __init__(self, name: str, file: str) -> None:
        super().__init__(f"{__name__}.{name}", f"torch.distributions.{name}")
        self.__spec__ = ModuleSpec(self.__name__, None)
        self._file = file

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(f"{__name__}.{self._file}"), name)

    def __dir__(self) -> list[str]:
        return dir(import_module(f"{__name__}.{self._file}"))


def _serve(name: str, file: str) -> ModuleType:
    return sys.modules.setdefault(f"{__name__}.{name}", _TorchFile(name, file))


for _name, _file in _TORCH_FILES.items():
    globals()[_name] = _serve(_name, _file)


def __getattr__(name: str) -> Any:
    found: Any
    if name in _WHERE:
        found = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    elif name in _MODULES or name in _FILES:
        return import_module(f"{__name__}.{name}")
    else:
        raise missing_name(__name__, name, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_WHERE, *_MODULES, *_FILES, *_TORCH_FILES})


__all__ = sorted(_WHERE)


full_when_listed(__name__)
