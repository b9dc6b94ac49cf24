"""Matrix product as LLVM text: the register tile and the loop over units around it.

Keeps     the contract of bits: inside blocks of 256 along k one chain of fma in order from zero;
          block sums added in order, the first being the start. Tiles, packing blocks and units
          only choose which elements are computed when.
Touches   gemm_types, gemm_pack_text.
Not here  which tile, packing and units a product gets (gemm.py); products with one row
          (gemm_vector_text.py).

A unit is a block of rows by a block of columns of C over the whole of k. Operands are read by
run-time byte strides, so one kernel serves matrices in place, transposed or packed:
    A(tile t, row i, k) = a + t * a_tile + i * a_row + k * a_column
    B(panel p, k, column j) = b + p * b_panel + k * b_row + j * itemsize
Blocks of k that are packed together (k_block, a multiple of 256) keep their running sums in
scratch until the last of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm_pack_text import pack_a_function, pack_b_function
from flambeau.devices.cpu.gemm_types import Element, Lines

SUM_BLOCK: Final = 256  # elements of k in one chain of fma

# Run-time words of a product kernel, in order; then for each batch dimension its size and the
# byte strides of a, b and c.
WORDS: Final = (
    "a", "b", "c", "m", "n", "k", "k_block", "row_block", "column_block", "n_row_blocks",
    "n_column_blocks", "a_block", "a_tile", "a_row", "a_column", "b_row", "b_column", "b_panel",
    "c_row", "c_column",
    "sums_step", "packed_a", "packed_a_stride", "packed_b",
)  # fmt: skip

# Words of the context a tile reads its strides from.
_CONTEXT: Final = (
    "a_row", "a_column", "b_row", "c_row", "c_column", "k_length", "is_first", "is_last",
)  # fmt: skip


@dataclass(frozen=True)
class ProductClass:
    """Everything about a product that its kernel's text depends on; never a size or a stride.

    rows, vectors      the tile: rows of A by vectors of B
    edge_rows          rows of the last tile of a column (0: none)
    edge_vectors       vectors of the last tile of a row, 1 to `vectors`
    pack_a, pack_b     how a unit packs its operands into scratch, "" when it reads them in place
                       (or packed by an earlier step): see gemm_pack_text
    is_c_contiguous    columns of C are neighbours in memory
    n_batch            number of batch dimensions
    """

    dtype: dtype
    vector_bits: int
    rows: int
    vectors: int
    edge_rows: int
    edge_vectors: int
    pack_a: str
    pack_b: str
    is_c_contiguous: bool
    n_batch: int


def tile_function(element: Element, rows: int, vectors: int, is_c_contiguous: bool) -> str:
    """`@tile_RxV(a, b, c, sums, columns, context)`: rows x vectors of C over k_length of k."""
    lines = Lines()
    vector, n_packed = element.vector, element.n_packed_bytes
    count = rows * vectors
    lines.label("entry")
    context = {}
    for index, word in enumerate(_CONTEXT):
        pointer = lines.offset("%context", 8 * index)
        context[word] = lines.let(f"load i64, ptr {pointer}")
    thrice = lines.let(f"mul i64 {context['a_row']}, 3")
    five = lines.let(f"mul i64 {context['a_row']}, 5")
    step_a = lines.let(f"mul i64 {context['a_column']}, {SUM_BLOCK}")
    step_b = lines.let(f"mul i64 {context['b_row']}, {SUM_BLOCK}")
    lines.put("br label %block")

    lines.label("block")
    lines.put("%block_a = phi ptr [ %a, %entry ], [ %next_block_a, %again ]")
    lines.put("%block_b = phi ptr [ %b, %entry ], [ %next_block_b, %again ]")
    lines.put(f"%left = phi i64 [ {context['k_length']}, %entry ], [ %next_left, %again ]")
    lines.put(f"%first = phi i64 [ {context['is_first']}, %entry ], [ 0, %again ]")
    lines.put(f"%next_block_a = getelementptr i8, ptr %block_a, i64 {step_a}")
    lines.put(f"%next_block_b = getelementptr i8, ptr %block_b, i64 {step_b}")
    lines.put(f"%next_left = sub i64 %left, {SUM_BLOCK}")
    lines.put("%has_some = icmp sgt i64 %left, 0")
    starts = ["%block_a"]
    for _ in range(5, rows, 5):
        starts.append(lines.offset(starts[-1], five))
    steps = lines.smaller("%left", SUM_BLOCK)
    lines.put("br i1 %has_some, label %chain, label %sum")

    _chain(lines, element, rows, vectors, starts, steps, context, thrice)

    lines.label("sum")
    for i in range(count):
        lines.put(f"%s{i} = phi {vector} [ zeroinitializer, %block ], [ %n{i}, %chain ]")
    lines.put("%is_start = icmp ne i64 %first, 0")
    lines.put("br i1 %is_start, label %total, label %carry")
    lines.label("carry")
    for i in range(count):
        pointer = lines.offset("%sums", i * element.lanes * n_packed)
        before = lines.let(f"load {vector}, ptr {pointer}, align 32")
        lines.put(f"%r{i} = {'fadd' if element.is_float else 'add'} {vector} {before}, %s{i}")
    lines.put("br label %total")
    lines.label("total")
    for i in range(count):
        lines.put(f"%t{i} = phi {vector} [ %s{i}, %sum ], [ %r{i}, %carry ]")
    lines.put("%is_end = icmp sle i64 %next_left, 0")
    is_last = lines.let(f"icmp ne i64 {context['is_last']}, 0")
    is_final = lines.let(f"and i1 %is_end, {is_last}")
    lines.put(f"br i1 {is_final}, label %finish, label %keep")
    lines.label("keep")
    for i in range(count):
        pointer = lines.offset("%sums", i * element.lanes * n_packed)
        lines.put(f"store {vector} %t{i}, ptr {pointer}, align 32")
    lines.put("br i1 %is_end, label %done, label %again")
    lines.label("again")
    lines.put("br label %block")
    lines.label("finish")
    _store_tile(lines, element, rows, vectors, context, is_c_contiguous)
    body = "\n".join(lines.text)
    return (
        f"define internal fastcc void @tile_{rows}x{vectors}"
        f"(ptr %a, ptr %b, ptr %c, ptr %sums, i64 %columns, ptr %context) nounwind {{\n{body}\n}}\n"
    )


def _chain(
    lines: Lines, element: Element, rows: int, vectors: int, starts: list[str], steps: str,
    context: dict[str, str], thrice: str,
) -> None:  # fmt: skip
    """One block over k: accumulators in phi nodes, one step of k an iteration."""
    vector, n_packed = element.vector, element.n_packed_bytes
    lines.label("chain")
    for i in range(rows * vectors):
        lines.put(f"%c{i} = phi {vector} [ zeroinitializer, %block ], [ %n{i}, %chain ]")
    for g, start in enumerate(starts):
        lines.put(f"%a{g} = phi ptr [ {start}, %block ], [ %na{g}, %chain ]")
    lines.put("%bp = phi ptr [ %block_b, %block ], [ %nbp, %chain ]")
    lines.put(f"%k = phi i64 [ {steps}, %block ], [ %nk, %chain ]")
    row = context["a_row"]

    def left(r: int) -> str:
        # One pointer for five rows: x86 scales an index by 1, 2 or 4 for nothing.
        pointer = f"%a{r // 5}"
        if r % 5 == 3:
            pointer = lines.offset(pointer, thrice)
        elif r % 5:
            pointer = lines.let(f"getelementptr [{r % 5} x i8], ptr {pointer}, i64 {row}")
        return element.broadcast(lines, pointer)

    def right(v: int) -> str:
        pointer = lines.offset("%bp", v * element.lanes * n_packed)
        return lines.let(f"load {vector}, ptr {pointer}, align {n_packed}")

    # The shorter side of the tile stays in registers, the other passes through one.
    if rows < vectors:
        lefts = [left(r) for r in range(rows)]
        pairs = ((r, v, lefts[r], b) for v in range(vectors) for b in (right(v),) for r in range(rows))
    else:
        rights = [right(v) for v in range(vectors)]
        pairs = ((r, v, a, rights[v]) for r in range(rows) for a in (left(r),) for v in range(vectors))
    for r, v, a, b in pairs:
        i = r * vectors + v
        total = element.multiply_add(lines, a, b, f"%c{i}")
        lines.text[-1] = lines.text[-1].replace(f"{total} = ", f"%n{i} = ")
    for g in range(len(starts)):
        lines.put(f"%na{g} = getelementptr i8, ptr %a{g}, i64 {context['a_column']}")
    lines.put(f"%nbp = getelementptr i8, ptr %bp, i64 {context['b_row']}")
    lines.put("%nk = add i64 %k, -1")
    lines.put("%more = icmp ne i64 %nk, 0")
    lines.put("br i1 %more, label %chain, label %sum")


def _store_tile(
    lines: Lines, element: Element, rows: int, vectors: int, context: dict[str, str],
    is_c_contiguous: bool,
) -> None:  # fmt: skip
    """Finished totals %t* to C: whole vectors, or through scratch element by element."""
    lanes, n_bytes = element.lanes, element.n_bytes
    stored = f"<{lanes} x {element.stored}>"
    values = [element.narrow(lines, f"%t{i}") for i in range(rows * vectors)]
    if is_c_contiguous:
        lines.put(f"%is_whole = icmp eq i64 %columns, {vectors * lanes}")
        lines.put("br i1 %is_whole, label %whole, label %ragged")
        lines.label("whole")
        pointer = "%c"
        for r in range(rows):
            if r:
                pointer = lines.offset(pointer, context["c_row"])
            for v in range(vectors):
                target = lines.offset(pointer, v * lanes * n_bytes)
                lines.put(f"store {stored} {values[r * vectors + v]}, ptr {target}, align {n_bytes}")
        lines.put("ret void")
    else:
        lines.put("br label %ragged")
    lines.label("ragged")
    for i, value in enumerate(values):
        target = lines.offset("%sums", i * lanes * n_bytes)
        lines.put(f"store {stored} {value}, ptr {target}, align {n_bytes}")
    column_step = str(n_bytes) if is_c_contiguous else context["c_column"]
    lines.take(f"""\
  br label %copy_row
