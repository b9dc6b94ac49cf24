"""Many parts copied side by side: the native kernel behind cat and stack of long lists.

Keeps     one step however many parts there are; a part is copied by one thread, bytes as they are.
Touches   steps, writer.
Not here  joins of a few parts, which are loops like any other (ops/indexing/joins.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.devices.cpu.steps import At, NativePlan, NativeStep

# Bytes one unit of work should have at least, so that tiny parts are not handed out singly.
_CHUNK_BYTES: Final = 1 << 18
_HEAD_WORDS: Final = 3
_PART_WORDS: Final = 3

_NAME: Final = "join_parts"
_TEXT: Final = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @{_NAME}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %rows = load i64, ptr %args
  %target_at = getelementptr i64, ptr %args, i64 1
  %target = load ptr, ptr %target_at
  %stride_at = getelementptr i64, ptr %args, i64 2
  %stride = load i64, ptr %stride_at
  %parts = getelementptr i64, ptr %args, i64 {_HEAD_WORDS}
  %some_rows = icmp sgt i64 %rows, 0
  %some_parts = icmp slt i64 %begin, %end
  %some = and i1 %some_rows, %some_parts
  br i1 %some, label %part, label %done
part:
  %number = phi i64 [%begin, %entry], [%next_number, %part_done]
  %at = mul i64 %number, {_PART_WORDS}
  %source_at = getelementptr i64, ptr %parts, i64 %at
  %source = load ptr, ptr %source_at
  %offset_at = getelementptr i64, ptr %source_at, i64 1
  %offset = load i64, ptr %offset_at
  %bytes_at = getelementptr i64, ptr %source_at, i64 2
  %bytes = load i64, ptr %bytes_at
  %first = getelementptr i8, ptr %target, i64 %offset
  br label %row
row:
  %index = phi i64 [0, %part], [%next_index, %row]
  %from = phi ptr [%source, %part], [%next_from, %row]
  %to = phi ptr [%first, %part], [%next_to, %row]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %next_from = getelementptr i8, ptr %from, i64 %bytes
  %next_to = getelementptr i8, ptr %to, i64 %stride
  %next_index = add i64 %index, 1
  %more_rows = icmp slt i64 %next_index, %rows
  br i1 %more_rows, label %row, label %part_done
part_done:
  %next_number = add i64 %number, 1
  %more_parts = icmp slt i64 %next_number, %end
  br i1 %more_parts, label %part, label %done
done:
  ret void
}}
"""


def join(reads: Sequence[Any], writes: Sequence[Any], dim: int) -> NativePlan:
    """Row-major parts after each other along `dim` of a row-major target; equal dtypes."""
    (target,) = writes
    size = target.dtype.itemsize
    rows = 1
    for each in target.shape[:dim]:
        rows *= each
    inner = size
    for each in target.shape[dim + 1 :]:
        inner *= each
    arguments: list[int | At] = [rows, At("write", 0), target.shape[dim] * inner]
    start = 0
    for number, part in enumerate(reads):
        n_bytes = part.shape[dim] * inner
        arguments += [At("read", number), start, n_bytes]
        start += n_bytes
    n_parts = len(reads)
    per_part = max(rows * start // max(n_parts, 1), 1)
    chunk = max(1, min(n_parts, -(-_CHUNK_BYTES // per_part)))
    return NativePlan((NativeStep(_NAME, _TEXT, n_parts, chunk, tuple(arguments)),))
