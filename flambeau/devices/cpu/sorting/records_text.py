"""Keys and records of sorting as LLVM text.

Keeps     keys are unsigned integers in the wanted order: NaN above everything, both zeros equal;
          descending order inverts them, so that equal elements keep their order there too. A
          record is a key and where it comes from.
Touches   base.dtypes, stored, writer.
Not here  sorting records (radix_text.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.stored import bits_type, shaped, splat
from flambeau.devices.cpu.writer import TYPE_BYTES, Writer

# Bits of the floating infinities.
_INFINITY: Final = {
    "float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0 << 48,
}  # fmt: skip


@dataclass(frozen=True)
class Records:
    """How elements of a dtype are sorted.

    A key of at most 32 bits and its place share a word, the key above. Otherwise an area holds
    all keys, then, `places` bytes on, all places.

    index    LLVM type of a place: i32, or i64 where there are 2**32 elements or more
    radix    bits of a digit
    """

    element: dtype
    descending: bool
    index: str
    radix: int

    @property
    def is_packed(self) -> bool:
        """Key and place in one word."""
        return self.element.itemsize <= 4 and self.index == "i32"

    @property
    def n_bytes(self) -> int:
        """Bytes of a record."""
        return 8 if self.is_packed else 8 + TYPE_BYTES[self.index]

    @property
    def n_bins(self) -> int:
        """Values of a digit."""
        return 1 << self.radix

    @property
    def shifts(self) -> list[int]:
        """Where each digit begins in a key's word, lowest first."""
        first = 32 if self.is_packed else 0
        return list(range(first, first + 8 * self.element.itemsize, self.radix))

    @property
    def histogram_bytes(self) -> int:
        """Counts of all values of all digits."""
        return len(self.shifts) * self.n_bins * TYPE_BYTES[self.index]

    # Keys --------------------------------------------------------------------

    @property
    def bits(self) -> str:
        """LLVM type of an element's bits."""
        return bits_type(self.element)

    def _sign(self) -> int:
        return -(1 << 8 * self.element.itemsize - 1)

    def key(self, w: Writer, bits: str, lanes: int = 0) -> str:
        """Key of an element's bits."""
        kind = shaped(self.bits, lanes)

        def number(value: int) -> str:
            return splat(self.bits, value, lanes)

        key = bits
        if self.element.is_floating_point:
            width = 8 * self.element.itemsize
            magnitude = w.let(f"and {kind} {bits}, {number((1 << width - 1) - 1)}")
            zero = w.let(f"icmp eq {kind} {magnitude}, {number(0)}")
            infinity = _INFINITY[self.element.name]
            nan = w.let(f"icmp ugt {kind} {magnitude}, {number(infinity)}")
            condition = shaped("i1", lanes)
            plain = w.let(f"select {condition} {zero}, {kind} {number(0)}, {kind} {bits}")
            negative = w.let(f"ashr {kind} {plain}, {number(width - 1)}")
            flips = w.let(f"or {kind} {negative}, {number(self._sign())}")
            key = w.let(f"xor {kind} {plain}, {flips}")
            key = w.let(f"select {condition} {nan}, {kind} {number(-1)}, {kind} {key}")
        elif self.element.is_signed:
            key = w.let(f"xor {kind} {bits}, {number(self._sign())}")
        if self.descending:
            key = w.let(f"xor {kind} {key}, {number(-1)}")
        return key

    def element_bits(self, w: Writer, key: str) -> tuple[str, str]:
        """Bits of the element a key stands for, and i1: it may stand for several (zeros, NaN)."""
        kind, sign = self.bits, self._sign()
        if self.descending:
            key = w.let(f"xor {kind} {key}, -1")
        if not self.element.is_floating_point:
            return (w.let(f"xor {kind} {key}, {sign}") if self.element.is_signed else key), ""
        width = 8 * self.element.itemsize
        positive = w.let(f"ashr {kind} {key}, {width - 1}")
        inverted = w.let(f"xor {kind} {positive}, -1")
        flips = w.let(f"or {kind} {inverted}, {sign}")
        bits = w.let(f"xor {kind} {key}, {flips}")
        zero = w.let(f"icmp eq {kind} {key}, {sign}")
        nan = w.let(f"icmp eq {kind} {key}, -1")
        return bits, w.let(f"or i1 {zero}, {nan}")

    # Records -----------------------------------------------------------------

    def word(self, w: Writer, key: str, place: str) -> str:
        """Word of a record with its key; place is a 64-bit word."""
        wide = key if self.bits == "i64" else w.let(f"zext {self.bits} {key} to i64")
        if not self.is_packed:
            return wide
        return w.let(f"or i64 {w.let(f'shl i64 {wide}, 32')}, {place}")

    def key_of(self, w: Writer, word: str) -> str:
        """Key in a record's word."""
        if self.is_packed:
            word = w.let(f"lshr i64 {word}, 32")
        return word if self.bits == "i64" else w.let(f"trunc i64 {word} to {self.bits}")

    def load_word(self, w: Writer, area: str, number: str) -> str:
        """Word of record `number`."""
        return w.load("i64", w.at("i64", area, number))

    def load_place(self, w: Writer, area: str, places: str, number: str, word: str) -> str:
        """Place of record `number`, whose word was loaded, as a 64-bit word."""
        if self.is_packed:
            return w.let(f"and i64 {word}, 4294967295")
        place = w.load(self.index, w.at(self.index, w.moved(area, places), number))
        return place if self.index == "i64" else w.let(f"zext {self.index} {place} to i64")

    def store(self, w: Writer, area: str, places: str, number: str, word: str, place: str) -> None:
        """Record `number`."""
        w.store("i64", word, w.at("i64", area, number))
        if not self.is_packed:
            at = w.at(self.index, w.moved(area, places), number)
            kept = place if self.index == "i64" else w.let(f"trunc i64 {place} to {self.index}")
            w.store(self.index, kept, at)

    def digit(self, w: Writer, word: str, shift: str | int) -> str:
        """Digit of a word from bit `shift` on."""
        return w.let(f"and i64 {w.let(f'lshr i64 {word}, {shift}')}, {self.n_bins - 1}")

    def load_element(self, w: Writer, source: str, place: str, step: str) -> str:
        """Bits of element `place` of a row."""
        return w.load(self.bits, w.moved(source, w.mul(place, step)))