copy_row:
  %cr = phi i64 [ 0, %ragged ], [ %ncr, %copied ]
  %crp = phi ptr [ %c, %ragged ], [ %ncrp, %copied ]
  %csp = phi ptr [ %sums, %ragged ], [ %ncsp, %copied ]
  br label %copy
copy:
  %cj = phi i64 [ 0, %copy_row ], [ %ncj, %copy ]
  %cjp = phi ptr [ %crp, %copy_row ], [ %ncjp, %copy ]
  %from = getelementptr {element.stored}, ptr %csp, i64 %cj
  %one = load {element.stored}, ptr %from, align {n_bytes}
  store {element.stored} %one, ptr %cjp, align {n_bytes}
  %ncjp = getelementptr i8, ptr %cjp, i64 {column_step}
  %ncj = add i64 %cj, 1
  %cmore = icmp slt i64 %ncj, %columns
  br i1 %cmore, label %copy, label %copied
copied:
  %ncrp = getelementptr i8, ptr %crp, i64 {context["c_row"]}
  %ncsp = getelementptr i8, ptr %csp, i64 {vectors * lanes * n_bytes}
  %ncr = add i64 %cr, 1
  %crmore = icmp slt i64 %ncr, {rows}
  br i1 %crmore, label %copy_row, label %done
