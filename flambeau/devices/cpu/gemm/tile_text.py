"""Register tile of a matrix product as LLVM text: a few rows by a few vectors of C.

Keeps     the contract of bits: inside blocks of 256 along k one chain of fma in order from zero;
          block sums added in order, the first being the start.
Touches   elements.
Not here  the loops over tiles (product_text.py), products with one row (vector_text.py).

A tile reads its operands by byte strides found in a context of run-time words:
    A(i, k) = a + i * a_row + k * a_column        B(k, j) = b + k * b_row + j * itemsize
so that one text serves matrices in place, transposed or packed. Scattered ones are read by tables:
    A(i, k) = a_base + rows[i] + a_table[k]           B(k, j) = b + b_table[k] + j
the table of rows being what `a` points at; vectors of a row of B lie b_vector bytes apart."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.gemm.elements import Element, Lines

SUM_BLOCK: Final = 256  # elements of k in one chain of fma
# Steps of k that lines are asked for ahead: a panel of B is larger than the first cache, and CPUs
# do not guess rows that lie far apart, of B or of a transposed A.
AHEAD: Final = 8
_LINE_BYTES: Final = 64

# Words of the context.
CONTEXT: Final = (
    "a_row", "a_column", "b_row", "c_row", "c_column", "k_length", "is_first", "is_last",
    "valid_rows", "b_source_row",
)  # fmt: skip
# And of one of which A or B is scattered.
SCATTERED: Final = (*CONTEXT, "b_table_at", "b_vector", "a_table_at", "a_base_at")


@lru_cache(maxsize=128)
def tile_function(
    element: Element, rows: int, vectors: int, is_c_contiguous: bool, has_all_rows: bool = True,
    packed_vectors: int = 0, scattered: str = "",
) -> str:  # fmt: skip
    """`@tile_RxV(a, b, c, sums, columns, context)`: rows x vectors of C over k_length of k; only
    the first valid_rows are stored, unless it always has all of them.

    With packed_vectors, `@packing_tile_RxV(a, b, c, sums, columns, context, packed)`: it reads B by
    b_source_row and leaves what it read at `packed`, in rows of so many vectors.
    scattered: "a" or "b", `@scattered_tile_RxV`, whose context has the words of SCATTERED.
    """
    lines = Lines()
    count = rows * vectors
    lines.label("entry")
    context = _entered(lines, rows, scattered, bool(packed_vectors))
    lines.put("br label %block")

    lines.label("block")
    lines.put(f"%block_a = phi ptr [ {context['first_a']}, %entry ], [ %next_block_a, %again ]")
    lines.put(f"%block_b = phi ptr [ {context['first_b']}, %entry ], [ %next_block_b, %again ]")
    lines.put(f"%left = phi i64 [ {context['k_length']}, %entry ], [ %next_left, %again ]")
    lines.put(f"%first = phi i64 [ {context['is_first']}, %entry ], [ 0, %again ]")
    packed_row = packed_vectors * element.lanes * element.n_packed_bytes
    if packed_row:
        lines.put("%block_p = phi ptr [ %packed, %entry ], [ %next_block_p, %again ]")
        lines.put(f"%next_block_p = getelementptr i8, ptr %block_p, i64 {packed_row * SUM_BLOCK}")
    lines.put(f"%next_block_a = getelementptr i8, ptr %block_a, i64 {context['step_a']}")
    lines.put(f"%next_block_b = getelementptr i8, ptr %block_b, i64 {context['step_b']}")
    lines.put(f"%next_left = sub i64 %left, {SUM_BLOCK}")
    lines.put("%has_some = icmp sgt i64 %left, 0")
    starts = ["%block_a"]
    for _ in range(5, rows, 5) if scattered != "a" else ():
        starts.append(lines.offset(starts[-1], context["five"]))
    steps = lines.smaller("%left", SUM_BLOCK)
    lines.put("br i1 %has_some, label %chain, label %sum")

    _chain(lines, element, rows, vectors, starts, steps, context, scattered, packed_row)

    _add_to_sums(lines, element, count, context["is_last"])
    lines.label("finish")
    valid = str(rows) if has_all_rows else context["valid_rows"]
    _store_tile(lines, element, rows, vectors, context, is_c_contiguous, valid)
    body = "\n".join(lines.text)
    name, last = ("packing_tile", ", ptr %packed") if packed_row else ("tile", "")
    name = "scattered_tile" if scattered else name
    return (
        f"define internal fastcc void @{name}_{rows}x{vectors}(ptr %a, ptr %b, ptr %c, ptr %sums, "
        f"i64 %columns, ptr %context{last}) nounwind {{\n{body}\n}}\n"
    )


def _entered(lines: Lines, rows: int, scattered: str, is_packing: bool) -> dict[str, str]:
    """Words of the context and what follows from them: where blocks of A and B begin, and steps."""
    context = {}
    for index, word in enumerate(SCATTERED if scattered else CONTEXT):
        pointer = lines.offset("%context", 8 * index)
        kind = "ptr" if word.endswith("_at") else "i64"
        context[word] = lines.let(f"load {kind}, ptr {pointer}")
    if is_packing:
        context["b_row"] = context["b_source_row"]
    context |= {"first_a": "%a", "first_b": "%b"}
    table_step = str(8 * SUM_BLOCK)
    if scattered == "a":
        context |= {"first_a": context["a_table_at"], "step_a": table_step, "a_column": "8"}
        for r in range(rows):
            far = lines.let(f"load i64, ptr {lines.offset('%a', 8 * r)}, align 8")
            start = context["a_base_at"]
            context[f"row_{r}"] = lines.let(f"getelementptr i8, ptr {start}, i64 {far}")
    else:
        context["thrice"] = lines.let(f"mul i64 {context['a_row']}, 3")
        context["five"] = lines.let(f"mul i64 {context['a_row']}, 5")
        context["step_a"] = lines.let(f"mul i64 {context['a_column']}, {SUM_BLOCK}")
    if scattered == "b":
        context |= {"first_b": context["b_table_at"], "step_b": table_step, "b_row": "8"}
        context["b_vector_thrice"] = lines.let(f"mul i64 {context['b_vector']}, 3")
        context["b_vector_five"] = lines.let(f"mul i64 {context['b_vector']}, 5")
    else:
        context["step_b"] = lines.let(f"mul i64 {context['b_row']}, {SUM_BLOCK}")
    return context


def _add_to_sums(lines: Lines, element: Element, count: int, is_last: str) -> None:
    """A finished block is the start of the sums or is added to them; they are kept in scratch
    until the last block."""
    vector, n_bytes = element.vector, element.lanes * element.n_packed_bytes
    lines.label("sum")
    for i in range(count):
        lines.put(f"%s{i} = phi {vector} [ zeroinitializer, %block ], [ %n{i}, %chain ]")
    lines.put("%is_start = icmp ne i64 %first, 0")
    lines.put("br i1 %is_start, label %total, label %carry")
    lines.label("carry")
    for i in range(count):
        pointer = lines.offset("%sums", i * n_bytes)
        before = lines.let(f"load {vector}, ptr {pointer}, align 32")
        lines.put(f"%r{i} = {'fadd' if element.is_float else 'add'} {vector} {before}, %s{i}")
    lines.put("br label %total")
    lines.label("total")
    for i in range(count):
        lines.put(f"%t{i} = phi {vector} [ %s{i}, %sum ], [ %r{i}, %carry ]")
    lines.put("%is_end = icmp sle i64 %next_left, 0")
    is_final = lines.let(f"and i1 %is_end, {lines.let(f'icmp ne i64 {is_last}, 0')}")
    lines.put(f"br i1 {is_final}, label %finish, label %keep")
    lines.label("keep")
    for i in range(count):
        pointer = lines.offset("%sums", i * n_bytes)
        lines.put(f"store {vector} %t{i}, ptr {pointer}, align 32")
    lines.put("br i1 %is_end, label %done, label %again")
    lines.label("again")
    lines.put("br label %block")


def _chain(
    lines: Lines, element: Element, rows: int, vectors: int, starts: list[str], steps: str,
    context: dict[str, str], scattered: str, packed_row: int,
) -> None:  # fmt: skip
    """One block over k: accumulators in phi nodes, one step of k an iteration."""
    vector = element.vector
    lines.label("chain")
    for i in range(rows * vectors):
        lines.put(f"%c{i} = phi {vector} [ zeroinitializer, %block ], [ %n{i}, %chain ]")
    for g, start in enumerate(starts):
        lines.put(f"%a{g} = phi ptr [ {start}, %block ], [ %na{g}, %chain ]")
    lines.put("%bp = phi ptr [ %block_b, %block ], [ %nbp, %chain ]")
    lines.put(f"%k = phi i64 [ {steps}, %block ], [ %nk, %chain ]")
    if packed_row:
        lines.put("%p = phi ptr [ %block_p, %block ], [ %np, %chain ]")
        lines.put(f"%np = getelementptr i8, ptr %p, i64 {packed_row}")
    far = ""
    if scattered:
        far = lines.let(f"load i64, ptr {'%a0' if scattered == 'a' else '%bp'}, align 8")

    def left(r: int) -> str:
        return _left(lines, element, r, context, far if scattered == "a" else "")

    def right(v: int) -> str:
        if scattered == "b":
            return _scattered_right(lines, element, v, context, far)
        offset = v * element.lanes * element.n_packed_bytes
        place = lines.offset("%bp", offset)
        value = lines.let(f"load {vector}, ptr {place}, align {element.n_packed_bytes}")
        if packed_row:
            lines.put(f"store {vector} {value}, ptr {lines.offset('%p', offset)}, align 32")
        return value

    # The shorter side of the tile stays in registers, the other passes through one.
    if rows < vectors:
        lefts = [left(r) for r in range(rows)]
        pairs = (
            (r, v, lefts[r], b) for v in range(vectors) for b in (right(v),) for r in range(rows)
        )
    else:
        rights = [right(v) for v in range(vectors)]
        pairs = (
            (r, v, a, rights[v]) for r in range(rows) for a in (left(r),) for v in range(vectors)
        )
    for r, v, a, b in pairs:
        i = r * vectors + v
        total = element.multiply_add(lines, a, b, f"%c{i}")
        lines.text[-1] = lines.text[-1].replace(f"{total} = ", f"%n{i} = ")
    _next_step(lines, element, vectors, len(starts), context, scattered)


def _next_step(
    lines: Lines, element: Element, vectors: int, n_starts: int, context: dict[str, str],
    scattered: str,
) -> None:  # fmt: skip
    """Ask for lines ahead, except of what is scattered, which lies near; go on in k."""
    if scattered != "b":
        ahead = lines.let(f"getelementptr [{AHEAD} x i8], ptr %bp, i64 {context['b_row']}")
        for offset in range(0, vectors * element.lanes * element.n_packed_bytes, _LINE_BYTES):
            lines.prefetch(lines.offset(ahead, offset))
    column = context["a_column"]
    if scattered != "a":
        lines.prefetch(lines.let(f"getelementptr [{AHEAD} x i8], ptr %a0, i64 {column}"))
    for g in range(n_starts):
        lines.put(f"%na{g} = getelementptr i8, ptr %a{g}, i64 {column}")
    lines.put(f"%nbp = getelementptr i8, ptr %bp, i64 {context['b_row']}")
    lines.put("%nk = add i64 %k, -1")
    lines.put("%more = icmp ne i64 %nk, 0")
    lines.put("br i1 %more, label %chain, label %sum")


def _left(lines: Lines, element: Element, r: int, context: dict[str, str], far: str) -> str:
    """An element of row `r` of A, repeated; far: where the step's elements of a scattered one are.

    One pointer serves five rows: x86 scales an index by 1, 2 or 4 for nothing.
    """
    if far:
        pointer = lines.let(f"getelementptr i8, ptr {context[f'row_{r}']}, i64 {far}")
        return element.broadcast(lines, pointer)
    pointer = f"%a{r // 5}"
    if r % 5 == 3:
        pointer = lines.offset(pointer, context["thrice"])
    elif r % 5:
        pointer = lines.let(f"getelementptr [{r % 5} x i8], ptr {pointer}, i64 {context['a_row']}")
    return element.broadcast(lines, pointer)


def _scattered_right(
    lines: Lines, element: Element, v: int, context: dict[str, str], far: str
) -> str:
    """Vector `v` of a row of a scattered B that begins `far` from b."""
    place = lines.let(f"getelementptr i8, ptr %b, i64 {far}")
    if v in (3, 5, 6):
        word, times = ("five", 1) if v == 5 else ("thrice", v // 3)
        several = context[f"b_vector_{word}"]
        place = lines.let(f"getelementptr [{times} x i8], ptr {place}, i64 {several}")
    elif v:
        place = lines.let(f"getelementptr [{v} x i8], ptr {place}, i64 {context['b_vector']}")
    return lines.let(f"load {element.vector}, ptr {place}, align {element.n_packed_bytes}")


def _store_tile(
    lines: Lines, element: Element, rows: int, vectors: int, context: dict[str, str],
    is_c_contiguous: bool, valid: str,
) -> None:  # fmt: skip
    """Finished totals %t* to C: whole vectors, or through scratch element by element; `valid` rows
    of them."""
    lanes, n_bytes = element.lanes, element.n_bytes
    stored = f"<{lanes} x {element.stored}>"
    values = [element.narrow(lines, f"%t{i}") for i in range(rows * vectors)]
    if is_c_contiguous:
        is_whole = lines.let(f"icmp eq i64 %columns, {vectors * lanes}")
        if valid != str(rows):
            has_rows = lines.let(f"icmp eq i64 {valid}, {rows}")
            is_whole = lines.let(f"and i1 {is_whole}, {has_rows}")
        lines.put(f"br i1 {is_whole}, label %whole, label %ragged")
        lines.label("whole")
        pointer = "%c"
        for r in range(rows):
            if r:
                pointer = lines.offset(pointer, context["c_row"])
            for v in range(vectors):
                target = lines.offset(pointer, v * lanes * n_bytes)
                value = values[r * vectors + v]
                lines.put(f"store {stored} {value}, ptr {target}, align {n_bytes}")
        lines.put("ret void")
    else:
        lines.put("br label %ragged")
    lines.label("ragged")
    for i, value in enumerate(values):
        target = lines.offset("%sums", i * lanes * n_bytes)
        lines.put(f"store {stored} {value}, ptr {target}, align {n_bytes}")
    row_bytes = vectors * lanes * n_bytes
    lines.put(
        f"call fastcc void @put_ragged(ptr %sums, ptr %c, i64 {valid}, i64 %columns, "
        f"i64 {row_bytes}, i64 {context['c_row']}, i64 {context['c_column']})"
    )
    lines.put("br label %done")
    lines.label("done")
    lines.put("ret void")


@lru_cache(maxsize=128)
def ragged_function(element: Element, vectors: int, is_c_contiguous: bool) -> str:
    """`@put_ragged(from, c, rows, columns, row_bytes, c_row, c_column)`: the valid part of a tile
    of at most `vectors` a row, spilled to scratch, to C."""
    lines = Lines()
    lines.take("""\
