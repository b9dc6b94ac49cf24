"""LLVM text of sorting one long row on several threads, digit by digit, lowest first.

Keeps     units are chunks of the row: each counts its digits, the counts become places, each moves
          its records there in order; so equal keys keep their order whatever the threads. Digits
          that are the same everywhere are passed over.
Touches   records_text, rows_text, writer.
Not here  how many chunks (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.sorting.records_text import WORDS, Records, Results, emit
from flambeau.devices.cpu.sorting.rows_text import clear, fetch_ahead, increase
from flambeau.devices.cpu.writer import Writer, kernel_of

# flags: for each digit whether it is the same everywhere; bits: of each chunk's words, all `and`
# and all `or`; counts: of each chunk. digit and its shift are of the step.
LONG_WORDS: Final = (
    *WORDS, "area_at", "flags_at", "bits_at", "counts_at", "chunk", "n_chunks", "digit", "shift",
)  # fmt: skip


def _chunk(w: Writer, words: dict[str, str], unit: str) -> tuple[str, str]:
    first = w.mul(unit, words["chunk"])
    return first, w.smaller(w.add(first, words["chunk"]), words["n"])


def _counts(w: Writer, records: Records, words: dict[str, str], unit: str) -> str:
    """Counts of the step's digit in a chunk."""
    return w.at("i64", words["counts_at"], w.mul(unit, records.n_bins))


def _areas(w: Writer, words: dict[str, str], digit: str) -> tuple[str, str]:
    """Where records lie before a digit is sorted by, and the other area."""
    with w.loop("0", digit, [("i64", "0")]) as loop:
        same = w.load("i64", w.at("i64", words["flags_at"], loop.index))
        moved = w.let(f"xor i64 {same}, 1")
        loop.next = [w.let(f"xor i64 {loop.carried[0]}, {moved}")]
    offset = w.mul(loop.results[0], words["area_bytes"])
    first = w.moved(words["area_at"], offset)
    return first, w.moved(words["area_at"], w.sub(words["area_bytes"], offset))


def _passed_over(w: Writer, words: dict[str, str]) -> None:
    """Return where the step's digit is the same everywhere."""
    same = w.load("i64", w.at("i64", words["flags_at"], words["digit"]))
    w.put(f"br i1 {w.compare('ne', same, 0)}, label %nothing, label %work")
    w.label("nothing")
    w.put("ret void")
    w.label("work")


@lru_cache(maxsize=64)
def build_kernel(records: Records) -> tuple[str, str]:
    """A unit makes a chunk's records, counts the lowest digit and gathers which bits differ."""
    w = Writer()
    words = w.words(LONG_WORDS)
    with w.loop("%begin", "%end") as unit:
        counts = _counts(w, records, words, unit.index)
        clear(w, "i64", counts, records.n_bins)
        first, end = _chunk(w, words, unit.index)
        with w.loop(first, end, [("i64", "-1"), ("i64", "0")]) as loop:
            bits = records.load_element(w, words["source_at"], loop.index, words["source_step"])
            word = records.word(w, records.key(w, bits), loop.index)
            records.store(w, words["area_at"], words["places"], loop.index, word, loop.index)
            increase(w, "i64", counts, records.digit(w, word, records.shifts[0]))
            everywhere, anywhere = loop.carried
            loop.next = [w.let(f"and i64 {everywhere}, {word}"),
                         w.let(f"or i64 {anywhere}, {word}")]  # fmt: skip
        bits_at = w.at("i64", words["bits_at"], w.mul(unit.index, 2))
        for number, value in enumerate(loop.results):
            w.store("i64", value, w.at("i64", bits_at, number))
    w.put("ret void")
    return kernel_of(f"sort_build_{records.element.short_name}", w)


