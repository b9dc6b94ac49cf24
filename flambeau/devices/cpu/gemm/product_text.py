"""Matrix product as LLVM text: the loops over units, blocks of k and tiles.

Keeps     tiles, packing blocks and units only choose which elements are computed when; how one is
          computed is tile_text.py's alone.
Touches   tile_text, pack_text, elements, jit (texts made late).
Not here  which tile, packing and units a product gets (grid.py).

A unit is a block of rows by a block of columns of C over the whole of k. Tiles of A are a_tile
bytes apart, panels of B (the columns of one tile) b_panel bytes, in place as well as packed. Blocks
of k that are packed together (k_block, a multiple of 256) keep their running sums in scratch until
the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import Final, NamedTuple

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm.elements import (
    Element,
    Lines,
    batch_entry,
    batch_indices,
    element_of,
)
from flambeau.devices.cpu.gemm.pack_text import pack_a_function, pack_b_function
from flambeau.devices.cpu.gemm.tile_text import CONTEXT, ragged_function, tile_function
from flambeau.devices.cpu.jit import LateText

# Folders of flambeau whose files decide what the text of a class is.
_SOURCES: Final = ("base", "devices/cpu/gemm")

# Run-time words of a product kernel, in order; then for each batch dimension its size and the
# byte strides of a, b and c.
WORDS: Final = (
    "a", "b", "c", "m", "n", "k", "k_block", "row_block", "column_block", "n_row_blocks",
    "n_column_blocks", "row_step", "column_step", "a_block", "a_tile", "a_row", "a_column", "b_row",
    "b_column", "b_panel", "c_row", "c_column",
    "sums_step", "packed_a", "packed_a_stride", "packed_b", "overlaps",
)  # fmt: skip

# What `@units` is given: units, then the tile and the narrower one for the last columns of a row,
# the same where they leave B packed, and what packs.
_GIVEN: Final = (
    "ptr %args", "i64 %begin", "i64 %end", "ptr %scratch", "i64 %tile_rows", "i64 %tile_columns",
    "i64 %edge_columns", "i64 %packed_row", "ptr %wide", "ptr %narrow", "ptr %packing_wide",
    "ptr %packing_narrow", "ptr %pack_a", "ptr %pack_b",
)  # fmt: skip


@dataclass(frozen=True)
class ProductClass:
    """Everything about a product that its kernel's text depends on; never a size or a stride.

    rows, vectors      the tile: rows of A by vectors of B
    edge_vectors       vectors of the last tile of a row, 1 to `vectors`
    pack_a, pack_b     how a unit packs its operands into scratch, "" when it reads them in place
                       (or packed by an earlier step): see pack_text; "passing": its first row of
                       tiles reads B in place and leaves it packed for the others
    is_c_contiguous    columns of C are neighbours in memory
    n_batch            number of batch dimensions
    """

    dtype: dtype
    vector_bits: int
    rows: int
    vectors: int
    edge_vectors: int
    pack_a: str
    pack_b: str
    is_c_contiguous: bool
    n_batch: int


class _Loops(NamedTuple):
    """What the loops around tiles depend on; how operands are packed as in ProductClass, any kind
    but "passing" being as good as "rows"."""

    element: Element
    pack_a: str
    pack_b: str
    n_batch: int


@lru_cache(maxsize=64)
def _units_function(loops: _Loops) -> str:
    """`@units`: units to blocks of C, blocks of k, packing, tiles. It is told which tile, so that
    many classes share it."""
    lines = Lines()
    lines.label("entry")
    lines.put(f"%context = alloca [{len(CONTEXT)} x i64], align 16")
    words = {}
    for index, word in enumerate(WORDS):
        kind = "ptr" if word in ("a", "b", "c") else "i64"
        words[word] = lines.let(f"load {kind}, ptr {lines.offset('%args', 8 * index)}")
    packed = (
        lines.offset("%scratch", words["packed_a"]),
        lines.offset("%scratch", words["packed_b"]),
    )
    _fill_context(lines, loops, words)
    per_batch = lines.let(f"mul i64 {words['n_row_blocks']}, {words['n_column_blocks']}")
    lines.put("%has_units = icmp slt i64 %begin, %end")
    lines.put("br i1 %has_units, label %unit, label %finished")
    lines.label("unit")
    lines.put("%u = phi i64 [ %begin, %entry ], [ %nu, %next_unit ]")
    block = _locate(lines, loops, words, per_batch)
    lines.put("br label %depth")
    _depth_loop(lines, loops, words, packed, block)
    lines.take("""\
