"""What tests of matrix products share: a scalar reference by the contract, a runner of plans.

Keeps     the reference is one llvm.fma at a time over plain arrays, compiled from its own text.
Touches   jit, numpy.
Not here  the cases (test_*.py)."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.gemm import Operand, ProductPlan, plan_product

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
NUMPY = {each.name: each.name for each in dtypes.ALL} | {"bfloat16": "uint16"}

_REFERENCE = """
{declare}
define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %a = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %b = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %c = load ptr, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %n = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %args, i64 4
  %k = load i64, ptr %p4
  br label %element
element:
  %e = phi i64 [ %begin, %entry ], [ %ne, %stored ]
  %i = sdiv i64 %e, %n
  %j = srem i64 %e, %n
  %row = mul i64 %i, %k
  br label %block
block:
  %k0 = phi i64 [ 0, %element ], [ %nk0, %block_done ]
  %total = phi {t} [ {zero}, %element ], [ %ntotal, %block_done ]
  %nk0 = add i64 %k0, 256
  %fits = icmp slt i64 %nk0, %k
  %stop = select i1 %fits, i64 %nk0, i64 %k
  %some = icmp slt i64 %k0, %stop
  br i1 %some, label %chain, label %block_done
chain:
  %kk = phi i64 [ %k0, %block ], [ %nkk, %chain ]
  %sum = phi {t} [ {zero}, %block ], [ %nsum, %chain ]
  %ai = add i64 %row, %kk
  %ap = getelementptr {t}, ptr %a, i64 %ai
  %bk = mul i64 %kk, %n
  %bi = add i64 %bk, %j
  %bp = getelementptr {t}, ptr %b, i64 %bi
  %x = load {t}, ptr %ap
  %y = load {t}, ptr %bp
  {step}
  %nkk = add i64 %kk, 1
  %more = icmp slt i64 %nkk, %stop
  br i1 %more, label %chain, label %block_done
block_done:
  %last = phi {t} [ {zero}, %block ], [ %nsum, %chain ]
  %is_first = icmp eq i64 %k0, 0
  %added = {add} {t} %total, %last
  %ntotal = select i1 %is_first, {t} %last, {t} %added
  %deeper = icmp slt i64 %nk0, %k
  br i1 %deeper, label %block, label %stored
stored:
  %cp = getelementptr {t}, ptr %c, i64 %e
  store {t} %ntotal, ptr %cp
  %ne = add i64 %e, 1
  %again = icmp slt i64 %ne, %end
  br i1 %again, label %element, label %done
