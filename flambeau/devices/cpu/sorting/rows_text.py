"""LLVM text of sorting rows, one a unit: by counting smaller ones where short, else by digits.

Keeps     records lie in the thread's scratch; equal keys keep their order.
Touches   records_text, writer.
Not here  one long row on several threads (radix_text.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.sorting.records_text import (
    WORDS,
    Records,
    Results,
    emit,
    emit_record,
    row_of,
)
from flambeau.devices.cpu.steps import LINE_BYTES, aligned
from flambeau.devices.cpu.writer import TYPE_BYTES, Writer, kernel_of

# Rows of at most so many elements are sorted by counting.
SHORT: Final = 64
_LANES: Final = 4
# Records between one that moves and one whose place is fetched; read past the last one as well.
_AHEAD: Final = 32
# Signed comparisons of words with their upper bit flipped are unsigned ones.
_FLIP: Final = -(1 << 63)


def clear(w: Writer, kind: str, counts: str, n: int) -> None:
    """Zero n counts; n is a multiple of 8."""
    vector = f"<8 x {kind}>"
    with w.loop("0", str(n), step=8) as loop:
        w.store(vector, "zeroinitializer", w.at(kind, counts, loop.index), TYPE_BYTES[kind])


def increase(w: Writer, kind: str, counts: str, number: str) -> str:
    """Add 1 to a count; what it was, as a 64-bit word."""
    at = w.at(kind, counts, number)
    old = w.load(kind, at)
    w.store(kind, w.let(f"add {kind} {old}, 1"), at)
    return old if kind == "i64" else w.let(f"zext {kind} {old} to i64")


def fetch_ahead(
    w: Writer, records: Records, kind: str, counts: str, area: str, number: str, target: str,
    places: str, shift: str | int,
) -> None:  # fmt: skip
    """Ask for the cache lines that a record further on will move to: with many values of a digit,
    lines are gone again before their next record comes. (float32, 1e6: 23 ms, 29 without.)"""
    word = records.load_word(w, area, w.add(number, _AHEAD))
    to = w.load(kind, w.at(kind, counts, records.digit(w, word, shift)))
    position = to if kind == "i64" else w.let(f"zext {kind} {to} to i64")
    targets = [w.at("i64", target, position)]
    if not records.is_packed:
        targets.append(w.at(records.index, w.moved(target, places), position))
    w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    for each in targets:
        w.put(f"call void @llvm.prefetch.p0(ptr {each}, i32 1, i32 3, i32 1)")


def sort_function(records: Records) -> str:
    """ptr @sort(area, other area, counts, n, places): where the sorted records lie.

    Both areas hold n records; digits that are the same everywhere are passed over."""
    w = Writer()
    kind, bins = records.index, records.n_bins
    clear(w, kind, "%counts", len(records.shifts) * bins)
    with w.loop("0", "%n") as loop:
        word = records.load_word(w, "%area", loop.index)
        for number, shift in enumerate(records.shifts):
            digit = records.digit(w, word, shift)
            increase(w, kind, w.at(kind, "%counts", number * bins), digit)
    first, second = "%area", "%other"
    for number, shift in enumerate(records.shifts):
        counts = w.at(kind, "%counts", number * bins)
        first, second = _pass(w, records, counts, shift, first, second)
    w.put(f"ret ptr {first}")
    signature = "ptr @sort(ptr %area, ptr %other, ptr %counts, i64 %n, i64 %places)"
    return w.function(signature)


def _pass(
    w: Writer, records: Records, counts: str, shift: int, first: str, second: str
) -> tuple[str, str]:
    kind = records.index
    digit = records.digit(w, records.load_word(w, first, "0"), shift)
    count = w.load(kind, w.at(kind, counts, digit))
    wide = count if kind == "i64" else w.let(f"zext {kind} {count} to i64")
    choice = w.choice(w.compare("eq", wide, "%n"), ["ptr", "ptr"])
    choice.otherwise([first, second])
    with w.loop("0", str(records.n_bins), [(kind, "0")]) as loop:
        at = w.at(kind, counts, loop.index)
        own = w.load(kind, at)
        w.store(kind, loop.carried[0], at)
        loop.next = [w.let(f"add {kind} {loop.carried[0]}, {own}")]
    with w.loop("0", "%n") as loop:
        word = records.load_word(w, first, loop.index)
        if records.radix > 8:
            fetch_ahead(w, records, kind, counts, first, loop.index, second, "%places", shift)
        to = increase(w, kind, counts, records.digit(w, word, shift))
        place = "0"
        if not records.is_packed:
            place = records.load_place(w, first, "%places", loop.index, word)
        records.store(w, second, "%places", to, word, place)
    choice.end([second, first])
    return choice.results[0], choice.results[1]


def scratch_bytes(records: Records, capacity: int) -> int:
    """Two areas and the counts, of a kernel that calls @sort on at most `capacity` records."""
    return 2 * area_bytes(records, capacity) + records.histogram_bytes


def places_of(capacity: int) -> int:
    """Where an area's places begin: after its words and a vector more."""
    return 8 * (capacity + 8)


