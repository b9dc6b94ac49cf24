"""A row times a matrix with contiguous rows, as LLVM text.

Keeps     the contract of tile_text: every column's sum takes the rows in order.
Touches   elements.
Not here  the kernel around it (vector_text.py).

A few rows at a time are added to a row of sums in scratch, so that memory is read in long runs;
after every block of 256 rows the sums are added to a row of totals."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.gemm.elements import Element, Lines, vector_function
from flambeau.devices.cpu.gemm.tile_text import SUM_BLOCK

_ROWS_AT_ONCE: Final = 8


def rows_function(element: Element) -> str:
    """`@columns_of(a, b, c, n, k, a_step, b_row, b_column, c_step, sums)` for "rows"."""
    lines = Lines()
    vector, lanes, n_packed = element.vector, element.lanes, element.n_packed_bytes
    lines.take(f"""\
entry:
  %up = add i64 %n, {lanes - 1}
  %n_vectors = sdiv i64 %up, {lanes}
  %row_bytes = mul i64 %n_vectors, {lanes * n_packed}
  %totals = getelementptr i8, ptr %sums, i64 %row_bytes
  %step_many = mul i64 %b_row, {_ROWS_AT_ONCE}
  %a_many = mul i64 %a_step, {_ROWS_AT_ONCE}
  br label %block
block:
  %k0 = phi i64 [ 0, %entry ], [ %nk0, %block_done ]
  %block_a = phi ptr [ %a, %entry ], [ %end_a, %block_done ]
  %block_b = phi ptr [ %b, %entry ], [ %end_b, %block_done ]
  %left = sub i64 %k, %k0
  %is_short = icmp slt i64 %left, {SUM_BLOCK}
  %length = select i1 %is_short, i64 %left, i64 {SUM_BLOCK}
  %nk0 = add i64 %k0, {SUM_BLOCK}
  br label %clear
clear:
  %ci = phi i64 [ 0, %block ], [ %nci, %clear ]
  %cp = getelementptr {vector}, ptr %sums, i64 %ci
  store {vector} zeroinitializer, ptr %cp, align {n_packed}
  %nci = add i64 %ci, 1
  %cmore = icmp slt i64 %nci, %n_vectors
  br i1 %cmore, label %clear, label %many
many:
  %todo = phi i64 [ %length, %clear ], [ %ntodo, %added ]
  %am = phi ptr [ %block_a, %clear ], [ %nam, %added ]
  %bm = phi ptr [ %block_b, %clear ], [ %nbm, %added ]
  %has_many = icmp sge i64 %todo, {_ROWS_AT_ONCE}
  br i1 %has_many, label %add_many, label %single
add_many:
  %nam = getelementptr i8, ptr %am, i64 %a_many
  %nbm = getelementptr i8, ptr %bm, i64 %step_many
  %ntodo = sub i64 %todo, {_ROWS_AT_ONCE}""")
    _add_rows(lines, element, _ROWS_AT_ONCE, "%am", "%bm", "add_many", "many")
    lines.take("""\
added:
  br label %many
single:
  %todo1 = phi i64 [ %todo, %many ], [ %ntodo1, %added1 ]
  %end_a = phi ptr [ %am, %many ], [ %nas, %added1 ]
  %end_b = phi ptr [ %bm, %many ], [ %nbs, %added1 ]
  %has_one = icmp sgt i64 %todo1, 0
  br i1 %has_one, label %add_one, label %fold
add_one:
  %nas = getelementptr i8, ptr %end_a, i64 %a_step
  %nbs = getelementptr i8, ptr %end_b, i64 %b_row
  %ntodo1 = sub i64 %todo1, 1""")
    _add_rows(lines, element, 1, "%end_a", "%end_b", "add_one", "one")
    lines.take("""\
added1:
  br label %single""")
    _fold(lines, element)
    return vector_function(lines)


def _fold(lines: Lines, element: Element) -> None:
    """A finished block: its sums are the start of the totals, or are added to them; after the
    last block the totals go to C."""
    vector, lanes, n_packed = element.vector, element.lanes, element.n_packed_bytes
    add = "fadd" if element.is_float else "add"
    lines.take(f"""\
fold:
  %is_first = icmp eq i64 %k0, 0
  %is_last = icmp sge i64 %nk0, %k
  br label %fold_vector
fold_vector:
  %fi = phi i64 [ 0, %fold ], [ %nfi, %fold_next ]
  %fc = phi ptr [ %c, %fold ], [ %nfc, %fold_next ]
  %fs = getelementptr {vector}, ptr %sums, i64 %fi
  %ft = getelementptr {vector}, ptr %totals, i64 %fi
  %sum = load {vector}, ptr %fs, align {n_packed}
  br i1 %is_first, label %fold_total, label %fold_add
fold_add:
  %before = load {vector}, ptr %ft, align {n_packed}
  %both = {add} {vector} %before, %sum
  br label %fold_total
fold_total:
  %total = phi {vector} [ %sum, %fold_vector ], [ %both, %fold_add ]
  br i1 %is_last, label %fold_put, label %fold_keep
fold_keep:
  store {vector} %total, ptr %ft, align {n_packed}
  br label %fold_next
fold_put:
  %done_columns = mul i64 %fi, {lanes}
  %left_columns = sub i64 %n, %done_columns
  call fastcc void @put({vector} %total, ptr %fc, i64 %c_step, i64 %left_columns)
  br label %fold_next
fold_next:
  %vector_step = mul i64 %c_step, {lanes}
  %nfc = getelementptr i8, ptr %fc, i64 %vector_step
  %nfi = add i64 %fi, 1
  %fmore = icmp slt i64 %nfi, %n_vectors
  br i1 %fmore, label %fold_vector, label %block_done
block_done:
  br i1 %is_last, label %done, label %block
done:
  ret void""")


def _add_rows(
    lines: Lines, element: Element, count: int, a: str, b: str, label: str, tag: str
) -> None:
    """sums += a row at a time, `count` rows in order in one pass over the columns."""
    vector, lanes = element.vector, element.lanes
    stored = f"<{lanes} x {element.stored}>"
    scales, rows, pointer_a, pointer_b = [], [], a, b
    for i in range(count):
        if i:
            pointer_a = lines.offset(pointer_a, "%a_step")
            pointer_b = lines.offset(pointer_b, "%b_row")
        scales.append(element.broadcast_stored(lines, pointer_a))
        rows.append(pointer_b)
    lines.put(f"br label %{tag}_vector")
    lines.label(f"{tag}_vector")
    lines.put(f"%{tag}_i = phi i64 [ 0, %{label} ], [ %{tag}_ni, %{tag}_vector ]")
    at = lines.let(f"mul i64 %{tag}_i, {lanes * element.n_bytes}")
    target = lines.let(f"getelementptr {vector}, ptr %sums, i64 %{tag}_i")
    total = lines.let(f"load {vector}, ptr {target}, align {element.n_packed_bytes}")
    for scale, row in zip(scales, rows, strict=True):
        one = lines.let(f"load {stored}, ptr {lines.offset(row, at)}, align {element.n_bytes}")
        total = element.multiply_add(lines, scale, element.widen(lines, one, lanes), total)
    lines.put(f"store {vector} {total}, ptr {target}, align {element.n_packed_bytes}")
    lines.put(f"%{tag}_ni = add i64 %{tag}_i, 1")
    lines.put(f"%{tag}_more = icmp slt i64 %{tag}_ni, %n_vectors")
    done = "added" if tag == "many" else "added1"
    lines.put(f"br i1 %{tag}_more, label %{tag}_vector, label %{done}")
