"""torch.nn.utils: gradients clipped, parameters as one vector, reparametrisations.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from flambeau.base.missing import missing_name

_FILES: dict[str, tuple[str, ...]] = {
    "clip_grad": (
        "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
        "get_total_norm",
    ),
    "convert_parameters": ("parameters_to_vector", "vector_to_parameters"),
    "fusion": (
        "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
        "fuse_linear_bn_weights",
    ),
    "init": ("skip_init",),
    "spectral_norm": ("remove_spectral_norm", "spectral_norm"),
    "weight_norm": ("remove_weight_norm", "weight_norm"),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}
_MODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")


class _Package(ModuleType):
    """torch.nn.utils.weight_norm is a function, though a file has its name: importing the file
    must not put the module in the function's place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if _WHERE.get(name) == name and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    file = _WHERE.get(name, name if name in (*_MODULES, *_FILES) else None)
    if file is None:
        raise missing_name(__name__, name, __dir__())
    where = f"flambeau.nn.utils.{file}"
    try:
        module = import_module(where)
        found = getattr(module, name) if name in _WHERE else module
    except ModuleNotFoundError as error:
        if error.name != where:
            raise
        raise missing_name(__name__, name, __dir__()) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_WHERE, *_MODULES})
