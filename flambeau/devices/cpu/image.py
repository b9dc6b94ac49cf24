"""From LLVM's object file to a position-independent image, and from images to running code.

Keeps     an image is data: bytes, the places that want an absolute address, the symbols wanted
          from the process. Loading one takes no LLVM, so that a process whose kernels are all
          on disk never imports it (a tenth of a second and 50 MB). Code is never writable and
          executable at once.
Touches   mmap, mprotect, munmap; the process's symbols, libm and libgcc.
Not here  making the object (jit.py), keeping images on disk (object_cache.py).
Source    System V ABI, AMD64 supplement, ch. 4 (object files, relocation)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

_PAGE: Final = 4096
_ALIGNMENT: Final = 64

# ELF constants.
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 1, 2, 4, 8
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_UNDEF, _SHN_ABS, _SHN_COMMON = 0, 0xFFF1, 0xFFF2
_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_PC64 = 1, 2, 4, 9, 24
_R_GOTPCRELX, _R_REX_GOTPCRELX = 41, 42

_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
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


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    n_bytes: int
    link: int
    info: int
    alignment: int


class _Symbol(NamedTuple):
    name: str
    kind: int
    section: int
    value: int


def image_of(object_file: bytes, function: str) -> Image:
    """Lay an object file's sections out in one piece and resolve all that is inside it."""
    return _Layout(object_file).image(function)


class _Layout:
    """One object file being laid out."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._sections = _sections_of(content)
        self._symbols = self._read_symbols()
        self._code = bytearray()
        self._places: dict[int, int] = {}  # section number -> offset in the code
        self._slots: dict[str | int, int] = {}  # symbol or local offset -> its address word
        self._stubs: dict[str, int] = {}  # symbol -> a jump to it
        self._local_words: list[tuple[int, int]] = []
        self._imports: list[tuple[int, str]] = []

    def image(self, function: str) -> Image:
        for number, section in enumerate(self._sections):
            if _is_loaded(section):
                self._places[number] = self._append(
                    self._content[section.offset : section.offset + section.n_bytes],
                    section.alignment,
                )
        for section in self._sections:
            if section.kind == _SHT_RELA and section.info in self._places:
                self._relocate(section)
        entries = [one for one in self._symbols if one.name == function and one.section]
        if not entries:
            raise RuntimeError(f"the text of kernel {function} does not define @{function}")
        entry = self._places[entries[0].section] + entries[0].value
        return Image(bytes(self._code), entry, tuple(self._local_words), tuple(self._imports))

    def _append(self, content: bytes, alignment: int) -> int:
        self._code.extend(b"\xcc" * (-len(self._code) % max(alignment, 1)))
        place = len(self._code)
        self._code.extend(content)
        return place

    def _read_symbols(self) -> list[_Symbol]:
        table = next(section for section in self._sections if section.kind == _SHT_SYMTAB)
        strings = self._sections[table.link].offset
        return [
            _Symbol(_string(self._content, strings + name), info & 15, section, value)
            for name, info, _, section, value, _ in _SYMBOL.iter_unpack(
                self._content[table.offset : table.offset + table.n_bytes]
            )
        ]

    def _relocate(self, relocations: _Section) -> None:
        start = self._places[relocations.info]
        end = relocations.offset + relocations.n_bytes
        for offset, info, addend in _RELOCATION.iter_unpack(
            self._content[relocations.offset : end]
        ):
            place = start + offset
            kind = info & 0xFFFFFFFF
            symbol = self._symbols[info >> 32]
            inside = self._inside(symbol)
            if kind == _R_64:
                if inside is None:
                    if addend:
                        raise _unsupported(f"an offset to {symbol.name}")
                    self._imports.append((place, symbol.name))
                else:
                    self._local_words.append((place, inside + addend))
                continue
            if kind in (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX):
                target = self._slot(symbol.name if inside is None else inside)
            elif kind in (_R_PC32, _R_PLT32, _R_PC64):
                target = self._stub(symbol.name) if inside is None else inside
            else:
                raise _unsupported(f"relocation {kind} to {symbol.name}")
            form = "<q" if kind == _R_PC64 else "<i"
            struct.pack_into(form, self._code, place, target + addend - place)

    def _inside(self, symbol: _Symbol) -> int | None:
        """Offset of the symbol in the code; None if the process has to have it."""
        if symbol.section == _SHN_UNDEF:
            return None
        if symbol.section not in self._places:
            raise _unsupported(f"symbol {symbol.name or symbol.section}")
        return self._places[symbol.section] + symbol.value

    def _slot(self, target: str | int) -> int:
        """Place of a word that holds the address of a symbol, or of something in the code."""
        if target not in self._slots:
            place = self._slots[target] = self._append(bytes(8), 8)
            if isinstance(target, str):
                self._imports.append((place, target))
            else:
                self._local_words.append((place, target))
        return self._slots[target]

    def _stub(self, name: str) -> int:
        """Place of a jump to a symbol: it may be too far away for a direct call."""
        if name not in self._stubs:
            slot = self._slot(name)
            place = self._stubs[name] = self._append(b"\xff\x25" + bytes(4), 16)
            struct.pack_into("<i", self._code, place + 2, slot - (place + 6))
        return self._stubs[name]


def _sections_of(content: bytes) -> list[_Section]:
    table, entry_bytes, n_sections, names_at = (
        *struct.unpack_from("<Q", content, 0x28),
        *struct.unpack_from("<3H", content, 0x3A),
    )
    raw = [_SECTION.unpack_from(content, table + k * entry_bytes) for k in range(n_sections)]
    strings = raw[names_at][4]
    return [
        _Section(_string(content, strings + name), kind, flags, offset, n_bytes, link, info, align)
        for name, kind, flags, _, offset, n_bytes, link, info, align, _ in raw
    ]


def _string(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode()


def _is_loaded(section: _Section) -> bool:
    if not section.flags & _SHF_ALLOC or not section.n_bytes:
        return False
    if section.name.startswith(".eh_frame"):
        return False  # nothing is ever thrown through a kernel
    if section.kind == _SHT_NOBITS or (
        section.flags & _SHF_WRITE and not section.name.startswith(".data.rel.ro")
    ):
        raise _unsupported(f"variable data (section {section.name})")
    return section.kind == _SHT_PROGBITS


def _unsupported(what: str) -> RuntimeError:
    return RuntimeError(
        f"a kernel's object has {what}, which flambeau does not load: "
        "kernels are functions and constants only"
    )


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
