"""torch.nn: modules by name, made when a program first asks for one.

Keeps     importing this imports no layer: names are looked up in the table of nn.modules.
Touches   nn.modules, nn.parameter, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import full_when_listed, missing_name

_SUBMODULES = ("attention", "functional", "init", "modules", "parallel", "parameter", "utils")
_PARAMETERS = ("Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter")


def __getattr__(name: str) -> Any:
    found: Any
    if name in _SUBMODULES:
        try:
            found = import_module(f"flambeau.nn.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"flambeau.nn.{name}":
                raise
            raise missing_name(__name__, name, __dir__()) from None
    elif name in _PARAMETERS:
        found = getattr(import_module("flambeau.nn.parameter"), name)
    elif name == "DataParallel":
        found = import_module("flambeau.nn.parallel").DataParallel
    else:
        modules = import_module("flambeau.nn.modules")
        if name not in modules.WHERE:
            raise missing_name(__name__, name, __dir__())
        found = getattr(modules, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    modules = import_module("flambeau.nn.modules")
    return sorted({*_SUBMODULES, *_PARAMETERS, "DataParallel", *modules.WHERE})


full_when_listed(__name__)
