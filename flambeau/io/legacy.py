"""PyTorch's format from before its zip archives: four pickles, then the bytes of the storages.

Keeps     objects written one behind the other are read so; a short file raises.
Touches   pickle; unpickler.py.
Not here  zip archives (archive.py), what pickles may hold (unpickler.py).
Source    PyTorch's serialization format, version 1001."""

from __future__ import annotations

import ctypes
import pickle
import sys
from typing import Any, Final

from flambeau.io.archive import swapped
from flambeau.io.locations import restored
from flambeau.io.unpickler import Unpickler
from flambeau.tensor import creation
from flambeau.tensor.public.typed.storages import TypedStorage

MAGIC: Final = 0x1950A86A20F9469CFC6C
VERSION: Final = 1001
_COUNT_BYTES: Final = 8


def load_legacy(file: Any, map_location: Any, weights_only: bool, **options: Any) -> Any:
    """The next object in a file."""
    storages: dict[str, TypedStorage] = {}
    read: dict[str, TypedStorage] = {}

    def storage(element: Any, key: str, location: str, count: int) -> TypedStorage:
        if key not in storages:
            read[key] = TypedStorage(creation.from_bytes(b"", (count,), element))
            storages[key] = restored(read[key], location, map_location)
        return storages[key]

    def next_object() -> Any:
        return next_unpickler().whole()

    def next_unpickler() -> Unpickler:
        return Unpickler(file, storage, weights_only, **options)

    if next_object() != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = next_object()
    if version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    system = next_object()
    is_little = not isinstance(system, dict) or bool(system.get("little_endian", True))
    unpickler = next_unpickler()
    made = unpickler.whole()
    keys = next_object()
    for key in keys if isinstance(keys, list) else []:
        if key not in read:
            raise RuntimeError(
                f"storage {key!r} has bytes in the file, and no tensor is made of it"
            )
        _fill(read[key], file, is_swapped=is_little != (sys.byteorder == "little"))
    unpickler.finish()
    return made


def _fill(storage: TypedStorage, file: Any, is_swapped: bool) -> None:
    count = int.from_bytes(_exactly(file, _COUNT_BYTES), "little")
    if count != len(storage):
        raise RuntimeError(f"a storage of {len(storage)} elements has {count} in the file")
    raw = _exactly(file, storage.nbytes())
    if raw:
        raw = swapped(raw, storage.dtype) if is_swapped else raw
        ctypes.memmove(storage.data_ptr(), raw, len(raw))


def _exactly(file: Any, n_bytes: int) -> bytes:
    raw: bytes = file.read(n_bytes)
    if len(raw) < n_bytes:
        raise RuntimeError(
            f"unexpected EOF, expected {n_bytes - len(raw)} more bytes. The file might be "
            "corrupted."
        )
    return raw


def write_legacy(file: Any, data: bytes, storages: list[Any], protocol: int) -> None:
    """An object's pickle and its storages, (key, number of elements, bytes) each."""
    system = {
        "protocol_version": VERSION, "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }  # fmt: skip
    for each in (MAGIC, VERSION, system):
        pickle.dump(each, file, protocol=protocol)
    file.write(data)
    pickle.dump([key for key, _, _ in storages], file, protocol=protocol)
    for _, count, raw in storages:
        file.write(count.to_bytes(_COUNT_BYTES, "little"))
        file.write(raw)
