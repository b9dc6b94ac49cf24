"""torch.optim: optimizers by name, found when a program first asks for one.

Keeps     importing this imports no optimizer.
Touches   the files beside it, lazily.
Not here  the arithmetic of the updates (ops.update)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import full_when_listed, missing_name

_FILES = {
    "Adadelta": "adadelta", "Adafactor": "adafactor", "Adagrad": "adagrad", "Adam": "adam",
    "AdamW": "adamw", "Adamax": "adamax", "ASGD": "asgd", "LBFGS": "lbfgs", "Muon": "muon",
    "NAdam": "nadam", "Optimizer": "optimizer", "RAdam": "radam", "RMSprop": "rmsprop",
    "SparseAdam": "sparse_adam",
    "Rprop": "rprop", "SGD": "sgd",
}  # fmt: skip
_MODULES = (*sorted(set(_FILES.values())), "lr_scheduler", "swa_utils")


def __getattr__(name: str) -> Any:
    file = _FILES.get(name, name if name in _MODULES else None)
    if file is None:
        raise missing_name(__name__, name, __dir__())
    where = f"flambeau.optim.{file}"
    try:
        module = import_module(where)
    except ModuleNotFoundError as error:
        if error.name != where:
            raise
        raise missing_name(__name__, name, __dir__()) from None
    found = getattr(module, name) if name in _FILES else module
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_FILES, *_MODULES})


full_when_listed(__name__)
