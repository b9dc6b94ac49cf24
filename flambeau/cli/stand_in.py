"""Serves `import torch`, `import torch.nn as nn`, `from torch.utils.data import ...` by flambeau.

Keeps     torch.x is flambeau.x, the very same module object; once the stand-in is there, real
          torch cannot be imported in this process, nor in processes that it starts by spawning.
Touches   sys.meta_path and sys.modules; for a whole program also sys.path and PYTHONPATH.
Not here  running a script (run.py), what a missing name says (base/missing.py)."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from flambeau.base.errors import helped
from flambeau.base.missing import missing_module

# A folder whose only package is a `torch` that hands over to flambeau: what a spawned process
# finds, for which the finder below has not been installed yet.
PATH = Path(__file__).resolve().parent / "path"


def served_name(name: str) -> str | None:
    """The flambeau module behind a torch module's name, or None where `name` is not torch's.

    >>> served_name("torch.nn.functional"), served_name("torchvision")
    ('flambeau.nn.functional', None)
    """
    if name == "torch" or name.startswith("torch."):
        return "flambeau" + name[len("torch") :]
    if name == "functorch":  # PyTorch's older name of torch.func, a package beside it
        return "flambeau.func"
    return None


class _Loader(Loader):
    """Hands the import system a flambeau module in place of a new one."""

    def __init__(self, served: str) -> None:
        self.served = served
        self.own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.served)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put torch's spec on it; the module stays flambeau's.
        module.__spec__ = self.own_spec


class _Finder:
    """Finds torch and everything below it in flambeau, before anybody else is asked."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        served = served_name(name)
        if served is None:
            return None
        own = importlib.util.find_spec(served)
        if own is not None:
            is_package = own.submodule_search_locations is not None
            return ModuleSpec(name, _Loader(served), origin=own.origin, is_package=is_package)
        if _asked_by_import():
            raise missing_module(name, _modules_beside(served))
        return None


def _asked_by_import() -> bool:
    """Whether an import statement looks for the module, which deserves a message that helps;
    `importlib.util.find_spec` asks whether it exists, and is told None."""
    frame = sys._getframe(2).f_back
    return frame is not None and frame.f_code.co_name == "_find_and_load_unlocked"


def _modules_beside(served: str) -> list[str]:
    parent = importlib.import_module(served.rpartition(".")[0])
    return [found.name for found in pkgutil.iter_modules(getattr(parent, "__path__", None) or [])]


def as_torch() -> ModuleType:
    """Serve every later `import torch` of this process by flambeau; returns flambeau.

    Raises   RuntimeError if real torch was imported before: names that other modules took from
             it would go on meaning real torch, and two libraries' tensors would meet.
    """
    flambeau = importlib.import_module("flambeau")
    present = sys.modules.get("torch")
    if present is not None and present is not flambeau and not _is_own_shim(present):
        raise RuntimeError(
            helped(
                "flambeau cannot stand in for torch: real torch is already imported here",
                given=f"torch {getattr(present, '__version__', '?')} from "
                f"{getattr(present, '__file__', '?')}",
                expected="a process in which nothing has imported torch before: what took names "
                "from it would keep real torch's",
                fix="call flambeau.as_torch() before the first import of torch or of a package "
                "that imports it, or use `python -m flambeau run SCRIPT`",
            )
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules["torch"] = flambeau
    flambeau.__name__ = "torch"  # libraries that patch torch look for names under its own
    for kind in (flambeau.Tensor, flambeau.Size, flambeau.dtype, flambeau.device):
        kind.__module__ = "torch"  # what programs print
    return flambeau


def _is_own_shim(module: ModuleType) -> bool:
    origin = getattr(module, "__file__", None)
    return origin is not None and Path(origin).is_relative_to(PATH)


def serve_started_processes() -> None:
    """Let processes that this one starts find flambeau as torch, spawned workers and scripts."""
    own = str(PATH)
    if own not in sys.path:
        sys.path.insert(1, own)  # behind the script's folder; spawned processes get a copy
    inherited = os.environ.get("PYTHONPATH", "")
    if own not in inherited.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (own, inherited)))
