"""Matrix products as native statements of a segment.

Keeps     the contract of gemm/; nothing else is decided here.
Touches   gemm, features, config, steps.
Not here  tiles and packing (gemm/), operators (ops/contraction)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.devices.cpu import features, gemm
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep


def product(reads: Sequence[Any], writes: Sequence[Any]) -> NativePlan:
    """(..., m, k) @ (..., k, n) into (..., m, n); operands are engine Memory objects."""
    left, right = reads
    (out,) = writes
    sizes = [left.dtype.itemsize, right.dtype.itemsize, out.dtype.itemsize]
    batch = tuple(out.shape[:-2])
    strides = [
        (tuple(s * size for s in m.strides[:-2]), m.strides[-2] * size, m.strides[-1] * size)
        for m, size in zip((left, right, out), sizes, strict=True)
    ]
    m, n = out.shape[-2:]
    bits = features.vector_bits()
    threads = features.n_threads()
    plan = gemm.plan_product(
        left.dtype, batch, m, n, left.shape[-1], strides[0], strides[1], strides[2], bits, threads
    )
    places = {"a": At("read", 0), "b": At("read", 1), "c": At("write", 0)}
    places["workspace"] = At("workspace")
    steps = []
    for step in plan.steps:
        arguments: list[int | At] = []
        for word in step.arguments:
            if isinstance(word, int):
                arguments.append(word)
            else:
                place = places[word.name]
                arguments.append(At(place.what, place.number, word.n_bytes))
        steps.append(
            NativeStep(
                step.name, step.text, step.n_units, step.chunk_units, tuple(arguments),
                step.scratch_bytes,
            )
        )  # fmt: skip
    return NativePlan(tuple(steps), plan.workspace_bytes)
