"""Settings of saving and loading that a program may make once for all.

Keeps     torch's defaults and the words in which it refuses others.
Touches   nothing; writing.py and archive.py ask.
Not here  the list of safe types (safe_types.py)."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final


class LoadEndianness(Enum):
    """In which order a number's bytes lie in files that do not say it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_SETTINGS: Final[dict[str, Any]] = {
    "endianness": None, "mmap": mmap.MAP_PRIVATE, "crc32": True, "skip": False,
}  # fmt: skip


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes in files that do not say it; None: little."""
    found: LoadEndianness | None = _SETTINGS["endianness"]
    return found


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Take the bytes of files that do not say their order to lie in this one."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _SETTINGS["endianness"] = endianness


def unsaid_order() -> str:
    """'little' or 'big': the order of bytes in files that do not say it."""
    found = _SETTINGS["endianness"]
    if found is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if found is LoadEndianness.BIG else "little"


def get_default_mmap_options() -> int:
    """mmap.MAP_PRIVATE: what is written to mapped tensors stays in memory."""
    found: int = _SETTINGS["mmap"]
    return found


def _set_mmap(flags: int) -> None:
    if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
        raise ValueError(
            "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
            f"mmap.MAP_SHARED, but got {flags}"
        )
    _SETTINGS["mmap"] = flags


class set_default_mmap_options:  # noqa: N801 - torch's name
    """How load(mmap=True) maps files, from now on or inside a with statement."""

    def __init__(self, flags: int) -> None:
        self.before = get_default_mmap_options()
        _set_mmap(flags)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _set_mmap(self.before)


def get_crc32_options() -> bool:
    """Whether checksums are asked for: they are always written."""
    found: bool = _SETTINGS["crc32"]
    return found


def set_crc32_options(compute_crc32: bool) -> None:
    """Kept for programs that ask; zip's checksums are written either way."""
    _SETTINGS["crc32"] = compute_crc32


@contextmanager
def skip_data(materialize_fake_tensors: bool = False) -> Iterator[None]:
    """Save room for tensors' bytes, but zeros instead of them.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """
    before = _SETTINGS["skip"]
    _SETTINGS["skip"] = True
    try:
        yield
    finally:
        _SETTINGS["skip"] = before


def skips_data() -> bool:
    """Whether zeros are saved."""
    found: bool = _SETTINGS["skip"]
    return found