next_unit:
  %nu = add i64 %u, 1
  %more_units = icmp slt i64 %nu, %end
  br i1 %more_units, label %unit, label %finished
finished:
  ret void""")
    body = "\n".join(lines.text)
    return f"define internal fastcc void @units({', '.join(_GIVEN)}) nounwind {{\n{body}\n}}\n"


def _kernel_function(name: str, shape: ProductClass, element: Element) -> str:
    """The kernel: `@units` with the tile of the class."""
    wide, narrow = f"{shape.rows}x{shape.vectors}", f"{shape.rows}x{shape.edge_vectors}"
    width = shape.vectors * element.lanes
    packing = shape.pack_b == "passing"
    given = [
        "ptr %args", "i64 %begin", "i64 %end", "ptr %scratch",
        f"i64 {shape.rows}", f"i64 {width}", f"i64 {shape.edge_vectors * element.lanes}",
        f"i64 {width * element.n_packed_bytes}",
        f"ptr @tile_{wide}", f"ptr @tile_{narrow}",
        f"ptr @packing_tile_{wide}" if packing else "ptr null",
        f"ptr @packing_tile_{narrow}" if packing else "ptr null",
        "ptr @pack_a" if shape.pack_a else "ptr null",
        "ptr @pack_b" if shape.pack_b and not packing else "ptr null",
    ]  # fmt: skip
    return (
        f"define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {{\n"
        f"  call fastcc void @units({', '.join(given)})\n  ret void\n}}\n"
    )


def _fill_context(lines: Lines, loops: _Loops, words: dict[str, str]) -> None:
    """Strides as the tiles see them: of the operands, or of what the unit packs."""
    size = loops.element.n_packed_bytes
    seen = dict(words)
    if loops.pack_a == "columns":
        column = lines.let(f"mul i64 %tile_rows, {size}")
        seen |= {"a_row": str(size), "a_column": column}
    elif loops.pack_a:
        seen |= {"a_row": words["packed_a_stride"], "a_column": str(size)}
    if loops.pack_b:
        seen["b_row"] = "%packed_row"
        seen["b_source_row"] = words["b_row"]
    seen["valid_rows"] = "%tile_rows"
    for index, word in enumerate(CONTEXT):
        if word in seen:
            lines.put(f"store i64 {seen[word]}, ptr {lines.offset('%context', 8 * index)}")


class _Block(NamedTuple):
    """Where a unit's part of A, B and C starts, and its size."""

    a: str
    b: str
    c: str
    rows: str
    columns: str


