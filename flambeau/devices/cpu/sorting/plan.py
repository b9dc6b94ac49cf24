"""Plans of sorting: short rows by counting, rows by digits, few long rows on all threads.

Keeps     stable, so that every way gives the same result.
Touches   config, features, steps, walks.
Not here  the text (records_text.py and its neighbours), operators (ops/indexing)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.sorting import radix_text, rows_text, select_text
from flambeau.devices.cpu.sorting.records_text import Records, Results
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep
from flambeau.devices.cpu.walks import Dim, collapsed, count

# A row of so many elements is sorted by all threads if there are fewer rows than threads.
_LONG: Final = 65_536
# Elements of a chunk of units, and least of a chunk of a long row.
_CHUNK_ELEMENTS: Final = 8_192
_CHUNK_LEAST: Final = 16_384
# The first n / 4 elements or more are found by sorting all.
_MANY: Final = 4
# Bits of a digit. Long rows take fewer passes, unless keys and places lie apart: twice the cache
# lines (measured for 1e6 elements: 25 and 30 ms with 11 and 8 for float32, 80 and 67 for float64).
_RADIX: Final = 8
_RADIX_LONG: Final = 11


class _Rows:
    """Rows to sort: strides in bytes; outer dimensions (size, source, values, indices)."""

    def __init__(self, source: Any, values: Any, indices: Any, dim: int, wanted: str) -> None:
        self.wanted = Results(wanted != "indices", wanted != "values")
        size = source.dtype.itemsize
        widths = (size, size, 8)
        operands = (source, values, indices)
        self.n = source.shape[dim]
        self.n_results = values.shape[dim]
        self.steps = [m.strides[dim] * width for m, width in zip(operands, widths, strict=True)]
        dims: list[Dim] = [
            (length, *[m.strides[d] * width for m, width in zip(operands, widths, strict=True)])
            for d, length in enumerate(source.shape)
            if d != dim and length != 1
        ]
        self.outer = collapsed(dims)
        self.count = count(self.outer)

    def words(self, places: int, area: int, offsets: Sequence[int] = (0, 0, 0)) -> list[int | At]:
        """Words that every kernel of the family takes first."""
        values = At("write", 0, offsets[1]) if self.wanted.values else 0
        indices = At("write", 1, offsets[2]) if self.wanted.indices else 0
        return [
            At("read", 0, offsets[0]), values, indices, self.n, self.n_results, *self.steps,
            places, area,
        ]  # fmt: skip

    def offsets(self, number: int) -> list[int]:
        """Bytes from the operands' starts to row `number`."""
        result = [0, 0, 0]
        for length, *strides in reversed(self.outer):
            number, at = divmod(number, length)
            result = [one + at * stride for one, stride in zip(result, strides, strict=True)]
        return result


def sort(
    reads: Sequence[Any], writes: Sequence[Any], dim: int, descending: bool = False,
    wanted: str = "both",
) -> NativePlan:  # fmt: skip
    """(values, indices) of input sorted along `dim`, stable, NaN as the largest.

    wanted  "both", "values" or "indices": the other one is left alone"""
    rows = _Rows(reads[0], writes[0], writes[1], dim, wanted)
    return _sorted(reads[0].dtype, rows, descending)


def topk(
    reads: Sequence[Any], writes: Sequence[Any], dim: int, k: int, largest: bool = True,
    wanted: str = "both",
) -> NativePlan:  # fmt: skip
    """(values, indices) of the k largest or smallest along `dim`, in order; of equal ones the
    first come first."""
    rows = _Rows(reads[0], writes[0], writes[1], dim, wanted)
    n, element = rows.n, reads[0].dtype
    if rows.count and 0 < k <= n // _MANY and n > rows_text.SHORT and n < 1 << 32:
        return _selected(_records(element, largest, n), rows)
    return _sorted(element, rows, largest)


