"""A step that copies strided elements to contiguous workspace, for kernels that want them so.

Keeps     bits are moved, never converted.
Touches   steps, walks, writer.
Not here  copies that users ask for (fused loops do those)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.steps import At, NativeStep
from flambeau.devices.cpu.walks import Dim, count
from flambeau.devices.cpu.writer import Writer, kernel_of

_WORDS: Final = ("source_at", "target_at", "n", "stride")
_CHUNK_ELEMENTS: Final = 16_384


@lru_cache(maxsize=64)
def pack_kernel(n_bytes: int, n_outer: int) -> tuple[str, str]:
    """Units are rows: the last dimension of `n` elements, `n_outer` dimensions before it."""
    kind = f"i{8 * n_bytes}"
    w = Writer()
    words = w.words(_WORDS)
    outer = [
        w.words(("size", "stride"), w.at("i64", "%args", len(_WORDS) + 2 * d))
        for d in range(n_outer)
    ]
    with w.loop("%begin", "%end") as unit:
        rest, source = unit.index, words["source_at"]
        for dim in reversed(outer):
            rest, at = w.divide(rest, dim["size"])
            source = w.moved(source, w.mul(at, dim["stride"]))
        target = w.at(kind, words["target_at"], w.mul(unit.index, words["n"]))
        with w.loop("0", words["n"], [("ptr", source)]) as loop:
            w.store(kind, w.load(kind, loop.carried[0]), w.at(kind, target, loop.index))
            loop.next = [w.moved(loop.carried[0], words["stride"])]
    w.put("ret void")
    return kernel_of(f"pack_{kind}", w)


def pack_step(source: At, target: At, dims: list[Dim], n_bytes: int) -> NativeStep:
    """Dimensions of a size and a stride in elements, collapsed; more than one place in all."""
    *outer, (n, stride) = dims
    name, text = pack_kernel(n_bytes, len(outer))
    words: list[int | At] = [source, target, n, n_bytes * stride]
    for size, step in outer:
        words += [size, n_bytes * step]
    chunk = max(1, _CHUNK_ELEMENTS // n)
    return NativeStep(name, text, count(outer), chunk, tuple(words))
