"""A step that copies strided elements, converting them or not: into workspace and back, for
kernels that want operands contiguous or wider.

Keeps     between equal dtypes bits are moved; float16 and bfloat16 become float32 exactly and are
          rounded once on the way back.
Touches   base.dtypes, steps, stored, walks, writer.
Not here  copies that users ask for (fused loops do those)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.steps import At, NativeStep
from flambeau.devices.cpu.stored import bits_type, narrow, stored_type, widen
from flambeau.devices.cpu.walks import Dim, count
from flambeau.devices.cpu.writer import Writer, kernel_of

_WORDS: Final = ("source_at", "target_at", "n", "source_step", "target_step")
_CHUNK_ELEMENTS: Final = 16_384


@lru_cache(maxsize=128)
def copy_kernel(source: dtype, target: dtype, n_outer: int) -> tuple[str, str]:
    """Units are rows of `n` elements, `n_outer` dimensions (size, source, target stride) of them;
    of two dtypes one is float32 and the other a floating one of 16 bits."""
    w = Writer()
    words = w.words(_WORDS)
    outer = [
        w.words(("size", "source", "target"), w.at("i64", "%args", len(_WORDS) + 3 * d))
        for d in range(n_outer)
    ]
    with w.loop("%begin", "%end") as unit:
        rest, source_at, target_at = unit.index, words["source_at"], words["target_at"]
        for dim in reversed(outer):
            rest, at = w.divide(rest, dim["size"])
            source_at = w.moved(source_at, w.mul(at, dim["source"]))
            target_at = w.moved(target_at, w.mul(at, dim["target"]))
        with w.loop("0", words["n"], [("ptr", source_at), ("ptr", target_at)]) as loop:
            if source is target:
                bits = bits_type(source)
                w.store(bits, w.load(bits, loop.carried[0]), loop.carried[1])
            else:
                value = widen(w, source, w.load(stored_type(source), loop.carried[0]))
                w.store(stored_type(target), narrow(w, target, value), loop.carried[1])
            loop.next = [
                w.moved(loop.carried[0], words["source_step"]),
                w.moved(loop.carried[1], words["target_step"]),
            ]
    w.put("ret void")
    return kernel_of(f"copy_{source.short_name}_{target.short_name}", w)


def copy_step(
    source: At, target: At, dims: list[Dim], source_type: dtype, target_type: dtype
) -> NativeStep:
    """Dimensions of a size and a stride in elements of source and target, collapsed."""
    *outer, (n, source_stride, target_stride) = dims or [(1, 0, 0)]
    widths = source_type.itemsize, target_type.itemsize
    name, text = copy_kernel(source_type, target_type, len(outer))
    words: list[int | At] = [
        source, target, n, widths[0] * source_stride, widths[1] * target_stride
    ]  # fmt: skip
    for size, source_step, target_step in outer:
        words += [size, widths[0] * source_step, widths[1] * target_step]
    chunk = max(1, _CHUNK_ELEMENTS // max(1, n))
    return NativeStep(name, text, count(outer), chunk, tuple(words))
