"""Products whose left operand is one row, as LLVM text: a vector times a matrix.

Keeps     the contract of bits of gemm_text; operands are read where they lie, narrow dtypes too.
Touches   gemm_types, gemm_pack_text (transposes in registers).
Not here  which products come here (gemm.py).

Two kernels, by what is contiguous in the matrix; a unit is a block of columns of one entry:
    "rows"      rows of the matrix: a few rows at a time are added to a row of sums in scratch, so
                that memory is read in long runs
    "columns"   columns of the matrix: pieces of several columns are transposed in registers, so
                that lanes are columns and each keeps its chain. Chains that can run at the same
                time are columns further on ("groups") or later blocks of 256 ("blocks").
    "few_columns"  the same for fewer columns than lanes, with one group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm_pack_text import load_transposed
from flambeau.devices.cpu.gemm_types import Element, Lines

# Words of a kernel, in order; then for each batch dimension its size and the strides of a, b, c.
VECTOR_WORDS: Final = (
    "a", "b", "c", "n", "k", "column_block", "n_column_blocks", "a_step", "b_row", "b_column",
    "c_column",
)  # fmt: skip
SUM_BLOCK: Final = 256
_ROWS_AT_ONCE: Final = 8
# Pieces of 16 bytes that one iteration takes from each column: a line of the cache.
_PIECES: Final = 4
# How far ahead of their use columns are fetched; there are too many for the CPU to notice.
_AHEAD_BYTES: Final = 256


@dataclass(frozen=True)
class VectorClass:
    """What the text of a kernel depends on; groups and blocks matter to "columns" only."""

    dtype: dtype
    vector_bits: int
    kind: str
    groups: int
    blocks: int
    n_batch: int


def _broadcast(lines: Lines, element: Element, pointer: str) -> str:
    """An element of the vector, widened, in every lane."""
    if not element.is_narrow:
        return element.broadcast(lines, pointer)
    one = lines.let(f"load {element.stored}, ptr {pointer}, align {element.n_bytes}")
    wide = element.widen(lines, one, 0)
    start = lines.let(f"insertelement {element.vector} poison, {element.accumulated} {wide}, i64 0")
    mask = f"<{element.lanes} x i32> zeroinitializer"
    return lines.let(f"shufflevector {element.vector} {start}, {element.vector} poison, {mask}")


def _store_function(element: Element) -> str:
    """`@put(value, target, step, count)`: up to a vector of results, `count` of them valid."""
    lines = Lines()
    lanes, size = element.lanes, element.n_bytes
    stored = f"<{lanes} x {element.stored}>"
    lines.take(f"""\
entry:
  %spilled = alloca {stored}, align 64
  %is_whole = icmp sge i64 %count, {lanes}
  %is_contiguous = icmp eq i64 %step, {size}
  %is_direct = and i1 %is_whole, %is_contiguous""")
    value = element.narrow(lines, "%value")
    lines.take(f"""\
  br i1 %is_direct, label %direct, label %spill
direct:
  store {stored} {value}, ptr %target, align {size}
  ret void
spill:
  store {stored} {value}, ptr %spilled, align 64
  %limit = select i1 %is_whole, i64 {lanes}, i64 %count
  br label %copy
copy:
  %j = phi i64 [ 0, %spill ], [ %nj, %copy ]
  %to = phi ptr [ %target, %spill ], [ %nto, %copy ]
  %from = getelementptr {element.stored}, ptr %spilled, i64 %j
  %one = load {element.stored}, ptr %from, align {size}
  store {element.stored} %one, ptr %to, align {size}
  %nto = getelementptr i8, ptr %to, i64 %step
  %nj = add i64 %j, 1
  %more = icmp slt i64 %nj, %limit
  br i1 %more, label %copy, label %done
done:
  ret void""")
    body = "\n".join(lines.text)
    return (
        f"define internal fastcc void @put({element.vector} %value, ptr %target, i64 %step, "
        f"i64 %count) nounwind {{\n{body}\n}}\n"
    )


def _rows_function(element: Element) -> str:
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
    add = "fadd" if element.is_float else "add"
    lines.take(f"""\
added1:
  br label %single
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
    return _columns_of(lines)


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
        scales.append(_broadcast(lines, element, pointer_a))
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


