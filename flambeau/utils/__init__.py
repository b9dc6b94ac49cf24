"""torch.utils: data loading, hooks.

Keeps     modules are imported when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_MODULES = (
    "_pytree",
    "backcompat",
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "dlpack",
    "hooks",
    "model_zoo",
    "tensorboard",
)


_FUNCTIONS = {"swap_tensors": "swapping"}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return getattr(import_module(f"flambeau.utils.{_FUNCTIONS[name]}"), name)
    if name in _MODULES:
        where = f"flambeau.utils.{name}"
        try:
            return import_module(where)
        except ModuleNotFoundError as error:
            if error.name != where:
                raise
    raise missing_name(__name__, name, _MODULES)


def __dir__() -> list[str]:
    return sorted((*_MODULES, *_FUNCTIONS))
