"""Places of the true elements of a mask: count by blocks, add the counts up, write by blocks.

Keeps     the mask is read as words of eight 0/1 bytes; places come out in row-major order whatever
          the threads. Nothing is written past the rows that were asked for.
Touches   steps.
Not here  how many rows there are: the caller counted before (tensor/index_keys.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from flambeau.devices.cpu.steps import At, NativePlan, NativeStep

# Elements of a block: a unit of work, 8 to 60 microseconds.
BLOCK: Final = 1 << 15

_WORD: Final = """\
  %left = sub i64 %stop, %at
  %whole = icmp uge i64 %left, 8
  %bits = shl i64 %left, 3
  %short_bits = and i64 %bits, 63
  %one = shl i64 1, %short_bits
  %short_mask = sub i64 %one, 1
  %mask = select i1 %whole, i64 -1, i64 %short_mask
  %address = getelementptr i8, ptr %source, i64 %at
  %loaded = load i64, ptr %address, align 1
  %word = and i64 %loaded, %mask
"""

_COUNT: Final = """\
declare i64 @llvm.ctpop.i64(i64)
define void @NAME(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %source = load ptr, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  %counts = load ptr, ptr %a1
  %a2 = getelementptr i64, ptr %args, i64 2
  %n = load i64, ptr %a2
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %unit, label %done
unit:
  %u = phi i64 [ %begin, %entry ], [ %u_next, %unit_end ]
  %start = mul i64 %u, BLOCK
  %full = add i64 %start, BLOCK
  %stop = call i64 @llvm.umin.i64(i64 %full, i64 %n)
  br label %loop
loop:
  %at = phi i64 [ %start, %unit ], [ %at_next, %loop ]
  %sum = phi i64 [ 0, %unit ], [ %sum_next, %loop ]
WORD  %ones = call i64 @llvm.ctpop.i64(i64 %word)
  %sum_next = add i64 %sum, %ones
  %at_next = add i64 %at, 8
  %more = icmp ult i64 %at_next, %stop
  br i1 %more, label %loop, label %unit_end
unit_end:
  %count = getelementptr i64, ptr %counts, i64 %u
  store i64 %sum_next, ptr %count
  %u_next = add i64 %u, 1
  %again = icmp slt i64 %u_next, %end
  br i1 %again, label %unit, label %done
done:
  ret void
}
declare i64 @llvm.umin.i64(i64, i64)
"""

# Counts become the rows where the blocks start; rows behind the last place get the fill value.
_PREFIX: Final = """\
define void @NAME(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %counts = load ptr, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  %n_blocks = load i64, ptr %a1
  %a2 = getelementptr i64, ptr %args, i64 2
  %rows = load ptr, ptr %a2
  %a3 = getelementptr i64, ptr %args, i64 3
  %size = load i64, ptr %a3
  %a4 = getelementptr i64, ptr %args, i64 4
  %n_dims = load i64, ptr %a4
  %a5 = getelementptr i64, ptr %args, i64 5
  %filler = load i64, ptr %a5
  %blocks = icmp sgt i64 %n_blocks, 0
  br i1 %blocks, label %loop, label %tail
loop:
  %b = phi i64 [ 0, %entry ], [ %b_next, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %sum_next, %loop ]
  %place = getelementptr i64, ptr %counts, i64 %b
  %count = load i64, ptr %place
  store i64 %sum, ptr %place
  %sum_next = add i64 %sum, %count
  %b_next = add i64 %b, 1
  %more = icmp slt i64 %b_next, %n_blocks
  br i1 %more, label %loop, label %tail
tail:
  %total = phi i64 [ 0, %entry ], [ %sum_next, %loop ]
  %first = mul i64 %total, %n_dims
  %last = mul i64 %size, %n_dims
  %some = icmp slt i64 %first, %last
  br i1 %some, label %fill, label %done
fill:
  %f = phi i64 [ %first, %tail ], [ %f_next, %fill ]
  %word = getelementptr i64, ptr %rows, i64 %f
  store i64 %filler, ptr %word
  %f_next = add i64 %f, 1
  %again = icmp slt i64 %f_next, %last
  br i1 %again, label %fill, label %done
done:
  ret void
}
"""

_PLACES: Final = """\
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
define void @NAME(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %source = load ptr, ptr %args
  %a1 = getelementptr i64, ptr %args, i64 1
  %starts = load ptr, ptr %a1
  %a2 = getelementptr i64, ptr %args, i64 2
  %n = load i64, ptr %a2
  %a3 = getelementptr i64, ptr %args, i64 3
  %rows = load ptr, ptr %a3
  %a4 = getelementptr i64, ptr %args, i64 4
  %size = load i64, ptr %a4
SIZES  %some = icmp slt i64 %begin, %end
  br i1 %some, label %unit, label %done
unit:
  %u = phi i64 [ %begin, %entry ], [ %u_next, %unit_end ]
  %start = mul i64 %u, BLOCK
  %full = add i64 %start, BLOCK
  %stop = call i64 @llvm.umin.i64(i64 %full, i64 %n)
  %first_place = getelementptr i64, ptr %starts, i64 %u
  %first = load i64, ptr %first_place
  br label %loop
loop:
  %at = phi i64 [ %start, %unit ], [ %at_next, %next ]
  %row = phi i64 [ %first, %unit ], [ %row_after, %next ]
WORD  %any = icmp ne i64 %word, 0
  br i1 %any, label %bit, label %next
bit:
  %rest = phi i64 [ %word, %loop ], [ %rest_next, %stored ]
  %row_now = phi i64 [ %row, %loop ], [ %row_next, %stored ]
  %zeros = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %byte = lshr i64 %zeros, 3
  %index = add i64 %at, %byte
  %fits = icmp ult i64 %row_now, %size
  br i1 %fits, label %store, label %stored
store:
STORE  br label %stored
stored:
  %row_next = add i64 %row_now, 1
  %less = sub i64 %rest, 1
  %rest_next = and i64 %rest, %less
  %again = icmp ne i64 %rest_next, 0
  br i1 %again, label %bit, label %next
next:
  %row_after = phi i64 [ %row, %loop ], [ %row_next, %stored ]
  %at_next = add i64 %at, 8
  %more = icmp ult i64 %at_next, %stop
  br i1 %more, label %loop, label %unit_end
unit_end:
  %u_next = add i64 %u, 1
  %unit_again = icmp slt i64 %u_next, %end
  br i1 %unit_again, label %unit, label %done
done:
  ret void
}
"""


def _named(family: str, text: str) -> tuple[str, str]:
    text = text.replace("WORD", _WORD).replace("BLOCK", str(BLOCK))
    name = f"{family}_{sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@NAME", f"@{name}")


@lru_cache
def count_kernel() -> tuple[str, str]:
    """True elements of each block. Words: mask, counts, elements."""
    return _named("compact_count", _COUNT)


@lru_cache
def prefix_kernel() -> tuple[str, str]:
    """One unit. Words: counts, blocks, rows, their number, dims, fill value."""
    return _named("compact_prefix", _PREFIX)


@lru_cache
def places_kernel(n_dims: int) -> tuple[str, str]:
    """Places of each block. Words: mask, starts, elements, rows, their number, sizes of the dims
    after the first."""
    sizes = ""
    for dim in range(1, n_dims):
        sizes += f"  %s{dim} = getelementptr i64, ptr %args, i64 {4 + dim}\n"
        sizes += f"  %size{dim} = load i64, ptr %s{dim}\n"
    store = f"  %row_word = mul i64 %row_now, {n_dims}\n"
    left = "%index"
    for dim in range(n_dims - 1, -1, -1):
        place = left
        if dim:
            store += f"  %above{dim} = udiv i64 {left}, %size{dim}\n"
            store += f"  %below{dim} = mul i64 %above{dim}, %size{dim}\n"
            store += f"  %place{dim} = sub i64 {left}, %below{dim}\n"
            place, left = f"%place{dim}", f"%above{dim}"
        store += f"  %word{dim} = add i64 %row_word, {dim}\n"
        store += f"  %target{dim} = getelementptr i64, ptr %rows, i64 %word{dim}\n"
        store += f"  store i64 {place}, ptr %target{dim}\n"
    return _named("compact_places", _PLACES.replace("SIZES", sizes).replace("STORE", store))


def nonzero(reads: Sequence[Any], writes: Sequence[Any], fill_value: int) -> NativePlan:
    """Row-major places of a contiguous bool mask's true elements into (rows, dims) int64."""
    (mask,), (rows,) = reads, writes
    size, n_dims = rows.shape
    n_elements = 1
    for each in mask.shape:
        n_elements *= each
    if not size * n_dims:
        return NativePlan(())
    n_blocks = -(-n_elements // BLOCK)
    workspace, source, target = At("workspace"), At("read"), At("write")
    count_name, count_text = count_kernel()
    prefix_name, prefix_text = prefix_kernel()
    places_name, places_text = places_kernel(n_dims)
    prefix_words = (workspace, n_blocks, target, size, n_dims, fill_value)
    places_words = (source, workspace, n_elements, target, size, *mask.shape[1:])
    steps = (
        NativeStep(count_name, count_text, n_blocks, 2, (source, workspace, n_elements)),
        NativeStep(prefix_name, prefix_text, 1, 1, prefix_words),
        NativeStep(places_name, places_text, n_blocks, 2, places_words),
    )
    return NativePlan(steps, max(n_blocks, 1) * 8)
