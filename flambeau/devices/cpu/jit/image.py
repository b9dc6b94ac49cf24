"""Position-independent images of kernels, and from images to running code.

Keeps     an image is data: bytes, the places that want an absolute address, the symbols wanted
          from the process. Loading one takes no LLVM, so that a process whose kernels are all
          on disk never imports it (a tenth of a second and 50 MB). Code is never writable and
          executable at once.
Touches   mmap, mprotect, munmap; the process's symbols, libm and libgcc.
Not here  making images (layout.py), keeping them on disk (object_cache.py)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

_PAGE: Final = 4096
_ALIGNMENT: Final = 64

_IMAGE_HEADER: Final = struct.Struct("<5I")


class Image(NamedTuple):
    """Code and constants of one function, ready to be placed anywhere."""

    code: bytes
    entry: int  # offset of the function
    local_words: tuple[tuple[int, int], ...]  # (place, offset): the image's address + offset
    imports: tuple[tuple[int, str], ...]  # (place, symbol): address of a symbol of the process

    def pack(self) -> bytes:
        """The image as bytes, for the disk."""
        names = "\0".join(name for _, name in self.imports).encode()
        words = [word for pair in self.local_words for word in pair]
        words += [place for place, _ in self.imports]
        header = _IMAGE_HEADER.pack(
            len(self.code), self.entry, len(self.local_words), len(self.imports), len(names)
        )
        return b"".join((header, self.code, struct.pack(f"<{len(words)}I", *words), names))

    @staticmethod
    def unpack(packed: bytes) -> Image:
        """The image that `pack` made these bytes of; ValueError if it cannot be."""
        try:
            n_code, entry, n_local, n_imports, n_names = _IMAGE_HEADER.unpack_from(packed)
            position = _IMAGE_HEADER.size + n_code
            code = packed[_IMAGE_HEADER.size : position]
            words = struct.unpack_from(f"<{2 * n_local + n_imports}I", packed, position)
            names = packed[position + 4 * len(words) :]
            if len(names) != n_names:
                raise ValueError("an image of the wrong length")
            symbols = names.decode().split("\0") if n_imports else []
            local = tuple(zip(words[: 2 * n_local : 2], words[1 : 2 * n_local : 2], strict=True))
            imports = tuple(zip(words[2 * n_local :], symbols, strict=True))
        except struct.error as error:
            raise ValueError(f"not an image: {error}") from None
        return Image(code, entry, local, imports)


class LoadedCode:
    """Images in memory, with the addresses of their functions."""

    def __init__(self, images: Mapping[str, Image]) -> None:
        places: dict[str, int] = {}
        n_bytes = 0
        for name, image in images.items():
            places[name] = n_bytes
            n_bytes += len(image.code) + -len(image.code) % _ALIGNMENT
        self._n_bytes = n_bytes + -n_bytes % _PAGE
        self._start = start = _map(self._n_bytes)
        content = bytearray(n_bytes)
        for name, image in images.items():
            place = places[name]
            content[place : place + len(image.code)] = image.code
            for word, offset in image.local_words:
                struct.pack_into("<Q", content, place + word, start + place + offset)
            for word, symbol in image.imports:
                struct.pack_into("<Q", content, place + word, _symbol_address(symbol))
        ctypes.memmove(start, bytes(content), n_bytes)
        if _libc().mprotect(start, self._n_bytes, 0x5):  # readable, executable
            error = ctypes.get_errno()
            self.unload()
            raise OSError(error, "this system does not let flambeau run code it compiled")
        self.addresses = {
            name: start + places[name] + image.entry for name, image in images.items()
        }

    def unload(self) -> None:
        """Return the memory; nobody may be in the code, or call it later."""
        _libc().munmap(self._start, self._n_bytes)


def _map(n_bytes: int) -> int:
    start: int | None = _libc().mmap(None, n_bytes, 0x3, 0x22, -1, 0)  # writable, private
    if start is None or start == ctypes.c_void_p(-1).value:
        raise MemoryError(f"cannot map {n_bytes} bytes for code")
    return start


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


@cache
def _symbol_address(name: str) -> int:
    for library in (None, "libm.so.6", "libgcc_s.so.1"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        address = ctypes.cast(function, ctypes.c_void_p).value
        if address is not None:
            return address
    raise RuntimeError(f"a kernel calls {name}, which this process does not have")