done:
  ret void
}}
"""


@cache
def _reference(kind: str) -> Any:
    t = {"float32": "float", "float64": "double"}.get(kind, "i" + kind.lstrip("uint"))
    if t in ("float", "double"):
        suffix = "f32" if t == "float" else "f64"
        declare = f"declare {t} @llvm.fma.{suffix}({t}, {t}, {t})"
        step = f"%nsum = call {t} @llvm.fma.{suffix}({t} %x, {t} %y, {t} %sum)"
        zero, add = "0.0", "fadd"
    else:
        declare, zero, add = "", "0", "add"
        step = f"%product = mul {t} %x, %y\n  %nsum = add {t} %sum, %product"
    text = _REFERENCE.format(declare=declare, t=t, zero=zero, add=add, step=step, name="REFERENCE")
    name = f"reference_product_{sha256(text.encode()).hexdigest()[:16]}"
    text = text.replace("@REFERENCE(", f"@{name}(")
    return KERNEL(jit.compile_functions({name: text})[name])


def to_float(array: np.ndarray, kind: dtype) -> np.ndarray:
    """Values of an array of a dtype in the one it accumulates in."""
    if kind is dtypes.bfloat16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(kind.compute.name)


def from_float(array: np.ndarray, kind: dtype) -> np.ndarray:
    """Values rounded once to the dtype that is stored."""
    if kind is not dtypes.bfloat16:
        return array.astype(kind.name)
    bits = array.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)


def expected(a: np.ndarray, b: np.ndarray, kind: dtype) -> np.ndarray:
    """(..., m, k) times (..., k, n) by the contract of bits, one fma at a time."""
    a, b = to_float(a, kind), to_float(b, kind)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, batch + a.shape[-2:])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    result = np.zeros((*batch, m, n), kind.compute.name)
    run = _reference(kind.compute.name)
    for entry in np.ndindex(batch):
        left, right = np.ascontiguousarray(a[entry]), np.ascontiguousarray(b[entry])
        out = np.zeros((m, n), kind.compute.name)
        words = np.array([left.ctypes.data, right.ctypes.data, out.ctypes.data, n, k], np.int64)
        if m * n:
            run(words.ctypes.data, 0, m * n, None)
        result[entry] = out
    return from_float(result, kind)


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal arrays, zeros with equal signs; any NaN equals any other."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    both_nan = (left != left) & (right != right)
    bits = f"u{left.dtype.itemsize}"
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    return bool(((left.view(bits) == right.view(bits)) | both_nan).all())


def padded(shape: Sequence[int], kind: dtype) -> np.ndarray:
    """Empty array with the readable slack behind it that kernels may count on."""
    name = NUMPY[kind.name]
    count = int(np.prod(shape))
    flat = np.zeros(count + 512 // np.dtype(name).itemsize, name)
    return flat[:count].reshape(shape)


def aligned_bytes(n_bytes: int, fill: int = 0xA5) -> np.ndarray:
    """Bytes at a 64-byte boundary, full of what must not matter."""
    raw = np.full(n_bytes + 64 + 512, fill, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + n_bytes + 512]


def plan_of(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: dtype, vector_bits: int, n_threads: int
) -> ProductPlan:  # fmt: skip
    """Plan for arrays of shapes (..., m, k), (..., k, n) and (..., m, n)."""
    batch = c.shape[:-2]
    a = np.broadcast_to(a, batch + a.shape[-2:])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    strides = [(each.strides[:-2], *each.strides[-2:]) for each in (a, b, c)]
    return plan_product(
        kind,
        batch,
        c.shape[-2],
        c.shape[-1],
        a.shape[-1],
        *strides,
        vector_bits,
        n_threads,
    )


class BoundPlan:
    """A plan with its addresses filled in and its kernels compiled; `run` executes it."""

    def __init__(self, plan: ProductPlan, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        self.workspace = aligned_bytes(plan.workspace_bytes)
        self.keep = (a, b, c)
        addresses = {
            "a": a.ctypes.data, "b": b.ctypes.data, "c": c.ctypes.data,
            "workspace": self.workspace.ctypes.data,
        }  # fmt: skip
        found = jit.compile_functions({step.name: step.text for step in plan.steps})
        self.steps = []
        for step in plan.steps:
            words = np.array(
                [
                    addresses[word.name] + word.n_bytes if isinstance(word, Operand) else word
                    for word in step.arguments
                ],
                np.int64,
            )
            self.steps.append((KERNEL(found[step.name]), words, step))

    def run(self, chunk: int | None = None, backwards: bool = False) -> None:
        """On this thread, in chunks of units, in any order."""
        for kernel, words, step in self.steps:
            scratch = aligned_bytes(step.scratch_bytes)
            size = chunk or max(1, step.n_units)
            starts = range(0, step.n_units, size)
            for start in reversed(starts) if backwards else starts:
                stop = min(start + size, step.n_units)
                kernel(words.ctypes.data, start, stop, scratch.ctypes.data)
            assert (scratch[step.scratch_bytes :] == 0xA5).all(), "scratch overrun"
        assert (self.workspace[-512:] == 0xA5).all(), "workspace overrun"

    def run_threads(self, n_threads: int) -> None:
        """Chunks handed to several threads, a barrier after each step."""
        for kernel, words, step in self.steps:
            if step.n_units <= step.chunk_units or n_threads == 1:
                scratch = aligned_bytes(step.scratch_bytes)
                kernel(words.ctypes.data, 0, step.n_units, scratch.ctypes.data)
                continue
            chunks = iter(range(0, step.n_units, step.chunk_units))
            lock = threading.Lock()

            def work(
                kernel: Any = kernel, words: np.ndarray = words, step: Any = step,
                chunks: Any = chunks, lock: Any = lock,
            ) -> None:  # fmt: skip
                scratch = aligned_bytes(step.scratch_bytes)
                while True:
                    with lock:
                        start = next(chunks, None)
                    if start is None:
                        return
                    stop = min(start + step.chunk_units, step.n_units)
                    kernel(words.ctypes.data, start, stop, scratch.ctypes.data)

            team = [threading.Thread(target=work) for _ in range(n_threads - 1)]
            for thread in team:
                thread.start()
            work()
            for thread in team:
                thread.join()


def multiply(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: dtype, vector_bits: int = 256,
    n_threads: int = 1, chunk: int | None = None, backwards: bool = False,
) -> None:  # fmt: skip
    """C = A B through a plan."""
    BoundPlan(plan_of(a, b, c, kind, vector_bits, n_threads), a, b, c).run(chunk, backwards)
