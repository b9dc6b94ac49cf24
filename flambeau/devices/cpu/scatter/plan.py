"""Plans of writing by index: which dimensions are places, columns and units.

Keeps     the same bits for any number of units: they split columns, batches and ranges of targets,
          never the places. Where indices repeat, each sum is rounded to the dtype, float16 and
          bfloat16 too, as in torch's index_add, index_put and embedding.
Touches   config, features, steps, walks.
Not here  the text (scatter_text.py), operators (ops/indexing/scatters.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features
from flambeau.devices.cpu.scatter.scatter_text import ScatterClass, scatter_kernel
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep
from flambeau.devices.cpu.walks import Dim, collapsed, count, dims_of, ordered

# Elements moved by one unit before another thread is worth its start.
_UNIT_ELEMENTS: Final = 16_384
# Shortest run of columns of a unit, in bytes: two units do not share cache lines for long.
_COLUMN_BYTES: Final = 256
# Places looked at for each range of targets: below, ranges cost more than they give.
_RANGE_PLACES: Final = 16_384
# Along one index, fewer places than this are not worth a unit of their own.
_LONG: Final = 16
NO_INDEX: Final = -(1 << 63)


def add_rows(reads: Sequence[Any], writes: Sequence[Any], skipped: int = -1) -> NativePlan:
    """target[index[i]] += rows[i]; target (size, ...), rows (n, ...), index (n,)."""
    return _rows(reads, writes, True, skipped)


def put_rows(reads: Sequence[Any], writes: Sequence[Any], skipped: int = -1) -> NativePlan:
    """target[index[i]] = rows[i]; the last of equal indices wins."""
    return _rows(reads, writes, False, skipped)


def _rows(reads: Sequence[Any], writes: Sequence[Any], adds: bool, skipped: int) -> NativePlan:
    index, rows = reads
    (target,) = writes
    return _places(index, rows, target, 1, 1, adds, skipped)


def add_places(
    reads: Sequence[Any], writes: Sequence[Any], n_index_dims: int, n_target_dims: int
) -> NativePlan:
    """target[index] += values; an index runs over the first n_target_dims of target, row-major,
    and is itself of n_index_dims dimensions, the first ones of values."""
    return _places(reads[0], reads[1], writes[0], n_index_dims, n_target_dims, True, -1)


def put_places(
    reads: Sequence[Any], writes: Sequence[Any], n_index_dims: int, n_target_dims: int
) -> NativePlan:
    """target[index] = values, as add_places."""
    return _places(reads[0], reads[1], writes[0], n_index_dims, n_target_dims, False, -1)


def _places(
    index: Any, rows: Any, target: Any, n_index: int, n_target: int, adds: bool, skipped: int
) -> NativePlan:
    places = collapsed(dims_of(index.shape, index.strides, rows.strides[:n_index]))
    targets = collapsed(dims_of(target.shape[:n_target], target.strides[:n_target]))
    zeros = (0,) * (len(target.shape) - n_target)
    rest = dims_of(target.shape[n_target:], zeros, rows.strides[n_index:], target.strides[n_target:])
    rest = ordered(rest, 2)
    column, batch = (rest[-1], rest[:-1]) if rest else (None, [])
    kind = "shared" if column else ""
    bound = count(dims_of(target.shape[:n_target]))
    return _plan(rows.dtype, adds, places, targets, batch, column, kind, bound, skipped)


def add(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """target[..., index[...], ...] += source[...]: index along `dim`, all of index's shape but for
    target's size along dim."""
    return _along(reads, writes, dim, True)


