"""Packing of a matrix product's operands as LLVM text, by a unit for itself or as a step.

Keeps     packing copies (and widens narrow dtypes), it never computes. What lies past the rows
          and columns of an operand inside a packed one is unspecified and never reaches C.
Touches   elements.
Not here  who packs what, and when (plan.py).

A is packed so that it is read back through a row and a column stride as in place:
    "rows"      k contiguous: whole rows, `target_stride` bytes apart
    "columns"   m contiguous: the rows of one tile, k by k; tiles are `target_stride` bytes apart
    "strided"   neither: as rows, element by element
B is packed as panels of one tile's width, k by k, contiguous:
    "rows"      n contiguous: copied
    "columns"   k contiguous: transposed in registers
    "strided"   neither: element by element
Rows and panels are padded to whole vectors along k, since whole vectors are stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm.elements import (
    Element,
    Lines,
    batch_entry,
    batch_indices,
    element_of,
)

# Words of a packing step, in order; then for each batch dimension its size, source and target
# strides. A unit is a block of rows of A, or of columns of B, of one batch entry: `count` of them
# in all, `stride` bytes apart in the source; a packed block takes `block_stride` bytes.
PACK_WORDS: Final = (
    "source", "target", "count", "k", "stride", "k_stride", "target_stride", "block",
    "block_stride", "n_blocks",
)  # fmt: skip


@lru_cache(maxsize=128)
def pack_a_function(element: Element, kind: str, tile_rows: int) -> str:
    """`@pack_a(source, target, rows, length, row_stride, column_stride, target_stride)`."""
    lines = Lines()
    if kind == "columns":
        _copy_row_tiles(lines, element, tile_rows)
    else:
        _copy_rows(lines, element, element.lanes if kind == "rows" else 0)
    return _function(
        "pack_a(ptr %source, ptr %target, i64 %rows, i64 %length, i64 %row_stride, "
        "i64 %column_stride, i64 %target_stride)",
        lines,
    )


def _copy_rows(lines: Lines, element: Element, lanes: int) -> None:
    """Row by row, `lanes` elements at a time; one at a time where lanes is 0."""
    n_packed, n_bytes = element.n_packed_bytes, element.n_bytes
    step = lanes or 1
    inner_step = str(n_bytes * step) if lanes else "%column_stride"
    stored = f"<{lanes} x {element.stored}>" if lanes else element.stored
    packed = f"<{lanes} x {element.accumulated}>" if lanes else element.accumulated
    lines.take(f"""\
entry:
  %some_rows = icmp sgt i64 %rows, 0
  %some_length = icmp sgt i64 %length, 0
  %some = and i1 %some_rows, %some_length
  br i1 %some, label %row, label %done
row:
  %i = phi i64 [ 0, %entry ], [ %ni, %row_done ]
  %from_row = phi ptr [ %source, %entry ], [ %nfrom_row, %row_done ]
  %to_row = phi ptr [ %target, %entry ], [ %nto_row, %row_done ]
  br label %copy
copy:
  %j = phi i64 [ 0, %row ], [ %nj, %copy ]
  %from = phi ptr [ %from_row, %row ], [ %nfrom, %copy ]
  %to = phi ptr [ %to_row, %row ], [ %nto, %copy ]
  %one = load {stored}, ptr %from, align {n_bytes}""")
    value = element.widen(lines, "%one", lanes)
    lines.take(f"""\
  store {packed} {value}, ptr %to, align {n_packed}
  %nfrom = getelementptr i8, ptr %from, i64 {inner_step}
  %nto = getelementptr i8, ptr %to, i64 {n_packed * step}
  %nj = add i64 %j, {step}
  %more = icmp slt i64 %nj, %length
  br i1 %more, label %copy, label %row_done
row_done:
  %nfrom_row = getelementptr i8, ptr %from_row, i64 %row_stride
  %nto_row = getelementptr i8, ptr %to_row, i64 %target_stride
  %ni = add i64 %i, 1
  %more_rows = icmp slt i64 %ni, %rows
  br i1 %more_rows, label %row, label %done
