"""LLVM text of the first k elements in order, without sorting the others.

Keeps     a buffer of candidates in the thread's scratch: whatever comes before the k-th best so
          far joins it, and when it is full the best k stay. Of equal elements the first ones
          stay, so that the result does not depend on chunks.
Touches   records_text, rows_text, writer.
Not here  when this pays (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.sorting.records_text import WORDS, Records, Results, emit, row_of
from flambeau.devices.cpu.sorting.rows_text import build, count_before, sort_function
from flambeau.devices.cpu.stored import shaped
from flambeau.devices.cpu.writer import Writer, kernel_of

# Elements looked at together; the buffer takes so many beyond its capacity.
STRIDE: Final = 32
# Buffers of at most so many records are sorted by counting.
_FEW: Final = 128
# lists: where each chunk's best go, list_bytes a row; total: records of a row's list.
SELECT_WORDS: Final = (
    *WORDS, "lists_at", "list_bytes", "list_places", "chunk", "n_chunks", "capacity", "total",
)  # fmt: skip


def _order_function(records: Records) -> str:
    """ptr @order(area, other, counts, n, places): as @sort, quicker where there are few."""
    w = Writer()
    choice = w.choice(w.compare("sle", "%n", _FEW), ["ptr"])
    w.store("<4 x i64>", "splat (i64 -1)", w.at("i64", "%area", "%n"), 8)
    with w.loop("0", "%n") as loop:
        word = records.load_word(w, "%area", loop.index)
        place = records.load_place(w, "%area", "%places", loop.index, word)
        position = count_before(w, records, "%area", "%n", word, loop.index, "ult")
        records.store(w, "%other", "%places", position, word, place)
    choice.otherwise(["%other"])
    arguments = "ptr %area, ptr %other, ptr %counts, i64 %n, i64 %places"
    choice.end([w.let(f"call fastcc ptr @sort({arguments})")])
    w.put(f"ret ptr {choice.results[0]}")
    return sort_function(records) + w.function(f"ptr @order({arguments})")


def _keep_function(records: Records) -> str:
    """i64 @keep(area, other, counts, n, places, k): the best k to the area's start; last one's
    word."""
    w = Writer()
    arguments = "ptr %area, ptr %other, ptr %counts, i64 %n, i64 %places"
    done = w.let(f"call fastcc ptr @order({arguments})")
    with w.loop("0", "%k") as loop:
        copy_record(w, records, done, "%places", loop.index, "%area", "%places", loop.index)
    last = records.load_word(w, "%area", w.sub("%k", 1))
    w.put(f"ret i64 {last}")
    return w.function(f"i64 @keep({arguments}, i64 %k)")


def copy_record(
    w: Writer, records: Records, source: str, source_places: str, number: str, target: str,
    target_places: str, position: str,
) -> None:  # fmt: skip
    """A record from one area to another."""
    word = records.load_word(w, source, number)
    place = records.load_place(w, source, source_places, number, word)
    records.store(w, target, target_places, position, word, place)


@lru_cache(maxsize=256)
def select_kernel(
    records: Records, wanted: Results, n_outer: int, is_contiguous: bool, is_direct: bool
) -> tuple[str, str]:
    """A unit finds the best of a chunk of a row: to the row's list, or directly to the result."""
    w = Writer()
    words = w.words(SELECT_WORDS)
    k, places = words["n_results"], words["places"]
    other = w.moved("%scratch", words["area_bytes"])
    counts = w.moved(other, words["area_bytes"])
    buffers = f"ptr %scratch, ptr {other}, ptr {counts}"
    with w.loop("%begin", "%end") as unit:
        number, chunk = w.divide(unit.index, words["n_chunks"])
        row = row_of(w, words, number, n_outer, len(SELECT_WORDS))
        first = w.mul(chunk, words["chunk"])
        end = w.smaller(w.add(first, words["chunk"]), words["n"])
        n_first = w.smaller(w.sub(end, first), words["capacity"])
        build(w, records, words, row["source"], first, n_first, "%scratch")
        rest = w.add(first, n_first)
        choice = w.choice(w.compare("slt", rest, end), ["i64"])
        call = f"call fastcc i64 @keep({buffers}, i64 {n_first}, i64 {places}, i64 {k})"
        count = _scan(w, records, words, row, (rest, end), w.let(call), is_contiguous, buffers)
        choice.otherwise([count])
        choice.end([n_first])
        count = choice.results[0]
        done = w.let(f"call fastcc ptr @order({buffers}, i64 {count}, i64 {places})")
        best = w.smaller(count, k)
        with w.loop("0", best) as loop:
            if is_direct:
                emit(w, records, wanted, words, done, loop.index, loop.index, row)
            else:
                kept = w.moved(words["lists_at"], w.mul(number, words["list_bytes"]))
                position = w.add(w.mul(chunk, k), loop.index)
                copy_record(
                    w, records, done, places, loop.index, kept, words["list_places"], position
                )
    w.put("ret void")
    functions = _order_function(records) + _keep_function(records)
    return kernel_of(f"select_{records.element.short_name}", w, functions)


