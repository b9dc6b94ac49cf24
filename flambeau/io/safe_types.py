"""Which types a file may ask for, beyond those that are always made.

Keeps     nothing a file names is imported: a type is made only where the program has it already.
Touches   sys.modules.
Not here  the types that are always made (reading.py)."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_ADDED: Final[dict[str, Any]] = {}
_LOCK: Final = threading.Lock()
_TRUE: Final = ("1", "y", "yes", "true")


def _named(entry: Any) -> tuple[str, Any]:
    """(the full name a file has for it, the object)."""
    if isinstance(entry, tuple):
        made, name = entry
        return name, made
    if is_functional(entry):
        return f"torch.nn.functional.{entry.__name__}", entry
    module = entry.__module__
    if module.startswith("flambeau."):
        module = "torch" + module.removeprefix("flambeau")
    return f"{module}.{entry.__qualname__}", entry


def torch_module(kind: type) -> str:
    """Where torch has a class of ours, which names of classes in files say."""
    module = kind.__module__
    if module == "flambeau.nn.modules.parameter_container":
        return "torch.nn.modules.container"
    if module in ("flambeau.optim.cycles", "flambeau.optim.joined", "flambeau.optim.schedule"):
        return "torch.optim.lr_scheduler"
    return "torch" + module.removeprefix("flambeau")


def is_functional(obj: Any) -> bool:
    """Whether it is a function of nn.functional, which a layer may hold."""
    from flambeau.nn import functional

    name = getattr(obj, "__name__", None)
    return isinstance(name, str) and getattr(functional, name, None) is obj


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files ask for these classes and functions, each alone or with the name it has there."""
    with _LOCK:
        _ADDED.update(map(_named, safe_globals))


def get_safe_globals() -> list[Any]:
    """What has been added."""
    return list(_ADDED.values())


def clear_safe_globals() -> None:
    """Forget what has been added."""
    _ADDED.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """add_safe_globals for a while."""
    before = dict(_ADDED)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _ADDED.clear()
        _ADDED.update(before)


def added(module: str, name: str) -> Any:
    """What the program has added under a file's name, or None."""
    return _ADDED.get(f"{module}.{name}")


def weights_only_now(given: bool | None) -> bool:
    """Whether a call of load makes plain types only: torch's default and environment variables."""
    forced = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    free = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if forced and free:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if forced:
        return True
    return not free if given is None else given


def module_class(module: str, name: str) -> Any:
    """The layer, model, optimizer, schedule or function of nn.functional that a file of whole
    objects names, where the program has it already; None otherwise."""
    from flambeau.nn.modules.module import Module
    from flambeau.optim.optimizer import Optimizer
    from flambeau.optim.schedule import LRScheduler

    if module == "torch" or module.startswith("torch."):
        from importlib import import_module
        from importlib.util import find_spec

        own = "flambeau" + module.removeprefix("torch")
        if module == "torch._C._nn":  # where PyTorch's own functions of nn.functional are made
            own = "flambeau.nn.functional"
        if not own.startswith(("flambeau.nn.", "flambeau.optim.")) or find_spec(own) is None:
            return None
        owner: Any = import_module(own)
    else:
        owner = sys.modules.get(module)
    found = owner
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, (Module, Optimizer, LRScheduler)):
        return found
    is_function = owner is not None and owner.__name__ == "flambeau.nn.functional"
    return found if is_function and callable(found) else None