def _columns_function(element: Element, shape: VectorClass) -> str:
    """`@columns_of(...)` for "columns": groups x lanes columns at a time.

    The last set of columns starts early, so that those it shares with the one before are written
    twice, with the same bits; where there are fewer than lanes, lanes past the last repeat it.
    """
    lines = Lines()
    groups, blocks = shape.groups, shape.blocks
    width = groups * element.lanes
    latest = "0" if shape.kind == "few_columns" else lines.let(f"sub i64 %n, {width}")
    lines.text.insert(0, "entry:")
    for times, name in ((3, "thrice"), (5, "five"), (7, "seven"), (8, "eight")):
        lines.put(f"%{name} = mul i64 %b_column, {times}")
    lines.take(f"""\
  %a_thrice = mul i64 %a_step, 3
  br label %columns
columns:
  %j_next = phi i64 [ 0, %entry ], [ %nj, %next_columns ]
  %is_late = icmp sgt i64 %j_next, {latest}
  %j = select i1 %is_late, i64 {latest}, i64 %j_next
  %left = sub i64 %n, %j
  %last = sub i64 %left, 1
  %nj = add i64 %j, {width}
  %j_bytes = mul i64 %j, %b_column
  %bj = getelementptr i8, ptr %b, i64 %j_bytes
  br label %depth
depth:""")
    ends = ["one", "many"] if blocks > 1 else ["one"]
    lines.put(
        "%k0 = phi i64 [ 0, %columns ]" + "".join(f", [ %{e}_k, %{e}_done ]" for e in ends)
    )
    for g in range(groups):
        lines.put(
            f"%total{g} = phi {element.vector} [ zeroinitializer, %columns ]"
            + "".join(f", [ %{e}_total{g}, %{e}_done ]" for e in ends)
        )
    lines.take(f"""\
  %ka_bytes = mul i64 %k0, %a_step
  %ak = getelementptr i8, ptr %a, i64 %ka_bytes
  %kb_bytes = mul i64 %k0, {element.n_bytes}
  %bk = getelementptr i8, ptr %bj, i64 %kb_bytes
  %k_left = sub i64 %k, %k0
  %is_short = icmp slt i64 %k_left, {SUM_BLOCK}
  %length = select i1 %is_short, i64 %k_left, i64 {SUM_BLOCK}
  %is_start = icmp eq i64 %k0, 0
  %has_k = icmp sgt i64 %k_left, 0
  br i1 %has_k, label %which, label %put
which:
  %has_many = icmp sge i64 %k_left, {SUM_BLOCK * blocks}""")
    lines.put("br i1 %has_many, label %many, label %one" if blocks > 1 else "br label %one")
    for tag in reversed(ends):
        lines.label(tag)
        _run_blocks(lines, element, shape, blocks if tag == "many" else 1, tag)
        step = str(SUM_BLOCK * blocks) if tag == "many" else "%length"
        lines.put(f"%{tag}_k = add i64 %k0, {step}")
        lines.put("br label %depth")
    _put_groups(lines, element, groups)
    return _columns_of(lines)


def _put_groups(lines: Lines, element: Element, groups: int) -> None:
    """Store the finished totals, then go on to the next columns."""
    lines.label("put")
    step = lines.let(f"mul i64 %c_step, {element.lanes}")
    pointer = lines.offset("%c", lines.let("mul i64 %j, %c_step"))
    for g in range(groups):
        count = lines.let(f"sub i64 %left, {g * element.lanes}")
        lines.put(
            f"call fastcc void @put({element.vector} %total{g}, ptr {pointer}, i64 %c_step, "
            f"i64 {count})"
        )
        pointer = lines.offset(pointer, step)
    lines.take("""\
  br label %next_columns
next_columns:
  %more = icmp slt i64 %nj, %n
  br i1 %more, label %columns, label %done
done:
  ret void""")