def _scan(
    w: Writer, records: Records, words: dict[str, str], row: dict[str, str],
    span: tuple[str, str], last: str, is_contiguous: bool, buffers: str,
) -> str:  # fmt: skip
    """Look at the other elements of a chunk; how many records are in the buffer then."""
    k = words["n_results"]
    start, end = span
    carried = [("i64", k), ("i64", last)]
    with w.loop(start, end, carried, STRIDE) as loop:
        count, last = loop.carried
        limit = records.key_of(w, last)
        if is_contiguous:
            choice = w.choice(_any_before(w, records, row["source"], loop.index, limit),
                              ["i64", "i64"])  # fmt: skip
        stop = w.smaller(w.add(loop.index, STRIDE), end)
        with w.loop(loop.index, stop, [("i64", count)]) as one:
            bits = records.load_element(w, row["source"], one.index, words["source_step"])
            key = records.key(w, bits)
            word = records.word(w, key, one.index)
            records.store(w, "%scratch", words["places"], one.carried[0], word, one.index)
            better = w.let(f"icmp ult {records.bits} {key}, {limit}")
            one.next = [w.add(one.carried[0], w.let(f"zext i1 {better} to i64"))]
        count = one.results[0]
        full = w.choice(w.compare("sge", count, words["capacity"]), ["i64", "i64"])
        call = f"call fastcc i64 @keep({buffers}, i64 {count}, i64 {words['places']}, i64 {k})"
        full.otherwise([k, w.let(call)])
        full.end([count, last])
        if is_contiguous:
            choice.otherwise(full.results)
            choice.end(loop.carried)
            loop.next = choice.results
        else:
            loop.next = full.results
    return loop.results[0]


def _any_before(w: Writer, records: Records, source: str, first: str, limit: str) -> str:
    """Whether the key of any of the elements from `first` on, those beyond the row included, is
    below a limit."""
    size = records.element.itemsize
    vector = shaped(records.bits, STRIDE)
    at = w.moved(source, w.mul(first, size))
    keys = records.key(w, w.load(vector, at, size), STRIDE)
    one = w.let(f"insertelement {vector} poison, {records.bits} {limit}, i64 0")
    same = f"<{STRIDE} x i32> zeroinitializer"
    limits = w.let(f"shufflevector {vector} {one}, {vector} poison, {same}")
    before = w.let(f"icmp ult {vector} {keys}, {limits}")
    bits = w.let(f"bitcast <{STRIDE} x i1> {before} to i{STRIDE}")
    return w.let(f"icmp ne i{STRIDE} {bits}, 0")


@lru_cache(maxsize=256)
def merge_kernel(records: Records, wanted: Results, n_outer: int) -> tuple[str, str]:
    """A unit sorts a row's list of its chunks' best and writes the first k."""
    w = Writer()
    words = w.words(SELECT_WORDS)
    counts = w.moved("%scratch", words["list_bytes"])
    with w.loop("%begin", "%end") as unit:
        row = row_of(w, words, unit.index, n_outer, len(SELECT_WORDS))
        kept = w.moved(words["lists_at"], w.mul(unit.index, words["list_bytes"]))
        done = w.let(
            f"call fastcc ptr @order(ptr {kept}, ptr %scratch, ptr {counts}, "
            f"i64 {words['total']}, i64 {words['list_places']})"
        )
        places = {**words, "places": words["list_places"]}
        with w.loop("0", words["n_results"]) as loop:
            emit(w, records, wanted, places, done, loop.index, loop.index, row)
    w.put("ret void")
    return kernel_of(f"select_merge_{records.element.short_name}", w, _order_function(records))
