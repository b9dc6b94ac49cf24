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
from flambeau.io.settings import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from flambeau.io.writing import save

__all__ = [
    "MAP_LOCATION",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]  # fmt: skip

# What map_location may be, by the name under which annotations import it.
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | str | dict[str, str] | None


def _is_zipfile(f: Any) -> bool:
    """Whether a file begins as a zip archive; its position stays."""
    start = f.tell()
    found: bool = f.read(4) == b"PK\x03\x04"
    f.seek(start)
    return found


__getattr__ = module_getattr(__name__)
