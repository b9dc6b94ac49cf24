"""torch.backends: settings of libraries that torch calls, of which none is used here.

Keeps     what is set is remembered and changes nothing; what is asked is answered for this machine.
Touches   the files beside it, lazily.
Not here  the device's own switches (debug)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_MODULES = ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"flambeau.backends.{name}")
    raise missing_name(__name__, name, _MODULES)


def __dir__() -> list[str]:
    return sorted(_MODULES)
