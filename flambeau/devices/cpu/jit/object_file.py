"""What a relocatable object file holds: sections, symbols, relocations.

Keeps     a file is only read; nothing is placed anywhere yet.
Not here  laying sections out (layout.py).
Source    System V ABI, ch. 4, and its AMD64 supplement (object files)."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

PROGBITS, NOBITS = 1, 8
_SYMTAB, _RELA = 2, 4
WRITE, ALLOC = 1, 2
UNDEFINED: Final = 0
_RESERVED: Final = 0xFF00  # numbers of sections from here on stand for something else

_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")


class Section(NamedTuple):
    """A section's header."""

    name: str
    kind: int
    flags: int
    offset: int
    n_bytes: int
    link: int
    info: int
    alignment: int


class Symbol(NamedTuple):
    """A name for a place in a section; `section` is UNDEFINED where another has to have it."""

    name: str
    section: int
    value: int


class Relocation(NamedTuple):
    """A place in a section that wants to know where a symbol is."""

    offset: int
    kind: int
    symbol: Symbol
    addend: int


class ObjectFile:
    """One object file, read."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.sections = _sections_of(content)
        self._symbols = self._read_symbols()
        self.defined = {
            one.name: one
            for one in self._symbols
            if one.name and UNDEFINED < one.section < _RESERVED
        }
        self._relocations: dict[int, list[Section]] = defaultdict(list)
        for section in self.sections:
            if section.kind == _RELA:
                self._relocations[section.info].append(section)

    def content(self, number: int) -> bytes:
        """Bytes of a section."""
        section = self.sections[number]
        return self._content[section.offset : section.offset + section.n_bytes]

    def relocations(self, number: int) -> Iterator[Relocation]:
        """Relocations of a section."""
        for table in self._relocations.get(number, ()):
            end = table.offset + table.n_bytes
            for offset, info, addend in _RELOCATION.iter_unpack(self._content[table.offset : end]):
                yield Relocation(offset, info & 0xFFFFFFFF, self._symbols[info >> 32], addend)

    def _read_symbols(self) -> list[Symbol]:
        table = next(section for section in self.sections if section.kind == _SYMTAB)
        strings = self.sections[table.link].offset
        return [
            Symbol(_string(self._content, strings + name), section, value)
            for name, _, _, section, value, _ in _SYMBOL.iter_unpack(
                self._content[table.offset : table.offset + table.n_bytes]
            )
        ]


def _sections_of(content: bytes) -> list[Section]:
    table, entry_bytes, n_sections, names_at = (
        *struct.unpack_from("<Q", content, 0x28),
        *struct.unpack_from("<3H", content, 0x3A),
    )
    raw = [_SECTION.unpack_from(content, table + k * entry_bytes) for k in range(n_sections)]
    strings = raw[names_at][4]
    return [
        Section(_string(content, strings + name), kind, flags, offset, n_bytes, link, info, align)
        for name, kind, flags, _, offset, n_bytes, link, info, align, _ in raw
    ]


def _string(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode()
