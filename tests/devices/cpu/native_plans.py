"""Runs a maker's plan on NumPy arrays by itself: no engine, any partition of the units.

Keeps     operands lie in guarded memory: a store outside of what they cover fails; every partition
          must give the same bits.
Touches   jit, steps, statement.Memory.
Not here  what a plan should give (the tests)."""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from flambeau.base import dtypes
from flambeau.base.config import CONFIG
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.steps import At, NativePlan, NativeStep
from flambeau.engine.statement import Memory

_GUARD = 1024
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64"]  # fmt: skip


def rounded_to_bfloat16(value: np.ndarray) -> np.ndarray:
    """float32 as bits of the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    dice = np.random.default_rng(seed)
    if dtype == "bool":
        return dice.random(shape) < 0.5
    if dtype == "bfloat16":
        return rounded_to_bfloat16(dice.standard_normal(shape).astype(np.float32))
    if dtype.startswith("complex"):
        return (dice.standard_normal(shape) + 1j * dice.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        return dice.standard_normal(shape).astype(dtype)
    return dice.integers(0, 255, shape).astype(dtype)


class Operand:
    """A strided view of guarded memory that holds a copy of an array; bfloat16 as uint16."""

    def __init__(
        self, value: Any, strides: Sequence[int] | None = None, dtype: str = "", offset: int = 0
    ) -> None:
        value = np.asarray(value)
        self.dtype = dtypes.by_name(dtype or str(value.dtype))
        size = value.dtype.itemsize
        if strides is None:
            strides = [s // size for s in np.empty(value.shape, value.dtype).strides]
        self.strides = tuple(strides)
        low = sum(min(0, s * (n - 1)) for s, n in zip(strides, value.shape, strict=True) if n)
        high = sum(max(0, s * (n - 1)) for s, n in zip(strides, value.shape, strict=True) if n)
        self.bytes = np.full((high - low + 1) * size + 2 * _GUARD + size * offset, 0xA5, np.uint8)
        self.offset = offset
        inner = self.bytes[_GUARD - low * size + offset * size :]
        self.address = self.bytes.ctypes.data + _GUARD - low * size  # without offset
        self.view = np.lib.stride_tricks.as_strided(
            inner[: len(inner) // size * size].view(value.dtype),
            value.shape,
            [s * size for s in strides],
        )
        self.view[...] = value
        self.start = self.bytes.copy()

    def memory(self, reference: int) -> Memory:
        return Memory(reference, self.view.shape, self.strides, self.offset, self.dtype)

    def check_guards(self) -> None:
        """Nothing but the view's own elements changed."""
        kept = self.view.copy()
        changed = self.bytes.copy()
        self.bytes[:] = self.start
        self.view[...] = kept
        assert np.array_equal(self.bytes, changed), "stored outside of the operand"

    def reset(self) -> None:
        self.bytes[:] = self.start


class Ran:
    """What a run left: the error word, and whether any step had several units."""

    def __init__(self) -> None:
        self.error = ctypes.c_int64(0)
        self.n_units = 0


def run_plan(
    plan: NativePlan, reads: Sequence[Operand], writes: Sequence[Operand],
    threads: int = 1, seed: int = 0,
) -> Ran:  # fmt: skip
    """Seed 0: each step's units at once; else random pieces in random order over threads."""
    ran = Ran()
    workspace = np.full(plan.workspace_bytes + 4096, 0x5A, np.uint8)
    aligned = -(-(workspace.ctypes.data + 1024) // 64) * 64
    jit.compile_functions({step.name: step.text for step in plan.steps})
    for step in plan.steps:
        words = (ctypes.c_int64 * max(1, len(step.arguments)))()
        for position, word in enumerate(step.arguments):
            words[position] = (
                word if isinstance(word, int) else _address(word, reads, writes, aligned, ran)
            )
        ran.n_units = max(ran.n_units, step.n_units)
        if step.n_units:
            _run_step(step, words, threads, seed)
    start = aligned - workspace.ctypes.data
    for guard in (workspace[:start], workspace[start + plan.workspace_bytes :]):
        assert (guard == 0x5A).all(), "stored outside of the workspace"
    for operand in [*reads, *writes]:
        operand.check_guards()
    return ran


def _address(
    word: At, reads: Sequence[Operand], writes: Sequence[Operand], workspace: int, ran: Ran
) -> int:
    if word.what == "error":
        return ctypes.addressof(ran.error)
    if word.what == "workspace":
        return workspace + word.n_bytes
    operand = (reads if word.what == "read" else writes)[word.number]
    return operand.address + operand.offset * operand.dtype.itemsize + word.n_bytes


def _run_step(step: NativeStep, words: Any, threads: int, seed: int) -> None:
    kernel = _FUNCTION(jit.compile_functions({step.name: step.text})[step.name])
    pieces = [(0, step.n_units)]
    if seed:
        dice = random.Random(seed)
        cuts = {dice.randrange(1, step.n_units) for _ in range(7)} if step.n_units > 1 else set()
        pieces = list(pairwise([0, *sorted(cuts), step.n_units]))
        dice.shuffle(pieces)

    def work(number: int) -> None:
        scratch = np.full(step.scratch_bytes + 2048 + 64, 0x3C, np.uint8)
        start = -(-(scratch.ctypes.data + 960) // 64) * 64
        for begin, end in pieces[number::threads]:
            kernel(ctypes.addressof(words), begin, end, start)
        offset = start - scratch.ctypes.data
        assert (scratch[:offset] == 0x3C).all()
        assert (scratch[offset + step.scratch_bytes :] == 0x3C).all(), "stored outside of scratch"

    if threads == 1:
        work(0)
        return
    team = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for each in team:
        each.start()
    for each in team:
        each.join()


def run_maker(
    maker: Callable[..., NativePlan], reads: Sequence[Operand], writes: Sequence[Operand],
    **attributes: Any,
) -> Ran:  # fmt: skip
    """Plan and run for 1, 2 and 3 threads and several partitions: the same bytes each time."""
    first: list[Any] | None = None
    result = Ran()
    for threads, seed in ((1, 0), (2, 1), (3, 2), (3, 3)):
        for operand in writes:
            operand.reset()
        with_threads = CONFIG.threads
        CONFIG.threads = threads
        try:
            plan = maker(
                [operand.memory(n) for n, operand in enumerate(reads)],
                [operand.memory(n + len(reads)) for n, operand in enumerate(writes)],
                **attributes,
            )
        finally:
            CONFIG.threads = with_threads
        result = run_plan(plan, reads, writes, threads, seed)
        bits = [operand.bytes.copy() for operand in writes]
        if first is not None:
            for one, other in zip(first, bits, strict=True):
                assert np.array_equal(one, other), f"bits differ with {threads} threads"
        first = bits
    return result
