"""Nest -> complete LLVM module text of one kernel function.

Keeps     the text depends on the nest, the vector width and whether there is AVX-512 alone; the
          bits it computes on the nest alone.
Touches   loops, the writers of the single kinds.
Not here  compiling it (devices/cpu/jit/).

A step of a loop is two machine vectors of float32 (16 or 32 lanes), whatever the dtypes; LLVM
splits what is wider.
"""

from __future__ import annotations

from typing import Final

from flambeau.codegen.loops import Nest, kernel_name
from flambeau.codegen.nest_text.columns import ColumnsText
from flambeau.codegen.nest_text.frame import COLUMN_KINDS, Code, Frame
from flambeau.codegen.nest_text.rows import RowsText

LANES_OF: Final = {256: 16, 512: 32}


def kernel_text(nest: Nest, vector_bits: int, name: str, has_avx512: bool = False) -> str:
    """Module that defines `void name(i64* args, i64 begin, i64 end, i8* scratch)`; `has_avx512`
    where it may use instructions that only such machines have."""
    frame = Frame(nest, LANES_OF[vector_bits], has_avx512)
    writer = ColumnsText(frame) if nest.kind in COLUMN_KINDS else RowsText(frame)
    code = Code(frame.module, "start")
    writer.write(code)
    return frame.text(name, code)


__all__ = ["LANES_OF", "kernel_name", "kernel_text"]
