"""Plans of writing by index: which dimensions are places, columns and units.

Keeps     the same bits for any number of units: they split columns and batches, never the places.
          Where indices repeat, float16 and bfloat16 sums follow torch: scatter_add and index_add
          sum in float32 and round once, index_put and an embedding's cotangents round each sum.
          (A target much larger than what is added to it is not widened: each sum is rounded.)
Touches   config, features, steps, walks, packing.
Not here  the text (scatter_text.py), operators (ops/indexing/scatters.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from flambeau.base.dtypes import bfloat16, float16, float32
from flambeau.base.layout import contiguous_strides
from flambeau.devices.cpu import features
from flambeau.devices.cpu.packing import copy_step
from flambeau.devices.cpu.scatter.scatter_text import ScatterClass, scatter_kernel
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep
from flambeau.devices.cpu.walks import Dim, collapsed, count, dims_of, ordered

# Elements moved by one unit before another thread is worth its start.
_UNIT_ELEMENTS: Final = 16_384
# Shortest run of columns of a unit, in bytes: two units do not share cache lines for long.
_COLUMN_BYTES: Final = 256
# Cache lines of a row of columns of a unit where each column has indices of its own.
_OWN_LINES: Final = 4
# Along one index, fewer places than this are not worth a unit of their own.
_LONG: Final = 16
_NARROW: Final = (float16, bfloat16)
# A target of at most so many elements for each one added is copied to float32 and back.
_WIDENED: Final = 8
NO_INDEX: Final = -(1 << 63)


@dataclass(frozen=True, slots=True)
class _Wide:
    """A target's copy in workspace."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


def add_rows(reads: Sequence[Any], writes: Sequence[Any], skipped: int | None = None) -> NativePlan:
    """target[index[i]] += rows[i]; target (size, ...), rows (n, ...), index (n,).

    skipped  an index that is passed over, none if negative; given for an embedding's cotangents"""
    index, rows = reads
    (target,) = writes
    if skipped is None and rows.dtype in _NARROW and len(target.shape) > 1:
        made = _widened(target, count(dims_of(rows.shape)))
        if made is not None:
            before, wide, after, workspace = made
            step = _places(index, rows, wide, 1, 1, "add", -1, is_wide=True)
            return NativePlan((before, *step.steps, after), workspace)
    return _places(index, rows, target, 1, 1, "add", -1 if skipped is None else skipped)


def put_rows(reads: Sequence[Any], writes: Sequence[Any], skipped: int = -1) -> NativePlan:
    """target[index[i]] = rows[i]; the last of equal indices wins, `skipped` as in add_rows."""
    return _places(reads[0], reads[1], writes[0], 1, 1, "put", skipped)


def _widened(target: Any, n_added: int) -> tuple[NativeStep, _Wide, NativeStep, int] | None:
    """Steps that copy a target to float32 and back, the copy, bytes of workspace for it; None for
    a target much larger than what is added."""
    n_elements = count(dims_of(target.shape))
    if n_elements > _WIDENED * n_added:
        return None
    strides = contiguous_strides(tuple(target.shape))
    there = collapsed(dims_of(target.shape, target.strides, strides))
    back: list[Dim] = [(size, second, first) for size, first, second in there]
    place, own = At("workspace"), At("write", 0)
    before = copy_step(own, place, there, target.dtype, float32)
    after = copy_step(place, own, back, float32, target.dtype)
    return before, _Wide(tuple(target.shape), strides), after, 4 * n_elements


def add_places(
    reads: Sequence[Any], writes: Sequence[Any], n_index_dims: int, n_target_dims: int
) -> NativePlan:
    """target[index] += values; an index runs over the first n_target_dims of target, row-major,
    and is itself of n_index_dims dimensions, the first ones of values."""
    return _places(reads[0], reads[1], writes[0], n_index_dims, n_target_dims, "add", -1)


def put_places(
    reads: Sequence[Any], writes: Sequence[Any], n_index_dims: int, n_target_dims: int
) -> NativePlan:
    """target[index] = values, as add_places."""
    return _places(reads[0], reads[1], writes[0], n_index_dims, n_target_dims, "put", -1)


def _places(
    index: Any, rows: Any, target: Any, n_index: int, n_target: int, fold: str, skipped: int,
    is_wide: bool = False,
) -> NativePlan:  # fmt: skip
    places = collapsed(dims_of(index.shape, index.strides, rows.strides[:n_index]))
    targets = collapsed(dims_of(target.shape[:n_target], target.strides[:n_target]))
    shape = target.shape[n_target:]
    own = (0,) * len(shape), rows.strides[n_index:], target.strides[n_target:]
    rest = ordered(dims_of(shape, *own), 2)
    column, batch = (rest[-1], rest[:-1]) if rest else (None, [])
    kind = "shared" if column else ""
    bound = count(dims_of(target.shape[:n_target]))
    return _plan(rows.dtype, fold, places, targets, batch, column, kind, bound, skipped, is_wide)