entry:
  br label %copy_row
copy_row:
  %i = phi i64 [ 0, %entry ], [ %ni, %copied ]
  %from_row = phi ptr [ %from, %entry ], [ %nfrom_row, %copied ]
  %to_row = phi ptr [ %c, %entry ], [ %nto_row, %copied ]""")
    if is_c_contiguous:
        _copy_run(lines, element, vectors)
    else:
        _copy_elements(lines, element)
    lines.take("""\
copied:
  %nfrom_row = getelementptr i8, ptr %from_row, i64 %row_bytes
  %nto_row = getelementptr i8, ptr %to_row, i64 %c_row
  %ni = add i64 %i, 1
  %more_rows = icmp slt i64 %ni, %rows
  br i1 %more_rows, label %copy_row, label %done
done:
  ret void""")
    body = "\n".join(lines.text)
    return (
        "define internal fastcc void @put_ragged(ptr %from, ptr %c, i64 %rows, i64 %columns, "
        f"i64 %row_bytes, i64 %c_row, i64 %c_column) nounwind {{\n{body}\n}}\n"
    )


def _copy_elements(lines: Lines, element: Element) -> None:
    """The valid part of a row of a tile, to columns that are not neighbours."""
    size = element.n_bytes
    lines.take(f"""\
  br label %copy