@lru_cache(maxsize=64)
def survey_kernel(records: Records) -> tuple[str, str]:
    """One unit: for each digit whether it is the same in all words."""
    w = Writer()
    words = w.words(LONG_WORDS)
    with w.loop("0", words["n_chunks"], [("i64", "-1"), ("i64", "0")]) as loop:
        bits_at = w.at("i64", words["bits_at"], w.mul(loop.index, 2))
        everywhere, anywhere = (w.load("i64", w.at("i64", bits_at, number)) for number in (0, 1))
        loop.next = [w.let(f"and i64 {loop.carried[0]}, {everywhere}"),
                     w.let(f"or i64 {loop.carried[1]}, {anywhere}")]  # fmt: skip
    differing = w.let(f"xor i64 {loop.results[0]}, {loop.results[1]}")
    for number, shift in enumerate(records.shifts):
        same = w.compare("eq", records.digit(w, differing, shift), 0)
        flag = w.let(f"zext i1 {same} to i64")
        w.store("i64", flag, w.at("i64", words["flags_at"], number))
    w.put("ret void")
    return kernel_of("sort_survey", w)


@lru_cache(maxsize=64)
def count_kernel(records: Records) -> tuple[str, str]:
    """A unit counts the step's digit in a chunk of what the digits below have sorted."""
    w = Writer()
    words = w.words(LONG_WORDS)
    _passed_over(w, words)
    area, _ = _areas(w, words, words["digit"])
    with w.loop("%begin", "%end") as unit:
        counts = _counts(w, records, words, unit.index)
        clear(w, "i64", counts, records.n_bins)
        first, end = _chunk(w, words, unit.index)
        with w.loop(first, end) as loop:
            word = records.load_word(w, area, loop.index)
            increase(w, "i64", counts, records.digit(w, word, words["shift"]))
    w.put("ret void")
    return kernel_of("sort_count", w)


@lru_cache(maxsize=64)
def place_kernel(records: Records) -> tuple[str, str]:
    """One unit: counts become the places where each chunk's records of each value begin."""
    w = Writer()
    words = w.words(LONG_WORDS)
    _passed_over(w, words)
    first = _counts(w, records, words, "0")
    with w.loop("0", str(records.n_bins), [("i64", "0")]) as bins:
        start = w.at("i64", first, bins.index)
        carried = [("i64", bins.carried[0]), ("ptr", start)]
        with w.loop("0", words["n_chunks"], carried) as chunks:
            place, at = chunks.carried
            own = w.load("i64", at)
            w.store("i64", place, at)
            chunks.next = [w.add(place, own), w.at("i64", at, records.n_bins)]
        bins.next = [chunks.results[0]]
    w.put("ret void")
    return kernel_of("sort_place", w)


@lru_cache(maxsize=64)
def move_kernel(records: Records) -> tuple[str, str]:
    """A unit moves a chunk's records to their places in the other area."""
    w = Writer()
    words = w.words(LONG_WORDS)
    _passed_over(w, words)
    area, other = _areas(w, words, words["digit"])
    with w.loop("%begin", "%end") as unit:
        counts = _counts(w, records, words, unit.index)
        first, end = _chunk(w, words, unit.index)
        with w.loop(first, end) as loop:
            word = records.load_word(w, area, loop.index)
            fetch_ahead(
                w, records, "i64", counts, area, loop.index, other, words["places"],
                words["shift"],
            )  # fmt: skip
            to = increase(w, "i64", counts, records.digit(w, word, words["shift"]))
            place = "0"
            if not records.is_packed:
                place = records.load_place(w, area, words["places"], loop.index, word)
            records.store(w, other, words["places"], to, word, place)
    w.put("ret void")
    return kernel_of("sort_move", w)


@lru_cache(maxsize=128)
def emit_kernel(records: Records, wanted: Results) -> tuple[str, str]:
    """A unit writes the results of a chunk of the sorted records."""
    w = Writer()
    words = w.words(LONG_WORDS)
    area, _ = _areas(w, words, words["digit"])
    row = {name: words[f"{name}_at"] for name in ("source", "values", "indices")}
    with w.loop("%begin", "%end") as unit:
        first, end = _chunk(w, words, unit.index)
        with w.loop(first, w.smaller(end, words["n_results"])) as loop:
            emit(w, records, wanted, words, area, loop.index, loop.index, row)
    w.put("ret void")
    return kernel_of(f"sort_emit_{records.element.short_name}", w)
