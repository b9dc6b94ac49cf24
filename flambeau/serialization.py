"""torch.serialization: the names by which programs reach save, load and the list of safe types.

Keeps     only where things are.
Touches   io.
Not here  any logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from flambeau.base.missing import module_getattr
from flambeau.io.reading import get_unsafe_globals_in_checkpoint, load
from flambeau.io.safe_types import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from flambeau.io.writing import save

__all__ = [
    "MAP_LOCATION", "add_safe_globals", "clear_safe_globals", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save",
]  # fmt: skip

# What map_location may be, by the name under which annotations import it.
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | str | dict[str, str] | None

__getattr__ = module_getattr(__name__)
