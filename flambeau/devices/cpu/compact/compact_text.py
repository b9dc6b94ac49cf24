"""LLVM text of finding what is not zero: counts of blocks, their sums, then each one served.

Keeps     places come in row-major order whatever the number of threads; nothing is stored past
          the rows there are. The mask is contiguous, a byte an element.
Touches   writer.
Not here  strided masks (packing.py), how many blocks (plan.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.writer import Writer, kernel_of

# Elements of a block: their places fit 32 bits of scratch each, counts a byte a lane.
BLOCK: Final = 4096
LANES: Final = 32
SCRATCH_BYTES: Final = 4 * (BLOCK + 8)
# n elements; size: rows there are; strides in bytes; then size, reciprocal and data's stride of
# each dimension. Rows are what is found, in order; data has an element at each place of the mask.
WORDS: Final = (
    "mask_at", "rows_at", "data_at", "counts_at", "n", "size", "fill", "row_stride",
    "column_stride",
)  # fmt: skip


@dataclass(frozen=True)
class Action:
    """What is done with each element found.

    name     "places": its coordinates are written to a row; "select": data's element there is
             copied to a row; "scatter": a row is copied to data's element there
    n_bytes  of an element of data, 0 for places
    dims     for each dimension whether it has more than one place
    is_wide  2**32 elements or more: quotients by division, not by reciprocals
    """

    name: str
    n_bytes: int
    dims: tuple[bool, ...]
    is_wide: bool


def _bits(w: Writer, mask: str, at: str, end: str) -> str:
    """A bit for each of 32 elements from `at` on that is before `end` and not zero."""
    vector = f"<{LANES} x i8>"
    value = w.load(vector, w.moved(mask, at), 1)
    chosen = w.let(f"icmp ne {vector} {value}, zeroinitializer")
    bits = w.let(f"bitcast <{LANES} x i1> {chosen} to i{LANES}")
    left = w.smaller(w.sub(end, at), LANES)
    unused = w.let(f"trunc i64 {w.let(f'sub i64 {LANES}, {left}')} to i32")
    return w.let(f"and i32 {bits}, {w.let(f'lshr i32 -1, {unused}')}")


def _ones(w: Writer, bits: str) -> str:
    w.declare("i32 @llvm.ctpop.i32(i32)")
    return w.let(f"zext i32 {w.let(f'call i32 @llvm.ctpop.i32(i32 {bits})')} to i64")


def _block(w: Writer, words: dict[str, str], unit: str) -> tuple[str, str]:
    first = w.mul(unit, BLOCK)
    return first, w.smaller(w.add(first, BLOCK), words["n"])


@lru_cache(maxsize=1)
def count_kernel() -> tuple[str, str]:
    """A unit counts a block into counts[unit]."""
    w = Writer()
    words = w.words(WORDS)
    with w.loop("%begin", "%end") as unit:
        first, end = _block(w, words, unit.index)
        with w.loop(first, end, [("i64", "0")], LANES) as loop:
            bits = _bits(w, words["mask_at"], loop.index, end)
            loop.next = [w.add(loop.carried[0], _ones(w, bits))]
        w.store("i64", loop.results[0], w.at("i64", words["counts_at"], unit.index))
    w.put("ret void")
    return kernel_of("compact_count", w)


@lru_cache(maxsize=16)
def sum_kernel(n_filled: int) -> tuple[str, str]:
    """One unit: counts become the rows before each block; n_filled columns of rows that stay empty
    are filled."""
    w = Writer()
    words = w.words(WORDS)
    n_blocks = w.let(f"udiv i64 {w.add(words['n'], BLOCK - 1)}, {BLOCK}")
    with w.loop("0", n_blocks, [("i64", "0")]) as loop:
        at = w.at("i64", words["counts_at"], loop.index)
        count = w.load("i64", at)
        w.store("i64", loop.carried[0], at)
        loop.next = [w.add(loop.carried[0], count)]
    if n_filled:
        _fill(w, words, loop.results[0], n_filled)
    w.put("ret void")
    return kernel_of("compact_sum", w)


def _fill(w: Writer, words: dict[str, str], row: str, n_dims: int) -> None:
    with w.loop(row, words["size"]) as loop:
        out = w.moved(words["rows_at"], w.mul(loop.index, words["row_stride"]))
        for _ in range(n_dims):
            w.store("i64", words["fill"], out)
            out = w.moved(out, words["column_stride"])


@lru_cache(maxsize=128)
def write_kernel(action: Action, is_alone: bool) -> tuple[str, str]:
    """A unit serves a block's elements from row counts[unit] on; alone, all blocks one by one."""
    w = Writer()
    words = w.words(WORDS)
    dims = [
        w.words(("size", "reciprocal", "stride"), w.at("i64", "%args", len(WORDS) + 3 * d))
        for d in range(len(action.dims))
    ]
    if is_alone:
        n_blocks = w.let(f"udiv i64 {w.add(words['n'], BLOCK - 1)}, {BLOCK}")
        with w.loop("0", n_blocks, [("i64", "0")]) as loop:
            loop.next = [_block_rows(w, action, words, dims, loop.index, loop.carried[0])]
        if action.name == "places":
            _fill(w, words, loop.results[0], len(dims))
    else:
        with w.loop("%begin", "%end") as loop:
            row = w.load("i64", w.at("i64", words["counts_at"], loop.index))
            _block_rows(w, action, words, dims, loop.index, row)
    w.put("ret void")
    return kernel_of(f"compact_{action.name}", w, _table())