def put(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """target[..., index[...], ...] = source[...], as add."""
    return _along(reads, writes, dim, False)


def _along(reads: Sequence[Any], writes: Sequence[Any], dim: int, adds: bool) -> NativePlan:
    index, source = reads
    (target,) = writes
    own = [(index.shape[dim], index.strides[dim], source.strides[dim])]
    rest = [
        each
        for place, each in enumerate(
            zip(index.shape, index.strides, source.strides, target.strides, strict=True)
        )
        if place != dim and each[0] != 1
    ]
    rest = ordered(rest, 2)
    column: Dim | None = None
    batch = rest
    # Along dim in one go where that is how index lies in memory; else columns side by side.
    if rest and not (own[0][0] >= _LONG and abs(own[0][1]) <= abs(rest[-1][1])):
        column, batch = rest[-1], rest[:-1]
    targets = [(target.shape[dim], target.strides[dim])]
    kind = "own" if column else ""
    if column and all(each[1] == 0 for each in [*batch, column]):
        kind = "shared"  # one index expanded over the other dimensions
    return _plan(source.dtype, adds, own, targets, batch, column, kind, target.shape[dim], -1)


def _plan(
    element: Any, adds: bool, places: list[Dim], targets: list[Dim], batch: list[Dim],
    column: Dim | None, columns: str, bound: int, skipped: int,
) -> NativePlan:  # fmt: skip
    """Dimensions as in ScatterClass, strides in elements."""
    size = element.itemsize
    n_places, n_batch = count(places), count(batch)
    n_columns = column[0] if column else 1
    if not n_places * n_batch * n_columns:
        return NativePlan(())
    places = places or [(1, 0, 0)]
    targets = targets or [(1, 0)]
    column = column or (1, 0, 0, 0)
    contiguous = columns == "shared" and column[2:] == (1, 1)
    bits = CONFIG.vector_bits or features.vector_bits()
    wide = 4 if size == 2 and element.is_floating_point else size
    lanes = bits // (8 * wide) if contiguous else 0
    kind = ScatterClass(element, adds, len(places), len(targets), len(batch), columns, lanes)
    name, text = scatter_kernel(kind)
    block, n_ranges = _split(n_places, n_batch, n_columns, size, bound)
    width = max(1, -(-bound // n_ranges))
    n_blocks = -(-n_columns // block)
    words: list[int | At] = [
        At("read", 0), At("read", 1), At("write", 0), At("error"), bound, width,
        NO_INDEX if skipped < 0 else skipped, n_ranges, n_blocks, n_columns, block,
        8 * column[1], size * column[2], size * column[3],
    ]  # fmt: skip
    for length, index_stride, source_stride in places:
        words += [length, 8 * index_stride, size * source_stride]
    for length, stride in targets:
        words += [length, size * stride]
    for length, index_stride, source_stride, target_stride in batch:
        words += [length, 8 * index_stride, size * source_stride, size * target_stride]
    n_units = n_ranges * n_batch * n_blocks
    per_unit = max(1, n_places * n_columns // (n_blocks * n_ranges))
    chunk = max(1, _UNIT_ELEMENTS // per_unit)
    if n_ranges > 1:
        chunk = 1
    return NativePlan((NativeStep(name, text, n_units, chunk, tuple(words)),))


def _split(
    n_places: int, n_batch: int, n_columns: int, size: int, bound: int
) -> tuple[int, int]:
    """Columns of a unit, and ranges of targets, for about two units a thread."""
    threads = CONFIG.threads or features.usable_cores()
    total = n_places * n_batch * n_columns
    wanted = min(2 * threads, max(1, total // _UNIT_ELEMENTS))
    if threads == 1 or n_batch >= wanted:
        return n_columns, 1
    missing = -(-wanted // n_batch)
    lines = max(1, n_columns * size // _COLUMN_BYTES)
    n_blocks = min(missing, lines)
    block = -(-n_columns // n_blocks)
    per_line = max(1, 64 // size)
    block = n_columns if n_blocks == 1 else -(-block // per_line) * per_line
    n_blocks = -(-n_columns // block)
    n_ranges = 1
    if n_blocks * n_batch < min(wanted, threads) and n_places >= _RANGE_PLACES:
        n_ranges = max(1, min(threads // (n_blocks * n_batch), bound))
    return block, n_ranges