copy:
  %j = phi i64 [ 0, %copy_row ], [ %nj, %copy ]
  %to = phi ptr [ %to_row, %copy_row ], [ %nto, %copy ]
  %at = getelementptr {element.stored}, ptr %from_row, i64 %j
  %one = load {element.stored}, ptr %at, align {size}
  store {element.stored} %one, ptr %to, align {size}
  %nto = getelementptr i8, ptr %to, i64 %c_column
  %nj = add i64 %j, 1
  %more = icmp slt i64 %nj, %columns
  br i1 %more, label %copy, label %copied""")


def _copy_run(lines: Lines, element: Element, vectors: int) -> None:
    """The valid part of a row of a tile, to neighbours: pieces of halving sizes, each copied when
    the count has its bit."""
    size = element.n_bytes
    piece = 1
    while 2 * piece <= vectors * element.lanes:
        piece *= 2
    lines.put(f"br label %copy{piece}")
    while piece:
        following = f"copy{piece // 2}" if piece > 1 else "copied"
        kind = f"<{piece} x {element.stored}>"
        lines.label(f"copy{piece}")
        has_bit = lines.let(f"and i64 %columns, {piece}")
        is_set = lines.let(f"icmp ne i64 {has_bit}, 0")
        lines.put(f"br i1 {is_set}, label %do{piece}, label %{following}")
        lines.label(f"do{piece}")
        offset = lines.let(f"and i64 %columns, {-2 * piece}")  # larger pieces come before
        source = lines.let(f"getelementptr {element.stored}, ptr %from_row, i64 {offset}")
        target = lines.let(f"getelementptr {element.stored}, ptr %to_row, i64 {offset}")
        one = lines.let(f"load {kind}, ptr {source}, align {size}")
        lines.put(f"store {kind} {one}, ptr {target}, align {size}")
        lines.put(f"br label %{following}")
        piece //= 2