@dataclass(frozen=True)
class Results:
    """What of the result is wanted."""

    values: bool
    indices: bool


def emit(
    w: Writer, records: Records, wanted: Results, words: dict[str, str], area: str,
    number: str, position: str, row: dict[str, str],
) -> None:  # fmt: skip
    """Write the element and place of record `number` of an area to a position of a row.

    row  pointers to its source, values and indices"""
    word = records.load_word(w, area, number)
    place = records.load_place(w, area, words["places"], number, word)
    emit_record(w, records, wanted, words, word, place, position, row)


def emit_record(
    w: Writer, records: Records, wanted: Results, words: dict[str, str], word: str, place: str,
    position: str, row: dict[str, str],
) -> None:  # fmt: skip
    """Write the element and place of a record, given its word, to a position of a row."""
    if wanted.values:
        bits, several = records.element_bits(w, records.key_of(w, word))
        if several:
            choice = w.choice(several, [records.bits])
            original = records.load_element(w, row["source"], place, words["source_step"])
            choice.otherwise([original])
            choice.end([bits])
            bits = choice.results[0]
        w.store(records.bits, bits, w.moved(row["values"], w.mul(position, words["values_step"])))
    if wanted.indices:
        w.store("i64", place, w.moved(row["indices"], w.mul(position, words["indices_step"])))


# Words of every kernel of the family; strides in bytes. Kernels of one row more: see radix_text.
WORDS: Final = (
    "source_at", "values_at", "indices_at", "n", "n_results", "source_step", "values_step",
    "indices_step", "places", "area_bytes",
)  # fmt: skip


def row_of(
    w: Writer, words: dict[str, str], number: str, n_outer: int, first: int
) -> dict[str, str]:
    """Pointers of a row of the outer dimensions: (size, source, values, indices stride) each."""
    row = {name: words[f"{name}_at"] for name in ("source", "values", "indices")}
    for d in reversed(range(n_outer)):
        place = w.at("i64", "%args", first + 4 * d)
        dim = w.words(("size", *row), place)
        number, at = w.divide(number, dim["size"])
        for name in row:
            row[name] = w.moved(row[name], w.mul(at, dim[name]))
    return row
