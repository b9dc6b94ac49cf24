"""What lies at a dotted path of a module.

Keeps     torch's errors.
Touches   nn.parameter.
Not here  traversal (module.py)."""

from __future__ import annotations

from typing import Any

from flambeau.nn.parameter import Parameter


def get_submodule(self: Any, target: str) -> Any:
    """The module at a dotted path."""
    module: Any = self
    for part in target.split(".") if target else []:
        if not hasattr(module, part):
            raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
        module = getattr(module, part)
        if not hasattr(module, "_modules"):
            raise AttributeError(f"`{part}` is not an nn.Module")
    return module


def set_submodule(self: Any, target: str, module: Any, strict: bool = False) -> None:
    """Put a module at a dotted path: where one is; a new one too, unless `strict`."""
    if target == "":
        raise ValueError("Cannot set the submodule without a target name!")
    if not hasattr(module, "_modules"):
        raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
    path, _, name = target.rpartition(".")
    parent = self.get_submodule(path)
    if strict and not hasattr(parent, name):
        raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
    if hasattr(parent, name) and not hasattr(getattr(parent, name), "_modules"):
        raise AttributeError(f"`{name}` is not an nn.Module")
    setattr(parent, name, module)


def get_parameter(self: Any, target: str) -> Any:
    """The parameter at a dotted path."""
    path, _, name = target.rpartition(".")
    module = self.get_submodule(path)
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    found = getattr(module, name)
    if not isinstance(found, Parameter):
        raise AttributeError(f"`{name}` is not an nn.Parameter")
    return found


def get_buffer(self: Any, target: str) -> Any:
    """The buffer at a dotted path."""
    path, _, name = target.rpartition(".")
    module = self.get_submodule(path)
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if name not in module._buffers:
        raise AttributeError(f"`{name}` is not a buffer")
    return module._buffers[name]