def _table() -> str:
    """For each byte, the numbers of its bits that are set, and zeros."""
    rows = []
    for byte in range(256):
        places = [bit for bit in range(8) if byte >> bit & 1]
        places += [0] * (8 - len(places))
        rows.append("<8 x i8> <" + ", ".join(f"i8 {place}" for place in places) + ">")
    body = ",\n".join(rows)
    return f"@places_of = internal constant [256 x <8 x i8>] [\n{body}\n]\n"


def _block_rows(
    w: Writer, action: Action, words: dict[str, str], dims: list[dict[str, str]], unit: str,
    row: str,
) -> str:  # fmt: skip
    """Serve a block's rows from `row` on; the row after them."""
    first, end = _block(w, words, unit)
    found = _places(w, words["mask_at"], first, end)
    n = w.smaller(found, w.sub(words["size"], row))
    rows = w.moved(words["rows_at"], w.mul(row, words["row_stride"]))
    with w.loop("0", n, [("ptr", rows)]) as loop:
        place = w.load("i32", w.at("i32", "%scratch", loop.index))
        coordinates = _coordinates(w, action, w.add(first, w.let(f"zext i32 {place} to i64")), dims)
        own = loop.carried[0]
        if action.name == "places":
            _store_coordinates(w, own, coordinates, words["column_stride"])
        else:
            kind, data = f"i{8 * action.n_bytes}", words["data_at"]
            for coordinate, dim in zip(coordinates, dims, strict=True):
                if coordinate:
                    data = w.moved(data, w.mul(coordinate, dim["stride"]))
            source, target = (data, own) if action.name == "select" else (own, data)
            w.store(kind, w.load(kind, source), target)
        loop.next = [w.moved(own, words["row_stride"])]
    return w.add(row, found)


def _store_coordinates(w: Writer, row: str, coordinates: list[str], stride: str) -> None:
    for coordinate in coordinates:
        w.store("i64", coordinate or "0", row)
        row = w.moved(row, stride)


def _coordinates(w: Writer, action: Action, place: str, dims: list[dict[str, str]]) -> list[str]:
    """Coordinates of a place; "" where a dimension has one place only."""
    used = [number for number, is_used in enumerate(action.dims) if is_used]
    result = [""] * len(dims)
    for number in reversed(used[1:]):
        quotient = _quotient(w, place, dims[number], action.is_wide)
        result[number] = w.sub(place, w.mul(quotient, dims[number]["size"]))
        place = quotient
    if used:
        result[used[0]] = place
    return result


def _quotient(w: Writer, number: str, size: dict[str, str], is_wide: bool) -> str:
    """number / size: the upper word of number * ceil(2**64 / size), exact below 2**32."""
    if is_wide:
        return w.let(f"udiv i64 {number}, {size['size']}")
    left = w.let(f"zext i64 {number} to i128")
    right = w.let(f"zext i64 {size['reciprocal']} to i128")
    product = w.let(f"mul i128 {left}, {right}")
    return w.let(f"trunc i128 {w.let(f'lshr i128 {product}, 64')} to i64")


def _places(w: Writer, mask: str, first: str, end: str) -> str:
    """Numbers within the block of what is not zero, 32 bits each, to scratch; how many."""
    with w.loop(first, end, [("i64", "0")], LANES) as loop:
        bits = _bits(w, mask, loop.index, end)
        base = w.let(f"trunc i64 {w.sub(loop.index, first)} to i32")
        count = loop.carried[0]
        for part in range(LANES // 8):
            byte = w.let(f"and i32 {w.let(f'lshr i32 {bits}, {8 * part}')}, 255")
            wide = w.let(f"zext i32 {byte} to i64")
            row = w.let(f"getelementptr [256 x <8 x i8>], ptr @places_of, i64 0, i64 {wide}")
            places = w.let(f"zext <8 x i8> {w.load('<8 x i8>', row, 8)} to <8 x i32>")
            start = w.let(f"add i32 {base}, {8 * part}")
            one = w.let(f"insertelement <8 x i32> poison, i32 {start}, i64 0")
            all_same = "<8 x i32> zeroinitializer"
            starts = w.let(f"shufflevector <8 x i32> {one}, <8 x i32> poison, {all_same}")
            w.store(
                "<8 x i32>",
                w.let(f"add <8 x i32> {places}, {starts}"),
                w.at("i32", "%scratch", count),
                4,
            )
            count = w.add(count, _ones(w, byte))
        loop.next = [count]
    return loop.results[0]
