"""Loop IR: what one kernel computes, free of sizes, strides, offsets and scalars.

Keeps     a Nest is immutable and hashable by its text; nothing in it depends on run-time numbers,
          so one compiled kernel serves every size. Any split of its units over any threads in
          any order gives the same bits.
Touches   base.dtypes, vocabulary.
Not here  LLVM text (nest_text), choosing what shares a nest (engine/planning/fuse.py).

Shape of a nest. Rows are the elements of the outer dimensions (parallel); each row runs the
phases in order; each phase is one vector loop over the inner dimension followed by code that
runs once per row.

    for row in outer dims:                      # units of work
        for phase in phases:
            for j in inner:  phase.loop         # vectorised; Store, Keep, Reduce
            phase.row                           # Store of scalars, may use what was reduced

kind "rows":     as above. If no phase reduces (a map), a row may be cut into blocks of
                 `inner_block` elements, so units = rows x blocks; else units = rows.
kind "blocks":   one phase, reductions over long rows: units = rows x blocks of 1024 elements of
                 inner; each unit stores the partial value of every reduction (phase.row, where
                 "reduced" is the block's partial value; accesses of row stores have one more
                 outer dim, the block number, at the end). The partials are folded by another nest
                 whose reduction kind is "tree_sum" and so on.
kind "columns":  one phase. Reduces the dimension before the inner one. The loop runs over blocks
                 of 128 of the reduced dimension (in order), vectorised over inner; phase.row
                 runs once per column, vectorised over inner. units = rows x blocks of
                 `inner_block` columns.
kind "column_blocks": as columns, but units = rows x column blocks x blocks of 128 reduced rows;
                 phase.row stores partials (accesses with one more outer dim, the block number).

Leaves. "index" is an int64 position: value d < n_outer in outer dim d; in rows and blocks, n_outer
along inner (in the whole row, not in a block of it); in columns kinds, n_outer in the reduced
dimension and n_outer + 1 along inner. "load" in phase.row of a columns kind reads reduced position
0. Scalars of a row (row_level loads, what was reduced, indices of gathers that depend on these
alone) are read when the phase that first needs them begins, once per row; what only depends on
numbers, once per call.

Run-time arguments, one 64-bit word each, in this order (see Nest.argument_names):
    inner size; inner_block; reduced size (columns kinds only)
    size of each outer dimension
    for each access: pointer; one stride in BYTES per outer dim (row stores of blocks kinds: one
        more, for the block number); reduced stride in bytes (columns kinds, unless row_level);
        inner stride in bytes if inner == "strided"; for a gather: stride in bytes of the index,
        number of valid indices, address of the error word
    for each number: its bits (integers and bool as int64, narrower floats in the low bytes)

Scratch: Nest.scratch_bytes, 64-byte aligned, private to the thread; what it holds is not kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.codegen.vocabulary import Expression

LANES: Final = 32  # virtual lanes of a sum over last axes
BLOCK: Final = 1024  # elements of a sum's block (last axes)
ROW_BLOCK: Final = 128  # rows of a sum's block (other axes)

REDUCTIONS: Final = (
    "sum", "prod", "max", "min", "argmax", "argmin", "any", "all",
    "tree_sum", "tree_prod",  # fold block partials in order by the binary counter
)  # fmt: skip


@dataclass(frozen=True)
class Access:
    """How a nest reads or writes one view slot.

    inner      "unit" (stride = itemsize), "zero" (same element for the whole row), "pair" (stride =
               twice the itemsize), "strided" (run-time stride: loads gather lane by lane, index
               clamped to the row's end)
    row_level  the access does not depend on inner (nor, in columns kinds, on the reduced
               dimension): loaded once per row, or stored in phase.row. In columns kinds
               phase.row stores along inner whatever row_level says; there it only means that
               no reduced stride is among the arguments.
    index      for a gather: int64 expression (over other accesses of the nest); the address is
               base + sum(stride * dims) + index_stride * index. An index outside [0, bound)
               sets the error word to 1 + this access's number and reads index 0; of a store
               (one lane after the other, in order), it sets the word and stores nothing.
    half       of "pair": (number, 1 or 2); the two with one number are the first and the second
               elements of the same pairs
    """

    dtype: dtype
    inner: str = "unit"
    row_level: bool = False
    index: Expression | None = None
    half: tuple[int, int] | None = None


@dataclass(frozen=True)
class Store:
    """Write `value` through access number `access`."""

    access: int
    value: Expression


@dataclass(frozen=True)
class Keep:
    """Hold `value` of every element of the row in scratch row `scratch` for later phases."""

    scratch: int
    value: Expression


@dataclass(frozen=True)
class Reduce:
    """Fold `value` over the loop into reduction `number` (leaf "reduced" with that value).
    Numbers are distinct within a nest.

    argmax and argmin give int64 positions in the reduced dimension, first of equals, first NaN.
    max and min propagate NaN, -0 < +0. any and all take and give bool. In blocks kinds positions
    are those in the whole reduced dimension. sum and prod accumulate in
    value.dtype by the numeric contract: lane l of 32 takes elements l, l + 32, ... of a block of
    1024 in order from +0 (1 for prod); lanes fold by halves (l + (l + 16), then 8, 4, 2, 1); blocks
    fold by a binary counter in order. In columns kinds: 128 rows in order from +0, then the same
    counter over blocks.

    The counter: partials of 2**i blocks are kept, at most one of each size. A block's value v takes
    the most recent partial p while it has v's size: v = p + v. After the last block v takes all
    that are left, most recent first. tree_sum and tree_prod fold the elements of the loop (along
    inner, or the reduced dimension in columns kinds) as the values of successive blocks, so that
    folding the stored partials of a blocks kind gives the bits of the whole; no elements give
    the identity. They share their phase with nothing else.
    """

    number: int
    kind: str
    value: Expression


Statement = Store | Keep | Reduce


@dataclass(frozen=True)
class Phase:
    """One loop over inner, then code run once per row. Within an iteration every load happens
    before every store; a store's value is never re-loaded by the same phase."""

    loop: tuple[Statement, ...]
    row: tuple[Store, ...] = ()


def _number(root: Expression, numbers: dict[Expression, int], lines: list[str]) -> int:
    """Number of an expression in a list of lines that has every shared part once."""
    stack = [root]
    while stack:
        top = stack[-1]
        if top in numbers:
            stack.pop()
            continue
        missing = [each for each in top.arguments if each not in numbers]
        if missing:
            stack += reversed(missing)
            continue
        operands = " ".join(f"%{numbers[each]}" for each in top.arguments)
        value = "" if top.value is None else repr(top.value)
        numbers[top] = len(lines)
        lines.append(f"{top.word}.{top.dtype.short_name} {operands} {value}")
        stack.pop()
    return numbers[root]


@dataclass(frozen=True)
class Nest:
    """One kernel, canonical: equal work gives equal nests, whatever the sizes."""

    kind: str
    n_outer: int
    accesses: tuple[Access, ...]
    phases: tuple[Phase, ...]
    numbers: tuple[dtype, ...] = ()
    scratch: tuple[dtype, ...] = ()

    @cached_property
    def key(self) -> str:
        """Canonical text; equal keys mean the same kernel."""
        numbers: dict[Expression, int] = {}
        lines: list[str] = []

        def named(expression: Expression | None) -> str:
            return "" if expression is None else f"%{_number(expression, numbers, lines)}"

        accesses = [
            (a.dtype, a.inner, a.row_level, named(a.index), *(a.half or ())) for a in self.accesses
        ]
        phases = []
        for phase in self.phases:
            statements = []
            for each in (*phase.loop, *phase.row):
                value = named(each.value)
                if isinstance(each, Reduce):
                    statements.append(f"{each.kind}.{each.number} {value}")
                elif isinstance(each, Keep):
                    statements.append(f"keep.{each.scratch} {value}")
                else:
                    statements.append(f"store.{each.access} {value}")
            phases.append((len(phase.loop), statements))
        head = (self.kind, self.n_outer, accesses, phases, self.numbers, self.scratch)
        return "\n".join([repr(head), *lines])

    @cached_property
    def is_map(self) -> bool:
        """No phase reduces, so rows may be cut into blocks."""
        return not any(isinstance(s, Reduce) for phase in self.phases for s in phase.loop)

    def scratch_bytes(self, inner_size: int) -> int:
        """Bytes of scratch a kernel call needs: every row has room for one step past its end."""
        return sum(((inner_size + LANES) * of.itemsize + 63) & -64 for of in self.scratch)

    @cached_property
    def row_stores(self) -> frozenset[int]:
        """Accesses written by phase.row."""
        return frozenset(store.access for phase in self.phases for store in phase.row)

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the run-time words in order; what a binder fills and a reader emits from."""
        names = ["inner_size", "inner_block"]
        if self.kind in ("columns", "column_blocks"):
            names.append("reduced_size")
        names += [f"outer_size.{d}" for d in range(self.n_outer)]
        for a, access in enumerate(self.accesses):
            names.append(f"pointer.{a}")
            names += [f"stride.{a}.{d}" for d in range(self.n_outer)]
            if a in self.row_stores and self.kind in ("blocks", "column_blocks"):
                names.append(f"block_stride.{a}")
            if self.kind in ("columns", "column_blocks") and not access.row_level:
                names.append(f"reduced_stride.{a}")
            if access.inner == "strided":
                names.append(f"inner_stride.{a}")
            if access.index is not None:
                names += [f"index_stride.{a}", f"index_bound.{a}", f"error.{a}"]
        names += [f"number.{n}" for n in range(len(self.numbers))]
        return tuple(names)


def kernel_name(nest: Nest, vector_bits: int) -> str:
    """Name of the nest's kernel; equal nests have equal names."""
    digest = hashlib.sha256(f"{vector_bits} {nest.key}".encode()).hexdigest()
    return f"nest_{digest[:20]}"
