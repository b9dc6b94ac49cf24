"""skip_init: a module whose parameters are left as memory is.

Keeps     no random numbers are drawn.
Touches   the module's own constructor, on the meta device where it takes one.
Not here  initial values (nn.init)."""

from __future__ import annotations

import inspect
from typing import Any

from flambeau.nn.modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """An instance of a module class with uninitialised parameters."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=device)