def _locate(lines: Lines, loops: _Loops, words: dict[str, str], per_batch: str) -> _Block:
    """The block of unit %u: the next rows come every row_step units, the next columns every
    column_step."""
    batch = lines.let(f"sdiv i64 %u, {per_batch}")
    within = lines.let(f"srem i64 %u, {per_batch}")
    row_block, column_block = (
        lines.let(f"srem i64 {lines.let(f'sdiv i64 {within}, {step}')}, {count}")
        for step, count in (
            (words["row_step"], words["n_row_blocks"]),
            (words["column_step"], words["n_column_blocks"]),
        )
    )
    indices = batch_indices(lines, batch, loops.n_batch, len(WORDS), 4)
    a, b, c = batch_entry(lines, indices, len(WORDS), (words["a"], words["b"], words["c"]))
    row = lines.let(f"mul i64 {row_block}, {words['row_block']}")
    column = lines.let(f"mul i64 {column_block}, {words['column_block']}")
    rows = lines.smaller(words["row_block"], lines.let(f"sub i64 {words['m']}, {row}"))
    columns = lines.smaller(words["column_block"], lines.let(f"sub i64 {words['n']}, {column}"))
    a = lines.offset(a, lines.let(f"mul i64 {row_block}, {words['a_block']}"))
    c = lines.offset(c, lines.let(f"mul i64 {row}, {words['c_row']}"))
    c = lines.offset(c, lines.let(f"mul i64 {column}, {words['c_column']}"))
    if loops.pack_b:
        b = lines.offset(b, lines.let(f"mul i64 {column}, {words['b_column']}"))
    else:
        panel = lines.let(f"sdiv i64 {column}, %tile_columns")
        b = lines.offset(b, lines.let(f"mul i64 {panel}, {words['b_panel']}"))
    return _Block(a, b, c, rows, columns)


def _depth_loop(
    lines: Lines, loops: _Loops, words: dict[str, str],
    packed: tuple[str, str], block: _Block,
) -> None:  # fmt: skip
    """Blocks of k that are packed together; the tiles keep their sums in between."""
    lines.label("depth")
    lines.put("%k0 = phi i64 [ 0, %unit ], [ %nk0, %next_depth ]")
    lines.put(f"%ka = phi ptr [ {block.a}, %unit ], [ %nka, %next_depth ]")
    lines.put(f"%kb = phi ptr [ {block.b}, %unit ], [ %nkb, %next_depth ]")
    length = lines.smaller(words["k_block"], lines.let(f"sub i64 {words['k']}, %k0"))
    lines.put(f"%nk0 = add i64 %k0, {length}")
    lines.put(f"%is_end = icmp sge i64 %nk0, {words['k']}")
    is_first = lines.let(f"zext i1 {lines.let('icmp eq i64 %k0, 0')} to i64")
    is_last = lines.let("zext i1 %is_end to i64")
    for index, value in enumerate((length, is_first, is_last), 5):
        lines.put(f"store i64 {value}, ptr {lines.offset('%context', 8 * index)}")
    step_a = lines.let(f"mul i64 {length}, {words['a_column']}")
    step_b = lines.let(f"mul i64 {length}, {words['b_row']}")
    lines.put(f"%nka = getelementptr i8, ptr %ka, i64 {step_a}")
    lines.put(f"%nkb = getelementptr i8, ptr %kb, i64 {step_b}")
    tile_a, tile_b = "%ka", "%kb"
    if loops.pack_a:
        tile_a = packed[0]
        lines.put(
            f"call fastcc void %pack_a(ptr %ka, ptr {tile_a}, i64 {block.rows}, i64 {length}, "
            f"i64 {words['a_row']}, i64 {words['a_column']}, i64 {words['packed_a_stride']})"
        )
    if loops.pack_b:
        tile_b = packed[1]
    if loops.pack_b and loops.pack_b != "passing":
        lines.put(
            f"call fastcc void %pack_b(ptr %kb, ptr {tile_b}, i64 {length}, i64 {block.columns}, "
            f"i64 {words['b_row']}, i64 {words['b_column']}, i64 {words['b_panel']})"
        )
    _tile_loops(lines, loops, words, block._replace(a=tile_a, b=tile_b), "%kb")
    lines.label("next_depth")
    lines.put("br i1 %is_end, label %next_unit, label %depth")


