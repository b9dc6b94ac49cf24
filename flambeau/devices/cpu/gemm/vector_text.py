"""Products whose left operand is one row, as LLVM text: the kernel over blocks of columns.

Keeps     the contract of bits of tile_text; operands are read where they lie, narrow dtypes too.
Touches   vector_rows_text, vector_columns_text, elements.
Not here  which products come here (grid.py).

Three kinds, by what is contiguous in the matrix: "rows", "columns", and "few_columns" where there
are fewer columns than lanes."""

from __future__ import annotations

from dataclasses import dataclass
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
from flambeau.devices.cpu.gemm.vector_columns_text import Chains, columns_function
from flambeau.devices.cpu.gemm.vector_rows_text import rows_function

# Words of a kernel, in order; then for each batch dimension its size and the strides of a, b, c.
VECTOR_WORDS: Final = (
    "a", "b", "c", "n", "k", "column_block", "n_column_blocks", "a_step", "b_row", "b_column",
    "c_column",
)  # fmt: skip


@dataclass(frozen=True)
class VectorClass:
    """What the text of a kernel depends on; groups and blocks matter to "columns" only."""

    dtype: dtype
    vector_bits: int
    kind: str
    groups: int
    blocks: int
    n_batch: int


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


@lru_cache(maxsize=256)
def vector_kernel(shape: VectorClass) -> tuple[str, str]:
    """Name and module text of the kernel of a class of vector times matrix."""
    element = element_of(shape.dtype, shape.vector_bits)
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
    indices = batch_indices(lines, batch, shape.n_batch, len(VECTOR_WORDS), 4)
    operands = words["a"], words["b"], words["c"]
    a, b, c = batch_entry(lines, indices, len(VECTOR_WORDS), operands)
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
        function = rows_function(element)
    else:
        chains = Chains(shape.groups, shape.blocks, shape.kind == "few_columns")
        function = columns_function(element, chains)
    body = "\n".join(lines.text)
    text = (
        f"{element.declarations}\n{_store_function(element)}\n{function}\n"
        f"define void @KERNEL(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {{\n"
        f"{body}\n}}\n"
    )
    name = f"vector_product_{shape.dtype.short_name}_{sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@KERNEL(", f"@{name}(")