def add(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """target[..., index[...], ...] += source[...]: index along `dim`, all of index's shape but for
    target's size along dim."""
    index, source = reads
    (target,) = writes
    if source.dtype in _NARROW:
        made = _widened(target, count(dims_of(index.shape)))
        if made is not None:
            before, wide, after, workspace = made
            step = _along(index, source, wide, dim, "add", is_wide=True)
            return NativePlan((before, *step.steps, after), workspace)
    return _along(index, source, target, dim, "add")


def put(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """target[..., index[...], ...] = source[...], as add."""
    return _along(reads[0], reads[1], writes[0], dim, "put")


def fold(reads: Sequence[Any], writes: Sequence[Any], dim: int, word: str) -> NativePlan:
    """target[..., index[...], ...] = "mul", "max" or "min" of itself and source[...], as add."""
    return _along(reads[0], reads[1], writes[0], dim, word)


def _along(
    index: Any, source: Any, target: Any, dim: int, fold: str, is_wide: bool = False
) -> NativePlan:
    own: list[Dim] = [(index.shape[dim], index.strides[dim], source.strides[dim])]
    every = zip(index.shape, index.strides, source.strides, target.strides, strict=True)
    rest = ordered([each for d, each in enumerate(every) if d != dim and each[0] != 1], 2)
    column: Dim | None = None
    batch = rest
    # Along dim in one go where that is how index lies in memory; else columns side by side.
    if rest and not (own[0][0] >= _LONG and abs(own[0][1]) <= abs(rest[-1][1])):
        column, batch = rest[-1], rest[:-1]
    targets: list[Dim] = [(target.shape[dim], target.strides[dim])]
    kind = "own" if column else ""
    if column and all(each[1] == 0 for each in [*batch, column]):
        kind = "shared"  # one index expanded over the other dimensions
    bound = target.shape[dim]
    return _plan(source.dtype, fold, own, targets, batch, column, kind, bound, -1, is_wide)


def _plan(
    element: Any, fold: str, places: list[Dim], targets: list[Dim], batch: list[Dim],
    column: Dim | None, columns: str, bound: int, skipped: int, is_wide: bool,
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
    bits = features.vector_bits()
    wide = 4 if size == 2 and element.is_floating_point else size
    lanes = bits // (8 * wide) if contiguous else 0
    kind = ScatterClass(
        element, fold, len(places), len(targets), len(batch), columns, lanes, is_wide
    )  # fmt: skip
    name, text = scatter_kernel(kind)
    block = _block(columns, n_places, n_batch, n_columns, size)
    n_blocks = -(-n_columns // block)
    own = 4 if is_wide else size  # bytes of a target's element
    words: list[int | At] = [
        At("read", 0), At("read", 1), At("workspace" if is_wide else "write"), At("error"), bound,
        NO_INDEX if skipped < 0 else skipped, n_blocks, n_columns, block,
        8 * column[1], size * column[2], own * column[3],
    ]  # fmt: skip
    for length, index_stride, source_stride in places:
        words += [length, 8 * index_stride, size * source_stride]
    for length, stride in targets:
        words += [length, own * stride]
    for length, index_stride, source_stride, target_stride in batch:
        words += [length, 8 * index_stride, size * source_stride, own * target_stride]
    chunk = max(1, _UNIT_ELEMENTS // (n_places * min(block, n_columns)))
    return NativePlan((NativeStep(name, text, n_batch * n_blocks, chunk, tuple(words)),))


def _block(kind: str, n_places: int, n_batch: int, n_columns: int, size: int) -> int:
    """Columns of a unit, for about two units a thread."""
    threads = features.n_threads()
    total = n_places * n_batch * n_columns
    per_line = max(1, 64 // size)
    if kind == "own" and n_places > _LONG:
        # Each place of each column is elsewhere: few columns, so that their targets stay cached.
        return _OWN_LINES * per_line
    wanted = min(2 * threads, max(1, total // _UNIT_ELEMENTS))
    if threads == 1 or n_batch >= wanted:
        return n_columns
    n_blocks = min(-(-wanted // n_batch), max(1, n_columns * size // _COLUMN_BYTES))
    block = -(-n_columns // n_blocks)
    return -(-block // per_line) * per_line
