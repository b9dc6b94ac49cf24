"""A row times a matrix with contiguous columns, as LLVM text.

Keeps     the contract of tile_text: a lane is a column of the matrix and keeps its one chain.
Touches   elements, pack_text (transposes in registers).
Not here  the kernel around it (vector_text.py).

Pieces of several columns are transposed in registers. One chain waits for itself at every step, so
several run side by side: of columns further on ("groups"), or of later blocks of 256 along k
("blocks"), whose sums are added in order when all are done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flambeau.devices.cpu.gemm.elements import Element, Lines, vector_function
from flambeau.devices.cpu.gemm.pack_text import load_lines_transposed, load_transposed
from flambeau.devices.cpu.gemm.tile_text import SUM_BLOCK

# Pieces of 16 bytes that one iteration takes from each column: a line of the cache.
_PIECES: Final = 4
# How far ahead of their use columns are fetched; there are too many for the CPU to notice.
_AHEAD_BYTES: Final = 512


@dataclass(frozen=True)
class Chains:
    """Groups of columns and blocks of k side by side; is_few: fewer columns than lanes."""

    groups: int
    blocks: int
    is_few: bool


def columns_function(element: Element, shape: Chains) -> str:
    """`@columns_of(...)` for "columns": groups x lanes columns at a time.

    The last set of columns starts early, so that those it shares with the one before are written
    twice, with the same bits; where there are fewer than lanes, lanes past the last repeat it.
    """
    lines = Lines()
    groups, blocks = shape.groups, shape.blocks
    width = groups * element.lanes
    latest = "0" if shape.is_few else lines.let(f"sub i64 %n, {width}")
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
    lines.put("%k0 = phi i64 [ 0, %columns ]" + "".join(f", [ %{e}_k, %{e}_done ]" for e in ends))
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
    return vector_function(lines)


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


def _lane_starts(lines: Lines, shape: Chains, lanes: int) -> list[str]:
    """Where every eighth column starts, or each of few."""
    if not shape.is_few:
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
    lines: Lines, starts: list[str], shape: Chains, lanes: int, group: int
) -> list[str]:
    """Pointers of a group's lanes, from what `_lane_starts` gave, moved along k."""
    if shape.is_few:
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
        result.append(element.broadcast_stored(lines, at))
    return result


def _run_blocks(lines: Lines, element: Element, shape: Chains, blocks: int, tag: str) -> None:
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
    jump = _jump(lines, element, shape, blocks, whole)
    some = lines.let(f"icmp sgt i64 {whole}, 0")
    lines.put(f"br i1 {some}, label %{tag}_line, label %{tag}_rest")

    lines.label(f"{tag}_line")
    arrows = f"%{tag} ], [ {{}}, %{tag}_line ]"
    for i in range(chains):
        lines.put(f"%{tag}_c{i} = phi {vector} [ zeroinitializer, " + arrows.format(f"%{tag}_n{i}"))
    lines.put(f"%{tag}_i = phi i64 [ {whole}, " + arrows.format(f"%{tag}_ni"))
    for kind, pointers in (("a", starts_a), ("b", starts)):
        for i, start in enumerate(pointers):
            lines.put(
                f"%{tag}_{kind}{i} = phi ptr [ {start}, " + arrows.format(f"%{tag}_n{kind}{i}")
            )
    is_inside = lines.let(f"icmp sgt i64 %{tag}_i, {_AHEAD_BYTES // element.n_bytes}")
    ahead = lines.let(f"select i1 {is_inside}, i64 {_AHEAD_BYTES}, i64 {jump}")
    _line_of_chains(lines, element, shape, blocks, len(starts), tag, ahead)
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


def _jump(lines: Lines, element: Element, shape: Chains, blocks: int, whole: str) -> str:
    """Bytes from where a chain reads near its end to what it reads after that, as far ahead: its
    next block, or the first one of the next columns."""
    further = lines.let(f"add i64 %k0, {SUM_BLOCK * blocks}")
    is_deep = lines.let(f"icmp slt i64 {further}, %k")
    columns = lines.let(f"mul i64 %b_column, {shape.groups * element.lanes}")
    across = lines.let(f"sub i64 {columns}, %kb_bytes")
    down = SUM_BLOCK * blocks * element.n_bytes
    following = lines.let(f"select i1 {is_deep}, i64 {down}, i64 {across}")
    own = lines.let(f"mul i64 {whole}, {element.n_bytes}")
    return lines.let(f"add i64 {lines.let(f'sub i64 {following}, {own}')}, {_AHEAD_BYTES}")


def _line_of_chains(
    lines: Lines, element: Element, shape: Chains, blocks: int, n_starts: int, tag: str, ahead: str
) -> None:
    """The loop's work: a line of every column, piece by piece, all chains side by side."""
    groups, lanes, size = shape.groups, element.lanes, element.n_bytes
    piece = 16 // element.n_packed_bytes
    is_line = lanes == _PIECES * piece
    count = lanes if is_line else piece
    load = load_lines_transposed if is_line else load_transposed
    sums = [f"%{tag}_c{i}" for i in range(groups * blocks)]
    here = [f"%{tag}_b{i}" for i in range(n_starts)]
    for step in range(0, _PIECES * piece, count):
        for i in range(groups * blocks):
            g, block = divmod(i, blocks)
            starts = _lane_pointers(lines, here, shape, lanes, g)
            if not step:
                for each in starts:
                    place = lines.offset(lines.offset(each, block * SUM_BLOCK * size), ahead)
                    lines.prefetch(place)
            move = (block * SUM_BLOCK + step) * size
            pointers = [lines.offset(each, move) if move else each for each in starts]
            pointer = f"%{tag}_a{block}"
            if step:
                pointer = lines.offset(pointer, lines.let(f"mul i64 %a_step, {step}"))
            scales = _scales(lines, element, pointer, count)
            for scale, column in zip(scales, load(lines, element, pointers), strict=True):
                sums[i] = element.multiply_add(lines, scale, column, sums[i])
    for i, value in enumerate(sums):
        position = next(n for n, line in enumerate(lines.text) if line.startswith(f"  {value} = "))
        lines.text[position] = lines.text[position].replace(value, f"%{tag}_n{i}", 1)


def _rest_of_block(
    lines: Lines, element: Element, shape: Chains, starts: list[str], whole: str, tag: str
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
        scales.append(element.broadcast_stored(lines, pointer))
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