done:
  ret void""")


def _units_function(name: str, shape: ProductClass, element: Element) -> str:
    """The kernel: units to blocks of C, blocks of k, packing, tiles."""
    lines = Lines()
    columns = shape.vectors * element.lanes
    lines.label("entry")
    lines.put(f"%context = alloca [{len(_CONTEXT)} x i64], align 16")
    words = {}
    for index, word in enumerate(WORDS):
        kind = "ptr" if word in ("a", "b", "c") else "i64"
        pointer = lines.offset("%args", 8 * index)
        words[word] = lines.let(f"load {kind}, ptr {pointer}")
    packed_a = lines.offset("%scratch", words["packed_a"])
    packed_b = lines.offset("%scratch", words["packed_b"])
    n_packed = str(element.n_packed_bytes)
    seen = {
        "a_row": n_packed if shape.pack_a == "columns" else words["packed_a_stride"],
        "a_column": str(element.n_packed_bytes * (shape.rows if shape.pack_a == "columns" else 1)),
    } if shape.pack_a else {word: words[word] for word in ("a_row", "a_column")}  # fmt: skip
    seen["b_row"] = str(columns * element.n_packed_bytes) if shape.pack_b else words["b_row"]
    for index, word in enumerate(_CONTEXT[:5]):
        pointer = lines.offset("%context", 8 * index)
        lines.put(f"store i64 {seen.get(word) or words[word]}, ptr {pointer}")
    k_slot, first_slot, last_slot = (lines.offset("%context", 8 * i) for i in (5, 6, 7))
    per_batch = lines.let(f"mul i64 {words['n_row_blocks']}, {words['n_column_blocks']}")
    lines.put("%has_units = icmp slt i64 %begin, %end")
    lines.put("br i1 %has_units, label %unit, label %finished")

    lines.label("unit")
    lines.put("%u = phi i64 [ %begin, %entry ], [ %nu, %next_unit ]")
    batch = lines.let(f"sdiv i64 %u, {per_batch}")
    within = lines.let(f"srem i64 %u, {per_batch}")
    column_block = lines.let(f"sdiv i64 {within}, {words['n_row_blocks']}")
    row_block = lines.let(f"srem i64 {within}, {words['n_row_blocks']}")
    a, b, c = words["a"], words["b"], words["c"]
    for d in reversed(range(shape.n_batch)):
        at = [lines.offset("%args", 8 * (len(WORDS) + 4 * d + i)) for i in range(4)]
        size, stride_a, stride_b, stride_c = (lines.let(f"load i64, ptr {p}") for p in at)
        index = lines.let(f"srem i64 {batch}, {size}")
        batch = lines.let(f"sdiv i64 {batch}, {size}")
        a = lines.offset(a, lines.let(f"mul i64 {index}, {stride_a}"))
        b = lines.offset(b, lines.let(f"mul i64 {index}, {stride_b}"))
        c = lines.offset(c, lines.let(f"mul i64 {index}, {stride_c}"))
    row = lines.let(f"mul i64 {row_block}, {words['row_block']}")
    column = lines.let(f"mul i64 {column_block}, {words['column_block']}")
    rows = lines.smaller(words["row_block"], lines.let(f"sub i64 {words['m']}, {row}"))
    n_columns = lines.smaller(words["column_block"], lines.let(f"sub i64 {words['n']}, {column}"))
    a = lines.offset(a, lines.let(f"mul i64 {row_block}, {words['a_block']}"))
    c = lines.offset(c, lines.let(f"mul i64 {row}, {words['c_row']}"))
    c = lines.offset(c, lines.let(f"mul i64 {column}, {words['c_column']}"))
    if shape.pack_b:
        b = lines.offset(b, lines.let(f"mul i64 {column}, {words['b_column']}"))
    else:
        panel = lines.let(f"sdiv i64 {column}, {columns}")
        b = lines.offset(b, lines.let(f"mul i64 {panel}, {words['b_panel']}"))
    lines.put("br label %depth")

    lines.label("depth")
    lines.put("%k0 = phi i64 [ 0, %unit ], [ %nk0, %next_depth ]")
    lines.put(f"%ka = phi ptr [ {a}, %unit ], [ %nka, %next_depth ]")
    lines.put(f"%kb = phi ptr [ {b}, %unit ], [ %nkb, %next_depth ]")
    length = lines.smaller(words["k_block"], lines.let(f"sub i64 {words['k']}, %k0"))
    lines.put(f"%nk0 = add i64 %k0, {length}")
    lines.put(f"%is_end = icmp sge i64 %nk0, {words['k']}")
    lines.put(f"store i64 {length}, ptr {k_slot}")
    is_first = lines.let("icmp eq i64 %k0, 0")
    lines.put(f"store i64 {lines.let(f'zext i1 {is_first} to i64')}, ptr {first_slot}")
    lines.put(f"store i64 {lines.let('zext i1 %is_end to i64')}, ptr {last_slot}")
    lines.put(f"%nka = getelementptr i8, ptr %ka, i64 "
              f"{lines.let('mul i64 ' + length + ', ' + words['a_column'])}")  # fmt: skip
    lines.put(f"%nkb = getelementptr i8, ptr %kb, i64 "
              f"{lines.let('mul i64 ' + length + ', ' + words['b_row'])}")  # fmt: skip
    tile_a, tile_b = "%ka", "%kb"
    if shape.pack_a:
        tile_a = packed_a
        lines.put(
            f"call fastcc void @pack_a(ptr %ka, ptr {packed_a}, i64 {rows}, i64 {length}, "
            f"i64 {words['a_row']}, i64 {words['a_column']}, i64 {words['packed_a_stride']})"
        )
    if shape.pack_b:
        tile_b = packed_b
        lines.put(
            f"call fastcc void @pack_b(ptr %kb, ptr {packed_b}, i64 {length}, i64 {n_columns}, "
            f"i64 {words['b_row']}, i64 {words['b_column']}, i64 {words['b_panel']})"
        )
    _tile_loops(lines, shape, element, words, (tile_a, tile_b, c), rows, n_columns)
    lines.label("next_depth")
    lines.put("br i1 %is_end, label %next_unit, label %depth")
    lines.label("next_unit")
    lines.put("%nu = add i64 %u, 1")
    lines.put("%more_units = icmp slt i64 %nu, %end")
    lines.put("br i1 %more_units, label %unit, label %finished")
    lines.label("finished")
    lines.put("ret void")
    body = "\n".join(lines.text)
    return (
        f"define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {{\n"
        f"{body}\n}}\n"
    )


def _tile_loops(
    lines: Lines, shape: ProductClass, element: Element, words: dict[str, str],
    pointers: tuple[str, str, str], rows: str, n_columns: str,
) -> None:  # fmt: skip
    """Tiles of a unit, a row of them at a time so that their part of A stays in the first cache;
    the last row of tiles, when it is short, by a tile of its own height."""
    a, b, c = pointers
    a_step = words["a_tile"]
    c_step = lines.let(f"mul i64 {words['c_row']}, {shape.rows}")
    lines.put("br label %before_rows")
    lines.label("before_rows")
    lines.put(f"%has_rows = icmp sge i64 {rows}, {shape.rows}")
    lines.put("br i1 %has_rows, label %rows, label %edge")
    lines.label("rows")
    lines.put(f"%rows_left = phi i64 [ {rows}, %before_rows ], [ %nrows_left, %rows_done ]")
    lines.put(f"%ra = phi ptr [ {a}, %before_rows ], [ %nra, %rows_done ]")
    lines.put(f"%rc = phi ptr [ {c}, %before_rows ], [ %nrc, %rows_done ]")
    lines.put("%rs = phi ptr [ %scratch, %before_rows ], [ %rows_s, %rows_done ]")
    _columns_loop(lines, "rows", shape.rows, shape, element, words, ("%ra", b, "%rc", "%rs"), n_columns)
    lines.put(f"%nra = getelementptr i8, ptr %ra, i64 {a_step}")
    lines.put(f"%nrc = getelementptr i8, ptr %rc, i64 {c_step}")
    lines.put(f"%nrows_left = sub i64 %rows_left, {shape.rows}")
    lines.put(f"%more_rows = icmp sge i64 %nrows_left, {shape.rows}")
    lines.put("br i1 %more_rows, label %rows, label %edge")
    lines.label("edge")
    if not shape.edge_rows:
        lines.put("br label %next_depth")
        return
    lines.put(f"%ea = phi ptr [ {a}, %before_rows ], [ %nra, %rows_done ]")
    lines.put(f"%ec = phi ptr [ {c}, %before_rows ], [ %nrc, %rows_done ]")
    lines.put("%es = phi ptr [ %scratch, %before_rows ], [ %rows_s, %rows_done ]")
    lines.put(f"%edge_left = phi i64 [ {rows}, %before_rows ], [ %nrows_left, %rows_done ]")
    lines.put("%has_edge = icmp sgt i64 %edge_left, 0")
    lines.put("br i1 %has_edge, label %edge_row, label %next_depth")
    lines.label("edge_row")
    _columns_loop(
        lines, "edge_row", shape.edge_rows, shape, element, words, ("%ea", b, "%ec", "%es"), n_columns
    )
    lines.put("br label %next_depth")


def _columns_loop(
    lines: Lines, label: str, height: int, shape: ProductClass, element: Element,
    words: dict[str, str], pointers: tuple[str, str, str, str], n_columns: str,
) -> None:  # fmt: skip
    """One row of tiles; leaves the block `{label}_done` open, sums' end in `%{label}_s`."""
    a, b, c, sums = pointers
    width = shape.vectors * element.lanes
    c_step = lines.let(f"mul i64 {words['c_column']}, {width}")
    p = f"%{label}"
    lines.put(f"br label %{label}_tiles")
    lines.label(f"{label}_tiles")
    lines.put(f"{p}_columns = phi i64 [ {n_columns}, %{label} ], [ {p}_ncolumns, %{label}_next ]")
    lines.put(f"{p}_b = phi ptr [ {b}, %{label} ], [ {p}_nb, %{label}_next ]")
    lines.put(f"{p}_c = phi ptr [ {c}, %{label} ], [ {p}_nc, %{label}_next ]")
    lines.put(f"{p}_t = phi ptr [ {sums}, %{label} ], [ {p}_s, %{label}_next ]")
    lines.put(f"{p}_ncolumns = sub i64 {p}_columns, {width}")
    lines.put(f"{p}_nb = getelementptr i8, ptr {p}_b, i64 {words['b_panel']}")
    lines.put(f"{p}_nc = getelementptr i8, ptr {p}_c, i64 {c_step}")
    lines.put(f"{p}_s = getelementptr i8, ptr {p}_t, i64 {words['sums_step']}")
    columns = lines.smaller(f"{p}_columns", width)
    operands = f"(ptr {a}, ptr {p}_b, ptr {p}_c, ptr {p}_t, i64 {columns}, ptr %context)"
    if shape.edge_vectors != shape.vectors:
        lines.put(f"{p}_is_narrow = icmp sle i64 {p}_columns, {shape.edge_vectors * element.lanes}")
        lines.put(f"br i1 {p}_is_narrow, label %{label}_narrow, label %{label}_wide")
        lines.label(f"{label}_narrow")
        lines.put(f"call fastcc void @tile_{height}x{shape.edge_vectors}{operands}")
        lines.put(f"br label %{label}_next")
        lines.label(f"{label}_wide")
    lines.put(f"call fastcc void @tile_{height}x{shape.vectors}{operands}")
    lines.put(f"br label %{label}_next")
    lines.label(f"{label}_next")
    lines.put(f"{p}_more = icmp sgt i64 {p}_ncolumns, 0")
    lines.put(f"br i1 {p}_more, label %{label}_tiles, label %{label}_done")
    lines.label(f"{label}_done")


@lru_cache(maxsize=1024)
def product_kernel(shape: ProductClass) -> tuple[str, str]:
    """Name and module text of the kernel of a class of products."""
    element = Element(shape.dtype, shape.vector_bits)
    # A tile of its own for each pair of heights and widths that occurs.
    heights = {shape.rows, shape.edge_rows} - {0}
    widths = {shape.vectors, shape.edge_vectors}
    parts = [element.declarations]
    parts += [
        tile_function(element, height, width, shape.is_c_contiguous)
        for height in sorted(heights)
        for width in sorted(widths)
    ]
    if shape.pack_a:
        parts.append(pack_a_function(element, shape.pack_a, shape.rows))
    if shape.pack_b:
        parts.append(pack_b_function(element, shape.pack_b, shape.vectors))
    parts.append(_units_function("KERNEL", shape, element))
    text = "\n".join(parts)
    name = f"product_{shape.dtype.short_name}_{sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@KERNEL(", f"@{name}(")


def without_packing(shape: ProductClass) -> ProductClass:
    """The same class for operands that an earlier step packed."""
    return replace(shape, pack_a="", pack_b="")