def _tile_loops(
    lines: Lines, loops: _Loops, words: dict[str, str], block: _Block,
    source_b: str,
) -> None:  # fmt: skip
    """Tiles of a unit, a row of them at a time so that their part of A stays in the first cache.

    The last row of tiles, when rows are left, starts early where A lies in place; a packed A has
    room behind its rows, and what is computed from that is not stored."""
    a, b, c, rows, n_columns = block
    a_step = words["a_tile"]
    c_step = lines.let(f"mul i64 {words['c_row']}, %tile_rows")
    if loops.pack_b == "passing":
        lines.put("br label %first")
        lines.label("first")
        operands = (a, source_b, c, "%scratch")
        _columns_loop(lines, "first", loops, words, operands, n_columns, b)
        a, c, sums = lines.offset(a, a_step), lines.offset(c, c_step), "%first_s"
        rows = lines.let(f"sub i64 {rows}, %tile_rows")
    else:
        sums = "%scratch"
    lines.put("br label %before_rows")
    lines.label("before_rows")
    lines.put(f"%has_rows = icmp sge i64 {rows}, %tile_rows")
    lines.put("br i1 %has_rows, label %rows, label %edge")
    lines.label("rows")
    lines.put(f"%rows_left = phi i64 [ {rows}, %before_rows ], [ %nrows_left, %rows_done ]")
    lines.put(f"%ra = phi ptr [ {a}, %before_rows ], [ %nra, %rows_done ]")
    lines.put(f"%rc = phi ptr [ {c}, %before_rows ], [ %nrc, %rows_done ]")
    lines.put(f"%rs = phi ptr [ {sums}, %before_rows ], [ %rows_s, %rows_done ]")
    operands = ("%ra", b, "%rc", "%rs")
    _columns_loop(lines, "rows", loops, words, operands, n_columns)
    lines.put(f"%nra = getelementptr i8, ptr %ra, i64 {a_step}")
    lines.put(f"%nrc = getelementptr i8, ptr %rc, i64 {c_step}")
    lines.put("%nrows_left = sub i64 %rows_left, %tile_rows")
    lines.put("%more_rows = icmp sge i64 %nrows_left, %tile_rows")
    lines.put("br i1 %more_rows, label %rows, label %edge")
    lines.label("edge")
    lines.put(f"%ea = phi ptr [ {a}, %before_rows ], [ %nra, %rows_done ]")
    lines.put(f"%ec = phi ptr [ {c}, %before_rows ], [ %nrc, %rows_done ]")
    lines.put(f"%es = phi ptr [ {sums}, %before_rows ], [ %rows_s, %rows_done ]")
    lines.put(f"%edge_left = phi i64 [ {rows}, %before_rows ], [ %nrows_left, %rows_done ]")
    lines.put("%has_edge = icmp sgt i64 %edge_left, 0")
    lines.put("br i1 %has_edge, label %edge_row, label %next_depth")
    lines.label("edge_row")
    # Rows that the tile before, or the unit before, computes as well, to the same bits.
    missing = lines.let("sub i64 %tile_rows, %edge_left")
    back = lines.let(f"mul i64 {missing}, {words['overlaps']}")
    valid_at = lines.offset("%context", 8 * CONTEXT.index("valid_rows"))
    lines.put(f"store i64 {lines.let(f'add i64 %edge_left, {back}')}, ptr {valid_at}")
    back = lines.let(f"sub i64 0, {back}")
    edge_a = lines.offset("%ea", lines.let(f"mul i64 {back}, {words['a_row']}"))
    edge_c = lines.offset("%ec", lines.let(f"mul i64 {back}, {words['c_row']}"))
    operands = (edge_a, b, edge_c, "%es")
    _columns_loop(lines, "edge_row", loops, words, operands, n_columns)
    lines.put(f"store i64 %tile_rows, ptr {valid_at}")
    lines.put("br label %next_depth")


