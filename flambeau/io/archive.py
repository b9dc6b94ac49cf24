"""Reading PyTorch's zip archives: a pickle, and an entry for each storage.

Keeps     a file that is not whole raises before anything is returned.
Touches   zipfile; unpickler.py.
Not here  files from before the zip format (legacy.py), what pickles may hold (unpickler.py).
Source    PyTorch's serialization format, version 3."""

from __future__ import annotations

import ctypes
import io
import mmap
import sys
import zipfile
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.base.layout import contiguous
from flambeau.engine.external import OVER_READ_BYTES, PAGE_BYTES, External, OutsideBlock
from flambeau.engine.storage import new_storage
from flambeau.io import settings
from flambeau.io.locations import restored
from flambeau.io.unpickler import Unpickler
from flambeau.tensor import creation
from flambeau.tensor.public.typed.storages import TypedStorage
from flambeau.tensor.tensor import new_tensor

MAGIC: Final = b"PK\x03\x04"
_SMALLEST: Final = 22  # bytes of a zip archive without entries
_LOCAL_HEADER: Final = 30  # bytes of an entry's header before its name


def swapped(raw: bytes, element: dtypes.dtype) -> bytes:
    """The same numbers in the other byte order."""
    size = element.itemsize // (2 if element.is_complex else 1)
    made = bytearray(len(raw))
    for place in range(size):
        made[place::size] = raw[size - 1 - place :: size]
    return bytes(made)


class Archive:
    """An open archive, and the storages that were read."""

    def __init__(self, file: Any, is_mapped: bool) -> None:
        self.file = file
        try:
            self.zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError) as error:
            file.seek(0, io.SEEK_END)
            is_short = file.tell() < _SMALLEST
            why = "not a ZIP archive" if is_short else "failed finding central directory"
            raise RuntimeError(
                helped(
                    f"PytorchStreamReader failed reading zip archive: {why}",
                    given=str(error),
                    expected="a whole file written by torch.save in its zip format",
                )
            ) from None
        names = self.zip.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl") or name == "data.pkl"]
        if not pickles:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        self.prefix = pickles[0].removesuffix("data.pkl")
        order = self.read("byteorder") if f"{self.prefix}byteorder" in names else None
        if order is None:
            order = settings.unsaid_order().encode()
        if order not in (b"little", b"big"):
            raise ValueError("Unknown endianness type: " + order.decode(errors="replace"))
        self.is_swapped = order.decode() != sys.byteorder
        self.mapped: Any = None
        self.is_shared = is_mapped and settings.get_default_mmap_options() == mmap.MAP_SHARED
        if is_mapped:
            whole = _mapped(file, self.is_shared)
            self.mapped = (ctypes.c_char * len(whole)).from_buffer(whole)

    def read(self, name: str) -> bytes:
        """The bytes of an entry."""
        try:
            return self.zip.read(self.prefix + name)
        except KeyError:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found"
            ) from None
        except (zipfile.BadZipFile, EOFError, OSError) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {error}") from None

    def storage(self, element: dtypes.dtype, key: str, count: int) -> TypedStorage:
        """Copied out of the file, or a window on it that keeps to itself what is written."""
        n_bytes = count * element.itemsize
        if self.mapped is not None and not self.is_swapped:
            return self._window(element, key, n_bytes)
        raw = self.read(f"data/{key}")
        _check_size(len(raw), n_bytes)
        raw = swapped(raw, element) if self.is_swapped else raw
        return TypedStorage(creation.from_bytes(raw, (count,), element))

    def _window(self, element: dtypes.dtype, key: str, n_bytes: int) -> TypedStorage:
        try:
            entry = self.zip.getinfo(f"{self.prefix}data/{key}")
        except KeyError:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file data/{key}: file not found"
            ) from None
        _check_size(entry.file_size, n_bytes)
        self.file.seek(entry.header_offset)
        header = self.file.read(_LOCAL_HEADER)
        lengths = [int.from_bytes(header[at : at + 2], "little") for at in (26, 28)]
        start = entry.header_offset + _LOCAL_HEADER + sum(lengths)
        given = contiguous((n_bytes // element.itemsize,), element)
        address = ctypes.addressof(self.mapped)
        block = OutsideBlock(address + start, n_bytes, self.mapped)
        room = address + len(self.mapped) + -len(self.mapped) % PAGE_BYTES
        near_end = room - block.address - n_bytes < OVER_READ_BYTES
        if (
            start % element.itemsize
            or start + n_bytes > len(self.mapped)
            or (near_end and not self.is_shared)
        ):
            return TypedStorage(creation.from_bytes(self.read(f"data/{key}"), given.shape, element))
        storage = new_storage(given, block)
        if self.is_shared:  # writes are the file's, and whoever has it mapped sees them: at once
            storage.external = External(self.mapped, 0)
        return TypedStorage(new_tensor(storage, given))


def _mapped(file: Any, is_shared: bool) -> mmap.mmap:
    """The file in memory: a copy on writing, or the file itself where that was asked for."""
    if is_shared:
        with open(file.name, "r+b") as writable:
            return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _check_size(have: int, want: int) -> None:
    if have != want:
        raise RuntimeError(
            f"record size ({have} bytes) does not match expected size ({want} bytes = {want} "
            "elements * 1 bytes/element) for dtype Byte"
        )


def load_archive(
    file: Any, map_location: Any, weights_only: bool, is_mapped: bool, **options: Any
) -> Any:
    """The object in an archive."""
    archive = Archive(file, is_mapped)
    storages: dict[str, TypedStorage] = {}
    with archive.zip:

        def storage(element: Any, key: str, location: str, count: int) -> TypedStorage:
            if key not in storages:
                storages[key] = restored(
                    archive.storage(element, key, count), location, map_location
                )
            return storages[key]

        data = io.BytesIO(archive.read("data.pkl"))
        unpickler = Unpickler(data, storage, weights_only, **options)
        made = unpickler.whole()
        unpickler.finish()
        return made
