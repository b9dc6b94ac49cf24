"""A map over a finished block of C, as LLVM text: calls the kernel of a loop nest on it.

Keeps     a unit's block is mapped once, after its last sum; the map is a kernel like any other, so
          its bits are those it has alone.
Touches   elements.
Not here  the map's own text (codegen/nest_text), when a map is worth it (engine).

The words of an epilogue follow those of the batch: WORDS, then the map's arguments, then for each
of its pointers the number of its argument, its byte strides of rows and columns, and one for each
batch dimension."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.gemm.elements import Lines

WORDS: Final = (
    "function", "n_arguments", "n_pointers", "c_argument", "c_block", "arguments", "scratch",
)  # fmt: skip


def finish_function(n_batch: int) -> str:
    """`@finish(words, c, row, column, rows, columns, scratch, indices...)`: the map on a block of
    C at `c`, whose first element is (row, column) of the batch entry at `indices`."""
    lines = Lines()
    lines.label("entry")
    words = {}
    for index, word in enumerate(WORDS):
        kind = "ptr" if word == "function" else "i64"
        words[word] = lines.let(f"load {kind}, ptr {lines.offset('%words', 8 * index)}")
    arguments = lines.offset("%scratch", words["arguments"])
    map_scratch = lines.offset("%scratch", words["scratch"])
    template = lines.offset("%words", 8 * len(WORDS))
    pointers = lines.let(f"getelementptr i64, ptr {template}, i64 {words['n_arguments']}")
    lines.take(f"""\
  br label %copy
copy:
  %i = phi i64 [ 0, %entry ], [ %ni, %copy ]
  %from = getelementptr i64, ptr {template}, i64 %i
  %to = getelementptr i64, ptr {arguments}, i64 %i
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %ni = add i64 %i, 1
  %more = icmp slt i64 %ni, {words["n_arguments"]}
  br i1 %more, label %copy, label %sizes
sizes:
  %block_word = getelementptr i64, ptr {arguments}, i64 1
  %rows_word = getelementptr i64, ptr {arguments}, i64 2
  %c_word = getelementptr i64, ptr {arguments}, i64 {words["c_argument"]}
  store i64 %columns, ptr {arguments}
  store i64 %columns, ptr %block_word
  store i64 %rows, ptr %rows_word
  store ptr %c, ptr %c_word
  br label %pointer
pointer:
  %p = phi i64 [ 0, %sizes ], [ %np, %move ]
  %at = phi ptr [ {pointers}, %sizes ], [ %nat, %move ]
  %has_pointer = icmp slt i64 %p, {words["n_pointers"]}
  br i1 %has_pointer, label %move, label %call
move:""")
    steps = [lines.let(f"load i64, ptr {lines.offset('%at', 8 * i)}") for i in range(3 + n_batch)]
    target = lines.let(f"getelementptr i64, ptr {arguments}, i64 {steps[0]}")
    address = lines.let(f"load i64, ptr {target}")
    places = ["%row", "%column", *(f"%index{d}" for d in range(n_batch))]
    for place, step in zip(places, steps[1:], strict=True):
        address = lines.let(f"add i64 {address}, {lines.let(f'mul i64 {place}, {step}')}")
    lines.take(f"""\
  store i64 {address}, ptr {target}
  %nat = getelementptr i8, ptr %at, i64 {8 * (3 + n_batch)}
  %np = add i64 %p, 1
  br label %pointer
call:
  call void {words["function"]}(ptr {arguments}, i64 0, i64 %rows, ptr {map_scratch})
  ret void""")
    body = "\n".join(lines.text)
    indices = "".join(f", i64 %index{d}" for d in range(n_batch))
    return (
        "define internal fastcc void @finish(ptr %words, ptr %c, i64 %row, i64 %column, i64 %rows, "
        f"i64 %columns, ptr %scratch{indices}) nounwind {{\n{body}\n}}\n"
    )


def c_in_scratch(lines: Lines, first_word: int) -> str:
    """Where a unit's block of C lies when it is not kept."""
    word = lines.offset("%args", 8 * (first_word + WORDS.index("c_block")))
    return lines.offset("%scratch", lines.let(f"load i64, ptr {word}"))


def call_finish(
    lines: Lines, first_word: int, c: str, place: tuple[str, str, str, str], indices: list[str]
) -> None:
    """Run the map on the block at `c`; place: first row and column, rows and columns."""
    words = lines.offset("%args", 8 * first_word)
    row, column, rows, columns = place
    more = "".join(f", i64 {index}" for index in indices)
    lines.put(
        f"call fastcc void @finish(ptr {words}, ptr {c}, i64 {row}, i64 {column}, i64 {rows}, "
        f"i64 {columns}, ptr %scratch{more})"
    )