def _selected(records: Records, rows: _Rows) -> NativePlan:
    """Candidates of chunks of rows, then of whole rows."""
    records = replace(records, radix=_RADIX)
    n, k, results = rows.n, rows.n_results, rows.wanted
    threads = features.n_threads()
    least = max(_LONG // 4, 8 * k)
    missing = -(-2 * threads // rows.count) if threads > 1 else 1
    n_chunks = max(1, min(missing, n // least))
    chunk = -(-n // n_chunks)
    n_chunks = -(-n // chunk)
    capacity = 2 * k + (8 if k <= 32 else 64)
    area = rows_text.area_bytes(records, capacity + select_text.STRIDE)
    total = (n_chunks - 1) * k + min(k, n - (n_chunks - 1) * chunk)
    list_bytes = rows_text.area_bytes(records, total)
    is_direct = n_chunks == 1
    words: list[int | At] = [
        *rows.words(rows_text.places_of(capacity + select_text.STRIDE), area),
        0 if is_direct else At("workspace"), list_bytes, rows_text.places_of(total), chunk,
        n_chunks, capacity, total,
    ]  # fmt: skip
    for dim in rows.outer:
        words += dim
    arguments, n_outer = tuple(words), len(rows.outer)
    is_contiguous = rows.steps[0] == records.element.itemsize
    kernel = select_text.select_kernel(records, results, n_outer, is_contiguous, is_direct)
    per_chunk = max(1, _CHUNK_ELEMENTS // chunk)
    scratch = 2 * area + records.histogram_bytes
    steps = [NativeStep(*kernel, rows.count * n_chunks, per_chunk, arguments, scratch)]
    if is_direct:
        return NativePlan(tuple(steps))
    merge = select_text.merge_kernel(records, results, n_outer)
    scratch = list_bytes + records.histogram_bytes
    steps.append(NativeStep(*merge, rows.count, 1, arguments, scratch))
    return NativePlan(tuple(steps), rows.count * list_bytes)


def _records(element: Any, descending: bool, n: int) -> Records:
    is_packed = element.itemsize <= 4
    radix = _RADIX_LONG if n >= _LONG and is_packed else _RADIX
    return Records(element, descending, "i32" if n < 1 << 32 else "i64", radix)


def _sorted(element: Any, rows: _Rows, descending: bool) -> NativePlan:
    n = rows.n
    if not n * rows.count * rows.n_results:
        return NativePlan(())
    records, results = _records(element, descending, n), rows.wanted
    threads = features.n_threads()
    if n >= _LONG and rows.count < threads:
        return _long_rows(records, results, rows, threads)
    area = rows_text.area_bytes(records, n)
    words = rows.words(rows_text.places_of(n), area)
    for dim in rows.outer:
        words += dim
    chunk = max(1, _CHUNK_ELEMENTS // n)
    if n <= rows_text.SHORT:
        name, text = rows_text.short_row_kernel(records, results, len(rows.outer))
        scratch = area
    else:
        name, text = rows_text.row_kernel(records, results, len(rows.outer))
        scratch = rows_text.scratch_bytes(records, n)
    return NativePlan((NativeStep(name, text, rows.count, chunk, tuple(words), scratch),))


def _long_rows(records: Records, results: Results, rows: _Rows, threads: int) -> NativePlan:
    """Rows one after the other, each on all threads."""
    n = rows.n
    chunk = max(_CHUNK_LEAST, -(-n // (4 * threads)))
    n_chunks = -(-n // chunk)
    area = rows_text.area_bytes(records, n)
    shifts = records.shifts
    flags = 2 * area
    bits = flags + 64 * -(-len(shifts) // 8)
    counts = bits + 64 * -(-n_chunks // 4)
    workspace = counts + 8 * n_chunks * records.n_bins
    steps: list[NativeStep] = []
    for number in range(rows.count):
        common = [
            *rows.words(rows_text.places_of(n), area, rows.offsets(number)), At("workspace"),
            At("workspace", 0, flags), At("workspace", 0, bits), At("workspace", 0, counts),
            chunk, n_chunks,
        ]  # fmt: skip

        def step(
            kernel: tuple[str, str], n_units: int, digit: int,
            common: list[int | At] = common,
        ) -> NativeStep:  # fmt: skip
            shift = shifts[digit] if digit < len(shifts) else 0
            return NativeStep(*kernel, n_units, 1, (*common, digit, shift))

        steps.append(step(radix_text.build_kernel(records), n_chunks, 0))
        steps.append(step(radix_text.survey_kernel(records), 1, 0))
        for digit in range(len(shifts)):
            if digit:
                steps.append(step(radix_text.count_kernel(records), n_chunks, digit))
            steps.append(step(radix_text.place_kernel(records), 1, digit))
            steps.append(step(radix_text.move_kernel(records), n_chunks, digit))
        emit = radix_text.emit_kernel(records, results)
        steps.append(step(emit, -(-rows.n_results // chunk), len(shifts)))
    return NativePlan(tuple(steps), workspace)