def area_bytes(records: Records, capacity: int) -> int:
    """Bytes of an area, whole cache lines."""
    return aligned(records.n_bytes * capacity + LINE_BYTES)


def build(
    w: Writer, records: Records, words: dict[str, str], source: str, first: str, n: str,
    area: str, flip: int = 0,
) -> None:  # fmt: skip
    """Records of n elements of a row, from number `first` on, into an area from its start on;
    bits `flip` of their words flipped."""
    with w.loop("0", n) as loop:
        place = w.add(first, loop.index)
        bits = records.load_element(w, source, place, words["source_step"])
        word = records.word(w, records.key(w, bits), place)
        if flip:
            word = w.let(f"xor i64 {word}, {flip}")
        records.store(w, area, words["places"], loop.index, word, place)


@lru_cache(maxsize=256)
def row_kernel(records: Records, wanted: Results, n_outer: int) -> tuple[str, str]:
    """A unit sorts a row by digits and writes the first n_results."""
    w = Writer()
    words = w.words(WORDS)
    other = w.moved("%scratch", words["area_bytes"])
    counts = w.moved(other, words["area_bytes"])
    with w.loop("%begin", "%end") as unit:
        row = row_of(w, words, unit.index, n_outer, len(WORDS))
        build(w, records, words, row["source"], "0", words["n"], "%scratch")
        done = w.let(
            f"call fastcc ptr @sort(ptr %scratch, ptr {other}, ptr {counts}, i64 {words['n']}, "
            f"i64 {words['places']})"
        )
        with w.loop("0", words["n_results"]) as loop:
            emit(w, records, wanted, words, done, loop.index, loop.index, row)
    w.put("ret void")
    name = f"sort_rows_{records.element.short_name}"
    return kernel_of(name, w, sort_function(records))


@lru_cache(maxsize=256)
def short_row_kernel(records: Records, wanted: Results, n_outer: int) -> tuple[str, str]:
    """A unit sorts a row by counting, for each element, those that come before it."""
    w = Writer()
    words = w.words(WORDS)
    n = words["n"]
    with w.loop("%begin", "%end") as unit:
        row = row_of(w, words, unit.index, n_outer, len(WORDS))
        build(w, records, words, row["source"], "0", n, "%scratch", _FLIP)
        largest = f"splat (i64 {(1 << 63) - 1})"
        w.store(f"<{_LANES} x i64>", largest, w.at("i64", "%scratch", n), 8)
        with w.loop("0", n) as loop:
            word = records.load_word(w, "%scratch", loop.index)
            position = count_before(w, records, "%scratch", n, word, loop.index, "slt")
            with w.when(w.compare("slt", position, words["n_results"])):
                plain = w.let(f"xor i64 {word}, {_FLIP}")
                place = loop.index
                emit_record(w, records, wanted, words, plain, place, position, row)
    w.put("ret void")
    return kernel_of(f"sort_short_{records.element.short_name}", w)


def count_before(
    w: Writer, records: Records, area: str, n: str, word: str, own: str, kind: str
) -> str:
    """How many of an area's n records come before number `own`, by a comparison `kind` of words;
    after the last one lie largest words."""
    vector, lanes = f"<{_LANES} x i64>", f"<{_LANES} x i1>"
    words, owns = (_repeated(w, each) for each in (word, own))
    steps = ", ".join(f"i64 {lane}" for lane in range(_LANES))
    with w.loop("0", n, [(vector, "zeroinitializer")], _LANES) as loop:
        other = w.load(vector, w.at("i64", area, loop.index), 8)
        before = w.let(f"icmp {kind} {vector} {other}, {words}")
        if not records.is_packed:
            places = w.let(f"add {vector} {_repeated(w, loop.index)}, <{steps}>")
            equal = w.let(f"icmp eq {vector} {other}, {words}")
            earlier = w.let(f"icmp slt {vector} {places}, {owns}")
            before = w.let(f"or {lanes} {before}, {w.let(f'and {lanes} {equal}, {earlier}')}")
        ones = w.let(f"sext {lanes} {before} to {vector}")
        loop.next = [w.let(f"sub {vector} {loop.carried[0]}, {ones}")]
    w.declare(f"i64 @llvm.vector.reduce.add.v{_LANES}i64({vector})")
    total = loop.results[0]
    return w.let(f"call i64 @llvm.vector.reduce.add.v{_LANES}i64({vector} {total})")


def _repeated(w: Writer, word: str) -> str:
    vector = f"<{_LANES} x i64>"
    one = w.let(f"insertelement {vector} poison, i64 {word}, i64 0")
    mask = f"<{_LANES} x i32> zeroinitializer"
    return w.let(f"shufflevector {vector} {one}, {vector} poison, {mask}")