def _columns_loop(
    lines: Lines, label: str, loops: _Loops, words: dict[str, str],
    pointers: tuple[str, str, str, str], n_columns: str, packed: str = "",
) -> None:  # fmt: skip
    """One row of tiles, which leave B at `packed` if that is given; leaves the block `{label}_done`
    open, sums' end in `%{label}_s`."""
    a, b, c, sums = pointers
    c_step = lines.let(f"mul i64 {words['c_column']}, %tile_columns")
    b_step = words["b_panel"]
    if packed:
        b_step = lines.let(f"mul i64 %tile_columns, {loops.element.n_bytes}")
    p = f"%{label}"
    lines.put(f"br label %{label}_tiles")
    lines.label(f"{label}_tiles")
    lines.put(f"{p}_columns = phi i64 [ {n_columns}, %{label} ], [ {p}_ncolumns, %{label}_tiles ]")
    lines.put(f"{p}_b = phi ptr [ {b}, %{label} ], [ {p}_nb, %{label}_tiles ]")
    lines.put(f"{p}_c = phi ptr [ {c}, %{label} ], [ {p}_nc, %{label}_tiles ]")
    lines.put(f"{p}_t = phi ptr [ {sums}, %{label} ], [ {p}_s, %{label}_tiles ]")
    if packed:
        lines.put(f"{p}_p = phi ptr [ {packed}, %{label} ], [ {p}_np, %{label}_tiles ]")
        lines.put(f"{p}_np = getelementptr i8, ptr {p}_p, i64 {words['b_panel']}")
    lines.put(f"{p}_ncolumns = sub i64 {p}_columns, %tile_columns")
    lines.put(f"{p}_nb = getelementptr i8, ptr {p}_b, i64 {b_step}")
    lines.put(f"{p}_nc = getelementptr i8, ptr {p}_c, i64 {c_step}")
    lines.put(f"{p}_s = getelementptr i8, ptr {p}_t, i64 {words['sums_step']}")
    columns = lines.smaller(f"{p}_columns", "%tile_columns")
    operands = f"ptr {a}, ptr {p}_b, ptr {p}_c, ptr {p}_t, i64 {columns}, ptr %context"
    wide, narrow = "%wide", "%narrow"
    if packed:
        wide, narrow, operands = "%packing_wide", "%packing_narrow", f"{operands}, ptr {p}_p"
    is_narrow = lines.let(f"icmp sle i64 {p}_columns, %edge_columns")
    tile = lines.let(f"select i1 {is_narrow}, ptr {narrow}, ptr {wide}")
    lines.put(f"call fastcc void {tile}({operands})")
    lines.put(f"{p}_more = icmp sgt i64 {p}_ncolumns, 0")
    lines.put(f"br i1 {p}_more, label %{label}_tiles, label %{label}_done")
    lines.label(f"{label}_done")


@lru_cache(maxsize=1024)
def product_kernel(shape: ProductClass) -> tuple[str, LateText]:
    """Name and module text of the kernel of a class of products."""
    name = f"product_{shape.dtype.short_name}_{sha256(repr(shape).encode()).hexdigest()[:16]}"
    return name, LateText(partial(_module_text, name, shape), _SOURCES)


def _module_text(name: str, shape: ProductClass) -> str:
    element = element_of(shape.dtype, shape.vector_bits)
    tiles = {(shape.rows, shape.vectors), (shape.rows, shape.edge_vectors)}
    parts = [element.declarations]
    parts.append(ragged_function(element, shape.vectors, shape.is_c_contiguous))
    passing = [0, shape.vectors] if shape.pack_b == "passing" else [0]
    parts += [
        tile_function(element, *tile, shape.is_c_contiguous, False, packed_vectors)
        for tile in sorted(tiles)
        for packed_vectors in passing
    ]
    if shape.pack_a:
        parts.append(pack_a_function(element, shape.pack_a, shape.rows))
    if shape.pack_b and not passing[-1]:
        parts.append(pack_b_function(element, shape.pack_b, shape.vectors))
    pack_b = "rows" if shape.pack_b and not passing[-1] else shape.pack_b
    parts.append(_units_function(_Loops(element, shape.pack_a, pack_b, shape.n_batch)))
    parts.append(_kernel_function(name, shape, element))
    return "\n".join(parts)
