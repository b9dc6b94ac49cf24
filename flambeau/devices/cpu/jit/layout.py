"""From object files to an image: what a function reaches, in one piece.

Keeps     everything inside the image is resolved; only addresses of the process are left open.
Touches   object_file, image.
Not here  making the objects (compiler.py), loading images (image.py).
Source    System V ABI, AMD64 supplement, ch. 4 (relocation)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from flambeau.devices.cpu.jit.image import Image
from flambeau.devices.cpu.jit.object_file import (
    ALLOC,
    NOBITS,
    PROGBITS,
    UNDEFINED,
    WRITE,
    ObjectFile,
    Relocation,
    Section,
    Symbol,
)

# Kinds of relocation.
_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_PC64 = 1, 2, 4, 9, 24
_R_GOTPCRELX, _R_REX_GOTPCRELX = 41, 42


def image_of(
    object_file: ObjectFile, function: str, parts: Mapping[str, ObjectFile] | None = None
) -> Image:
    """Lay out in one piece what a function of an object file reaches; what that file does not
    define is looked for in the file that `parts` gives for the symbol, then in the process."""
    if function not in object_file.defined:
        raise RuntimeError(f"the text of kernel {function} does not define @{function}")
    layout = _Layout(parts or {})
    entry = layout.place_of(object_file, object_file.defined[function])
    return layout.image(entry)


class _Layout:
    """Sections of object files being laid out."""

    def __init__(self, parts: Mapping[str, ObjectFile]) -> None:
        self._parts = parts
        self._code = bytearray()
        # (file, section number) -> offset in the code; those that are to be relocated yet.
        self._places: dict[tuple[ObjectFile, int], int] = {}
        self._waiting: list[tuple[ObjectFile, int]] = []
        self._slots: dict[str | int, int] = {}  # symbol or local offset -> its address word
        self._stubs: dict[str, int] = {}  # symbol -> a jump to it
        self._local_words: list[tuple[int, int]] = []
        self._imports: list[tuple[int, str]] = []

    def image(self, entry: int) -> Image:
        while self._waiting:
            file, number = self._waiting.pop()
            start = self._places[file, number]
            for relocation in file.relocations(number):
                self._relocate(file, start, relocation)
        return Image(bytes(self._code), entry, tuple(self._local_words), tuple(self._imports))

    def place_of(self, file: ObjectFile, symbol: Symbol) -> int:
        """Offset in the code of what a symbol of a file names, laid out if it was not yet."""
        key = file, symbol.section
        if key not in self._places:
            section = self._loaded(file, symbol)
            self._places[key] = self._append(file.content(symbol.section), section.alignment)
            self._waiting.append(key)
        return self._places[key] + symbol.value

    @staticmethod
    def _loaded(file: ObjectFile, symbol: Symbol) -> Section:
        if symbol.section >= len(file.sections):
            raise _unsupported(f"symbol {symbol.name or symbol.section}")
        section = file.sections[symbol.section]
        is_variable = section.flags & WRITE and not section.name.startswith(".data.rel.ro")
        if section.kind == NOBITS or is_variable:
            raise _unsupported(f"variable data (section {section.name})")
        if section.kind != PROGBITS or not section.flags & ALLOC:
            raise _unsupported(f"symbol {symbol.name or section.name}")
        return section

    def _append(self, content: bytes, alignment: int) -> int:
        self._code.extend(b"\xcc" * (-len(self._code) % max(alignment, 1)))
        place = len(self._code)
        self._code.extend(content)
        return place

    def _relocate(self, file: ObjectFile, start: int, relocation: Relocation) -> None:
        offset, kind, symbol, addend = relocation
        place = start + offset
        inside = self._inside(file, symbol)
        if kind == _R_64:
            if inside is not None:
                self._local_words.append((place, inside + addend))
            elif addend:
                raise _unsupported(f"an offset to {symbol.name}")
            else:
                self._imports.append((place, symbol.name))
            return
        if kind in (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX):
            target = self._slot(symbol.name if inside is None else inside)
        elif kind in (_R_PC32, _R_PLT32, _R_PC64):
            target = self._stub(symbol.name) if inside is None else inside
        else:
            raise _unsupported(f"relocation {kind} to {symbol.name}")
        form = "<q" if kind == _R_PC64 else "<i"
        struct.pack_into(form, self._code, place, target + addend - place)

    def _inside(self, file: ObjectFile, symbol: Symbol) -> int | None:
        """Offset of the symbol in the code; None if the process has to have it."""
        if symbol.section != UNDEFINED:
            return self.place_of(file, symbol)
        part = self._parts.get(symbol.name)
        return None if part is None else self.place_of(part, part.defined[symbol.name])

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


def _unsupported(what: str) -> RuntimeError:
    return RuntimeError(
        f"a kernel's object has {what}, which flambeau does not load: "
        "kernels are functions and constants only"
    )