done:
  ret void""")


def _copy_row_tiles(lines: Lines, element: Element, tile_rows: int) -> None:
    """Step by step along k: a tile's rows, then the next tile's. Whole vectors are stored, and
    what is too much is overwritten by the next step of k, or lies in the tile's padding."""
    n_packed, n_bytes, lanes = element.n_packed_bytes, element.n_bytes, element.lanes
    lines.take("""\
entry:
  %some_rows = icmp sgt i64 %rows, 0
  %some_length = icmp sgt i64 %length, 0
  %some = and i1 %some_rows, %some_length
  br i1 %some, label %step, label %done
step:
  %k = phi i64 [ 0, %entry ], [ %nk, %step_done ]
  %from_step = phi ptr [ %source, %entry ], [ %nfrom_step, %step_done ]
  %to_step = phi ptr [ %target, %entry ], [ %nto_step, %step_done ]
  br label %copy
copy:
  %i = phi i64 [ 0, %step ], [ %ni, %copy ]
  %from = phi ptr [ %from_step, %step ], [ %nfrom, %copy ]
  %to = phi ptr [ %to_step, %step ], [ %nto, %copy ]""")
    for v in range(-(-tile_rows // lanes)):
        source = lines.offset("%from", v * lanes * n_bytes)
        one = lines.let(f"load <{lanes} x {element.stored}>, ptr {source}, align {n_bytes}")
        value = element.widen(lines, one, lanes)
        target = lines.offset("%to", v * lanes * n_packed)
        lines.put(f"store {element.vector} {value}, ptr {target}, align {n_packed}")
    lines.take(f"""\
  %nfrom = getelementptr i8, ptr %from, i64 {tile_rows * n_bytes}
  %nto = getelementptr i8, ptr %to, i64 %target_stride
  %ni = add i64 %i, {tile_rows}
  %more = icmp slt i64 %ni, %rows
  br i1 %more, label %copy, label %step_done
step_done:
  %nfrom_step = getelementptr i8, ptr %from_step, i64 %column_stride
  %nto_step = getelementptr i8, ptr %to_step, i64 {tile_rows * n_packed}
  %nk = add i64 %k, 1
  %more_steps = icmp slt i64 %nk, %length
  br i1 %more_steps, label %step, label %done
done:
  ret void""")


@lru_cache(maxsize=128)
def pack_b_function(element: Element, kind: str, vectors: int) -> str:
    """`@pack_b(source, target, length, columns, row_stride, column_stride, panel_stride)`."""
    lines = Lines()
    width = vectors * element.lanes
    lines.take(f"""\
entry:
  %some_k = icmp sgt i64 %length, 0
  %some_columns = icmp sgt i64 %columns, 0
  %some = and i1 %some_k, %some_columns
  %panel_step = mul i64 %column_stride, {width}
  br i1 %some, label %panel, label %done
panel:
  %left = phi i64 [ %columns, %entry ], [ %nleft, %panel_done ]
  %source_panel = phi ptr [ %source, %entry ], [ %nsource_panel, %panel_done ]
  %target_panel = phi ptr [ %target, %entry ], [ %ntarget_panel, %panel_done ]""")
    {"rows": _copy_panel, "columns": _transpose_panel, "strided": _gather_panel}[kind](
        lines, element, vectors
    )
    lines.take("""\
panel_done:
  %nsource_panel = getelementptr i8, ptr %source_panel, i64 %panel_step
  %ntarget_panel = getelementptr i8, ptr %target_panel, i64 %panel_stride""")
    lines.put(f"%nleft = sub i64 %left, {width}")
    lines.take("""\
  %more_panels = icmp sgt i64 %nleft, 0
  br i1 %more_panels, label %panel, label %done
done:
  ret void""")
    return _function(
        "pack_b(ptr %source, ptr %target, i64 %length, i64 %columns, i64 %row_stride, "
        "i64 %column_stride, i64 %panel_stride)",
        lines,
    )


def _copy_panel(lines: Lines, element: Element, vectors: int) -> None:
    """Rows of a panel are neighbours in memory: whole vectors, past the last column too."""
    lanes, n_packed = element.lanes, element.n_packed_bytes
    lines.take("""\
  br label %copy
copy:
  %k = phi i64 [ 0, %panel ], [ %nk, %copy ]
  %from = phi ptr [ %source_panel, %panel ], [ %nfrom, %copy ]
  %to = phi ptr [ %target_panel, %panel ], [ %nto, %copy ]""")
    for v in range(vectors):
        pointer = lines.offset("%from", v * lanes * element.n_bytes)
        stored = f"<{lanes} x {element.stored}>"
        one = lines.let(f"load {stored}, ptr {pointer}, align {element.n_bytes}")
        value = element.widen(lines, one, lanes)
        target = lines.offset("%to", v * lanes * n_packed)
        lines.put(f"store {element.vector} {value}, ptr {target}, align {n_packed}")
    lines.take(f"""\
  %nfrom = getelementptr i8, ptr %from, i64 %row_stride
  %nto = getelementptr i8, ptr %to, i64 {vectors * lanes * n_packed}
  %nk = add i64 %k, 1
  %more = icmp slt i64 %nk, %length
  br i1 %more, label %copy, label %panel_done""")


def load_transposed(lines: Lines, element: Element, pointers: list[str]) -> list[str]:
    """Vectors k, k + 1, ... of what `pointers` (one a lane) point at, contiguous along k: as many
    as a piece of 16 bytes has elements.

    Pieces go to their half of a vector as they are loaded, so that what is left is a transpose
    inside pieces, which every CPU does at full speed.
    """
    lanes, piece = element.lanes, 16 // element.n_packed_bytes
    loaded = _loaded(lines, element, pointers, piece)
    rows = []
    for g in range(piece):
        parts = [loaded[s * piece + g] for s in range(lanes // piece)]
        size = piece
        while len(parts) > 1:
            kind = f"<{size} x {element.accumulated}>"
            order = range(2 * size)
            parts = [
                _shuffled(lines, kind, low, high, order)
                for low, high in zip(parts[::2], parts[1::2], strict=True)
            ]
            size *= 2
        rows.append(parts[0])
    return _transposed_pieces(lines, element, rows, piece)


def load_lines_transposed(lines: Lines, element: Element, pointers: list[str]) -> list[str]:
    """The same by whole vectors of four pieces, a line of the cache: `lanes` vectors, in order of
    k. A line is read once, so lines that fight for a place in the cache do no harm."""
    piece = 16 // element.n_packed_bytes
    loaded = _loaded(lines, element, pointers, element.lanes)
    columns = []
    for g in range(piece):
        halves = [piece_order(piece, each) for each in ((0, 1, 4, 5), (2, 3, 6, 7))]
        turns = [piece_order(piece, each) for each in ((0, 2, 4, 6), (1, 3, 5, 7))]
        first, second, third, fourth = (loaded[s * piece + g] for s in range(4))
        kind = element.vector
        upper = [_shuffled(lines, kind, first, second, order) for order in halves]
        lower = [_shuffled(lines, kind, third, fourth, order) for order in halves]
        columns.append(
            [
                _shuffled(lines, kind, high, low, order)
                for high, low in zip(upper, lower, strict=True)
                for order in turns
            ]
        )
    rows = []
    for pieces in zip(*columns, strict=True):
        rows += _transposed_pieces(lines, element, list(pieces), piece)
    return rows


def piece_order(piece: int, pieces: tuple[int, ...]) -> list[int]:
    """Numbers of the elements of pieces, in the pieces' order."""
    return [piece * each + i for each in pieces for i in range(piece)]


def _loaded(lines: Lines, element: Element, pointers: list[str], count: int) -> list[str]:
    """`count` elements from each of the pointers on, widened."""
    stored = f"<{count} x {element.stored}>"
    return [
        element.widen(
            lines, lines.let(f"load {stored}, ptr {pointer}, align {element.n_bytes}"), count
        )
        for pointer in pointers
    ]


def _shuffled(lines: Lines, kind: str, left: str, right: str, order: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {each}" for each in order)
    return lines.let(f"shufflevector {kind} {left}, {kind} {right}, <{len(order)} x i32> <{mask}>")


def _transposed_pieces(lines: Lines, element: Element, rows: list[str], piece: int) -> list[str]:
    """Interleaving rows half a piece apart, once for each bit of the piece, transposes it."""
    for _ in range(piece.bit_length() - 1):
        rows = _interleaved(lines, element, rows, piece)
    return rows


def _interleaved(lines: Lines, element: Element, rows: list[str], piece: int) -> list[str]:
    """Rows i and i + half of a piece, their elements in turn: low halves of pieces, then high."""
    lanes = element.lanes
    result = []
    for low, high in zip(rows[: piece // 2], rows[piece // 2 :], strict=True):
        for start in (0, piece // 2):
            order = [
                base + start + lane // 2 + (lanes if lane % 2 else 0)
                for base in range(0, lanes, piece)
                for lane in range(piece)
            ]
            result.append(_shuffled(lines, element.vector, low, high, order))
    return result


def _transpose_panel(lines: Lines, element: Element, vectors: int) -> None:
    """Columns of a panel are contiguous along k: a few steps of k of one vector at a time.

    Columns past the last one repeat it.
    """
    lanes, n_packed = element.lanes, element.n_packed_bytes
    piece = 16 // n_packed
    row_bytes = vectors * lanes * n_packed
    lines.put("br label %group")
    lines.label("group")
    lines.put("%first = phi i64 [ 0, %panel ], [ %nfirst, %group_done ]")
    last = lines.let("sub i64 %left, 1")
    starts = []
    for lane in range(lanes):
        column = lines.smaller(lines.let(f"add i64 %first, {lane}"), last)
        starts.append(lines.offset("%source_panel", lines.let(f"mul i64 {column}, %column_stride")))
    to_group = lines.offset("%target_panel", lines.let(f"mul i64 %first, {n_packed}"))
    lines.take(f"""\
  br label %copy
copy:
  %k = phi i64 [ 0, %group ], [ %nk, %copy ]
  %to = phi ptr [ {to_group}, %group ], [ %nto, %copy ]""")
    at = lines.let(f"mul i64 %k, {element.n_bytes}")
    rows = load_transposed(lines, element, [lines.offset(start, at) for start in starts])
    for i, value in enumerate(rows):
        target = lines.offset("%to", i * row_bytes)
        lines.put(f"store {element.vector} {value}, ptr {target}, align {n_packed}")
    lines.take(f"""\
  %nto = getelementptr i8, ptr %to, i64 {piece * row_bytes}
  %nk = add i64 %k, {piece}
  %more = icmp slt i64 %nk, %length
  br i1 %more, label %copy, label %group_done
group_done:
  %nfirst = add i64 %first, {lanes}
  %in_panel = icmp slt i64 %nfirst, {vectors * lanes}
  %in_columns = icmp slt i64 %nfirst, %left
  %more_groups = and i1 %in_panel, %in_columns
  br i1 %more_groups, label %group, label %panel_done""")


def _gather_panel(lines: Lines, element: Element, vectors: int) -> None:
    """No dimension is contiguous: element by element, no further than the last column."""
    width = vectors * element.lanes
    count = lines.smaller("%left", width)
    lines.take(f"""\
  br label %line
line:
  %k = phi i64 [ 0, %panel ], [ %nk, %line_done ]
  %from_line = phi ptr [ %source_panel, %panel ], [ %nfrom_line, %line_done ]
  %to_line = phi ptr [ %target_panel, %panel ], [ %nto_line, %line_done ]
  br label %copy
copy:
  %j = phi i64 [ 0, %line ], [ %nj, %copy ]
  %from = phi ptr [ %from_line, %line ], [ %nfrom, %copy ]
  %to = getelementptr {element.accumulated}, ptr %to_line, i64 %j
  %one = load {element.stored}, ptr %from, align {element.n_bytes}""")
    value = element.widen(lines, "%one", 0)
    lines.take(f"""\
  store {element.accumulated} {value}, ptr %to, align {element.n_packed_bytes}
  %nfrom = getelementptr i8, ptr %from, i64 %column_stride
  %nj = add i64 %j, 1
  %more = icmp slt i64 %nj, {count}
  br i1 %more, label %copy, label %line_done
line_done:
  %nfrom_line = getelementptr i8, ptr %from_line, i64 %row_stride
  %nto_line = getelementptr i8, ptr %to_line, i64 {width * element.n_packed_bytes}
  %nk = add i64 %k, 1
  %more_lines = icmp slt i64 %nk, %length
  br i1 %more_lines, label %line, label %panel_done""")


def _function(signature: str, lines: Lines) -> str:
    body = "\n".join(lines.text)
    return f"define internal fastcc void @{signature} nounwind {{\n{body}\n}}\n"


@lru_cache(maxsize=256)
def pack_kernel(
    kind_of: dtype, vector_bits: int, operand: str, kind: str, tile: int, n_batch: int
) -> tuple[str, str]:
    """Name and text of a step that packs operand "a" or "b" whole, for tiles of `tile` rows or
    vectors."""
    element = element_of(kind_of, vector_bits)
    lines = Lines()
    lines.label("entry")
    words = {}
    for index, word in enumerate(PACK_WORDS):
        what = "ptr" if word in ("source", "target") else "i64"
        words[word] = lines.let(f"load {what}, ptr {lines.offset('%args', 8 * index)}")
    lines.put("%has_units = icmp slt i64 %begin, %end")
    lines.put("br i1 %has_units, label %unit, label %done")
    lines.label("unit")
    lines.put("%u = phi i64 [ %begin, %entry ], [ %nu, %unit ]")
    batch = lines.let(f"sdiv i64 %u, {words['n_blocks']}")
    block = lines.let(f"srem i64 %u, {words['n_blocks']}")
    indices = batch_indices(lines, batch, n_batch, len(PACK_WORDS), 3)
    source, target = batch_entry(
        lines, indices, len(PACK_WORDS), (words["source"], words["target"])
    )
    first = lines.let(f"mul i64 {block}, {words['block']}")
    left = lines.let(f"sub i64 {words['count']}, {first}")
    count = lines.smaller(left, words["block"])
    source = lines.offset(source, lines.let(f"mul i64 {first}, {words['stride']}"))
    target = lines.offset(target, lines.let(f"mul i64 {block}, {words['block_stride']}"))
    sizes = [count, words["k"]] if operand == "a" else [words["k"], count]
    strides = [words["stride"], words["k_stride"]]
    row, column = strides if operand == "a" else strides[::-1]
    lines.put(
        f"call fastcc void @pack_{operand}(ptr {source}, ptr {target}, i64 {sizes[0]}, "
        f"i64 {sizes[1]}, i64 {row}, i64 {column}, i64 {words['target_stride']})"
    )
    if operand == "a":
        function = pack_a_function(element, kind, tile)
    else:
        function = pack_b_function(element, kind, tile)
    lines.take("""\
  %nu = add i64 %u, 1
  %more_units = icmp slt i64 %nu, %end
  br i1 %more_units, label %unit, label %done
done:
  ret void""")
    body = "\n".join(lines.text)
    text = (
        f"{function}\ndefine void @KERNEL(ptr %args, i64 %begin, i64 %end, ptr %scratch) "
        f"nounwind {{\n{body}\n}}\n"
    )
    name = f"pack_{operand}_{kind_of.short_name}_{sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@KERNEL(", f"@{name}(")