def _lane_starts(lines: Lines, shape: VectorClass, lanes: int) -> list[str]:
    """Where every eighth column starts, or each of few."""
    if shape.kind == "columns":
        starts = ["%bk"]
        while len(starts) < -(-shape.groups * lanes // 8):
            starts.append(lines.offset(starts[-1], "%eight"))
        return starts
    result = []
    for lane in range(lanes):
        number = lines.smaller("%last", lane)
        result.append(lines.offset("%bk", lines.let(f"mul i64 {number}, %b_column")))
    return result


def _lane_pointers(
    lines: Lines, starts: list[str], shape: VectorClass, lanes: int, group: int
) -> list[str]:
    """Pointers of a group's lanes, from what `_lane_starts` gave, moved along k."""
    if shape.kind != "columns":
        return starts
    result = []
    for column in range(group * lanes, (group + 1) * lanes):
        start, number = starts[column // 8], column % 8
        odd = {3: "%thrice", 5: "%five", 6: "%thrice", 7: "%seven"}
        scale = {3: 1, 5: 1, 6: 2, 7: 1}.get(number, number)
        if number:
            step = odd.get(number, "%b_column")
            start = lines.let(f"getelementptr [{scale} x i8], ptr {start}, i64 {step}")
        result.append(start)
    return result


def _scales(lines: Lines, element: Element, pointer: str, count: int) -> list[str]:
    """`count` elements of the vector from `pointer` on, each in every lane."""
    result = []
    for i in range(count):
        if i and i % 4 == 0:
            pointer = lines.let(f"getelementptr [4 x i8], ptr {pointer}, i64 %a_step")
        step = "%a_thrice" if i % 4 == 3 else "%a_step"
        at = pointer
        if i % 4:
            at = lines.let(f"getelementptr [{i % 4 % 3 or 1} x i8], ptr {pointer}, i64 {step}")
        result.append(_broadcast(lines, element, at))
    return result


def _run_blocks(lines: Lines, element: Element, shape: VectorClass, blocks: int, tag: str) -> None:
    """Chains of `blocks` whole blocks (or of %length steps, for one) for every group; then
    their sums are added to the totals in order. Ends in the block `{tag}_done`, left open."""
    vector = element.vector
    groups = shape.groups
    chains = groups * blocks
    piece = 16 // element.n_packed_bytes
    stride = _PIECES * piece
    length = "%length" if blocks == 1 else str(SUM_BLOCK)
    whole = lines.let(f"and i64 {length}, -{stride}")
    starts = _lane_starts(lines, shape, element.lanes)
    starts_a = ["%ak"]
    for _ in range(1, blocks):
        starts_a.append(lines.offset(starts_a[-1], lines.let(f"mul i64 %a_step, {SUM_BLOCK}")))
    step_a = lines.let(f"mul i64 %a_step, {stride}")
    some = lines.let(f"icmp sgt i64 {whole}, 0")
    lines.put(f"br i1 {some}, label %{tag}_line, label %{tag}_rest")

    lines.label(f"{tag}_line")
    arrows = f"%{tag} ], [ {{}}, %{tag}_line ]"
    for i in range(chains):
        lines.put(
            f"%{tag}_c{i} = phi {vector} [ zeroinitializer, " + arrows.format(f"%{tag}_n{i}")
        )
    lines.put(f"%{tag}_i = phi i64 [ {whole}, " + arrows.format(f"%{tag}_ni"))
    for kind, pointers in (("a", starts_a), ("b", starts)):
        for i, start in enumerate(pointers):
            lines.put(
                f"%{tag}_{kind}{i} = phi ptr [ {start}, " + arrows.format(f"%{tag}_n{kind}{i}")
            )
    _line_of_chains(lines, element, shape, blocks, len(starts), tag)
    for i in range(blocks):
        lines.put(f"%{tag}_na{i} = getelementptr i8, ptr %{tag}_a{i}, i64 {step_a}")
    for i in range(len(starts)):
        move = stride * element.n_bytes
        lines.put(f"%{tag}_nb{i} = getelementptr i8, ptr %{tag}_b{i}, i64 {move}")
    lines.put(f"%{tag}_ni = sub i64 %{tag}_i, {stride}")
    lines.put(f"%{tag}_more = icmp ne i64 %{tag}_ni, 0")
    lines.put(f"br i1 %{tag}_more, label %{tag}_line, label %{tag}_rest")

    lines.label(f"{tag}_rest")
    for i in range(chains):
        lines.put(
            f"%{tag}_s{i} = phi {vector} [ zeroinitializer, %{tag} ], [ %{tag}_n{i}, %{tag}_line ]"
        )
    results = [f"%{tag}_s{i}" for i in range(chains)]
    if blocks == 1:
        results = _rest_of_block(lines, element, shape, starts, whole, tag)
    for g in range(groups):
        total = f"%total{g}"
        for block in range(blocks):
            one = results[g * blocks + block]
            added = element.add(lines, total, one)
            if block == 0:
                added = lines.let(f"select i1 %is_start, {vector} {one}, {vector} {added}")
            total = added
        lines.text[-1] = lines.text[-1].replace(total, f"%{tag}_total{g}", 1)
    lines.put(f"br label %{tag}_done")
    lines.label(f"{tag}_done")


def _line_of_chains(
    lines: Lines, element: Element, shape: VectorClass, blocks: int, n_starts: int, tag: str
) -> None:
    """The loop's work: a line of every column, piece by piece, all chains side by side."""
    groups, lanes, size = shape.groups, element.lanes, element.n_bytes
    piece = 16 // element.n_packed_bytes
    sums = [f"%{tag}_c{i}" for i in range(groups * blocks)]
    here = [f"%{tag}_b{i}" for i in range(n_starts)]
    for p in range(_PIECES):
        for block in range(blocks):
            pointer = f"%{tag}_a{block}"
            if p:
                pointer = lines.offset(pointer, lines.let(f"mul i64 %a_step, {p * piece}"))
            scales = _scales(lines, element, pointer, piece)
            for g in range(groups):
                move = (block * SUM_BLOCK + p * piece) * size
                pointers = _lane_pointers(lines, here, shape, lanes, g)
                if p == 0:
                    for each in pointers:
                        ahead = lines.offset(each, move + _AHEAD_BYTES)
                        lines.put(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")
                pointers = [lines.offset(each, move) if move else each for each in pointers]
                i = g * blocks + block
                for scale, column in zip(
                    scales, load_transposed(lines, element, pointers), strict=True
                ):
                    sums[i] = element.multiply_add(lines, scale, column, sums[i])
    for i, value in enumerate(sums):
        position = next(n for n, line in enumerate(lines.text) if line.startswith(f"  {value} = "))
        lines.text[position] = lines.text[position].replace(value, f"%{tag}_n{i}", 1)


def _rest_of_block(
    lines: Lines, element: Element, shape: VectorClass, starts: list[str], whole: str, tag: str
) -> list[str]:
    """The last steps of a block that fill no line: piece by piece, the steps past the end of the
    last one computed and dropped."""
    vector, groups, lanes = element.vector, shape.groups, element.lanes
    piece = 16 // element.n_packed_bytes
    lines.put(f"%{tag}_has_rest = icmp slt i64 {whole}, %length")
    lines.put(f"br i1 %{tag}_has_rest, label %{tag}_step, label %{tag}_sum")
    lines.label(f"{tag}_step")
    for g in range(groups):
        lines.put(
            f"%{tag}_q{g} = phi {vector} [ %{tag}_s{g}, %{tag}_rest ], [ %{tag}_r{g}, %{tag}_step ]"
        )
    lines.put(f"%{tag}_j = phi i64 [ {whole}, %{tag}_rest ], [ %{tag}_nj, %{tag}_step ]")
    lines.put(f"%{tag}_nj = add i64 %{tag}_j, {piece}")
    at = lines.let(f"mul i64 %{tag}_j, {element.n_bytes}")
    here = [lines.offset(start, at) for start in starts]
    scales, valid = [], []
    for i in range(piece):
        step = lines.let(f"add i64 %{tag}_j, {i}")
        is_valid = lines.let(f"icmp slt i64 {step}, %length")
        valid.append(is_valid)
        inside = lines.let(f"select i1 {is_valid}, i64 {step}, i64 %{tag}_j")
        pointer = lines.offset("%ak", lines.let(f"mul i64 {inside}, %a_step"))
        scales.append(_broadcast(lines, element, pointer))
    for g in range(groups):
        total = f"%{tag}_q{g}"
        pointers = _lane_pointers(lines, here, shape, lanes, g)
        columns = load_transposed(lines, element, pointers)
        for is_valid, scale, column in zip(valid, scales, columns, strict=True):
            added = element.multiply_add(lines, scale, column, total)
            total = lines.let(f"select i1 {is_valid}, {vector} {added}, {vector} {total}")
        lines.text[-1] = lines.text[-1].replace(total, f"%{tag}_r{g}", 1)
    lines.put(f"%{tag}_more_rest = icmp slt i64 %{tag}_nj, %length")
    lines.put(f"br i1 %{tag}_more_rest, label %{tag}_step, label %{tag}_sum")
    lines.label(f"{tag}_sum")
    return [
        lines.let(f"phi {vector} [ %{tag}_s{g}, %{tag}_rest ], [ %{tag}_r{g}, %{tag}_step ]")
        for g in range(groups)
    ]


def _columns_of(lines: Lines) -> str:
    body = "\n".join(lines.text)
    return (
        "define internal fastcc void @columns_of(ptr %a, ptr %b, ptr %c, i64 %n, i64 %k, "
        f"i64 %a_step, i64 %b_row, i64 %b_column, i64 %c_step, ptr %sums) nounwind {{\n{body}\n}}\n"
    )


_PREFETCH: Final = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"


@lru_cache(maxsize=256)
def vector_kernel(shape: VectorClass) -> tuple[str, str]:
    """Name and module text of the kernel of a class of vector times matrix."""
    element = Element(shape.dtype, shape.vector_bits)
    lines = Lines()
    lines.label("entry")
    words = {}
    for index, word in enumerate(VECTOR_WORDS):
        kind = "ptr" if word in ("a", "b", "c") else "i64"
        words[word] = lines.let(f"load {kind}, ptr {lines.offset('%args', 8 * index)}")
    lines.put("%has_units = icmp slt i64 %begin, %end")
    lines.put("br i1 %has_units, label %unit, label %done")
    lines.label("unit")
    lines.put("%u = phi i64 [ %begin, %entry ], [ %nu, %unit ]")
    batch = lines.let(f"sdiv i64 %u, {words['n_column_blocks']}")
    block = lines.let(f"srem i64 %u, {words['n_column_blocks']}")
    a, b, c = words["a"], words["b"], words["c"]
    for d in reversed(range(shape.n_batch)):
        at = [lines.offset("%args", 8 * (len(VECTOR_WORDS) + 4 * d + i)) for i in range(4)]
        size, stride_a, stride_b, stride_c = (lines.let(f"load i64, ptr {p}") for p in at)
        index_in = lines.let(f"srem i64 {batch}, {size}")
        batch = lines.let(f"sdiv i64 {batch}, {size}")
        a = lines.offset(a, lines.let(f"mul i64 {index_in}, {stride_a}"))
        b = lines.offset(b, lines.let(f"mul i64 {index_in}, {stride_b}"))
        c = lines.offset(c, lines.let(f"mul i64 {index_in}, {stride_c}"))
    column = lines.let(f"mul i64 {block}, {words['column_block']}")
    count = lines.smaller(words["column_block"], lines.let(f"sub i64 {words['n']}, {column}"))
    b = lines.offset(b, lines.let(f"mul i64 {column}, {words['b_column']}"))
    c = lines.offset(c, lines.let(f"mul i64 {column}, {words['c_column']}"))
    lines.put(
        f"call fastcc void @columns_of(ptr {a}, ptr {b}, ptr {c}, i64 {count}, i64 {words['k']}, "
        f"i64 {words['a_step']}, i64 {words['b_row']}, i64 {words['b_column']}, "
        f"i64 {words['c_column']}, ptr %scratch)"
    )
    lines.take("""\
  %nu = add i64 %u, 1
  %more_units = icmp slt i64 %nu, %end
  br i1 %more_units, label %unit, label %done
done:
  ret void""")
    if shape.kind == "rows":
        function = _rows_function(element)
    else:
        function = _PREFETCH + _columns_function(element, shape)
    body = "\n".join(lines.text)
    text = (
        f"{element.declarations}\n{_store_function(element)}\n{function}\n"
        f"define void @KERNEL(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {{\n"
        f"{body}\n}}\n"
    )
    name = f"vector_product_{shape.dtype.short_name}_{sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@KERNEL(", f"@{name}(")
