"""Runs a nest twice: natively, and by an interpreter in NumPy that follows loops.py word for word.

The interpreter goes row by row and adds in the contract's order; it knows nothing of vectors.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau.base import dtypes
from flambeau.base.config import CONFIG
from flambeau.base.dtypes import dtype
from flambeau.codegen import nest_text
from flambeau.codegen.loops import BLOCK, ROW_BLOCK, Keep, Nest, Phase, Reduce, Store
from flambeau.codegen.vocabulary import Expression
from flambeau.devices.cpu import features, jit

NUMPY: dict[dtype, Any] = {
    dtypes.bool_: np.bool_, dtypes.uint8: np.uint8, dtypes.int8: np.int8, dtypes.int16: np.int16,
    dtypes.uint16: np.uint16, dtypes.uint32: np.uint32, dtypes.uint64: np.uint64,
    dtypes.int32: np.int32, dtypes.int64: np.int64, dtypes.float16: np.float16,
    dtypes.bfloat16: np.uint16, dtypes.float32: np.float32, dtypes.float64: np.float64,
}  # fmt: skip
SLACK = 512  # bytes behind every block of memory that kernels may read
GUARD = 1024  # bytes on both sides of every buffer; more than the slack kernels may read


class Buffer:
    """Memory with guard bytes around it."""

    def __init__(self, values: np.ndarray) -> None:
        self.dtype = values.dtype
        self.n_bytes = values.nbytes
        self.raw = np.full(values.nbytes + 2 * GUARD, 0xAB, np.uint8)
        self.raw[GUARD : GUARD + values.nbytes] = (
            np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        )

    @property
    def address(self) -> int:
        return self.raw.ctypes.data + GUARD

    @property
    def values(self) -> np.ndarray:
        return self.raw[GUARD : GUARD + self.n_bytes].view(self.dtype)

    def copy(self) -> Buffer:
        return Buffer(self.values)

    def check_guards(self) -> None:
        assert (self.raw[:GUARD] == 0xAB).all()
        assert (self.raw[GUARD + self.n_bytes :] == 0xAB).all()


class EdgeBuffer(Buffer):
    """Memory whose 512th byte after the end is the last that may be read at all."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(values)
        page = mmap.PAGESIZE
        n_bytes = -(-(GUARD + values.nbytes + SLACK) // page) * page
        self._map = mmap.mmap(-1, n_bytes + page)
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(start + n_bytes), ctypes.c_size_t(page), 0) == 0
        size = GUARD + values.nbytes + SLACK
        raw = np.frombuffer(self._map, np.uint8)[n_bytes - size : n_bytes]
        raw[:] = self.raw[:size]
        self.raw = raw


@dataclass
class Binding:
    """How one access meets its buffer; strides in elements."""

    buffer: Buffer
    outer: tuple[int, ...] = ()
    inner: int = 1
    reduced: int = 0
    block: int = 0
    offset: int = 0
    index_stride: int = 0
    bound: int = 0


@dataclass
class Problem:
    """A nest with sizes and memory."""

    nest: Nest
    inner: int
    bindings: list[Binding]
    outer: tuple[int, ...] = ()
    reduced: int = 0
    inner_block: int = 1024
    numbers: list[Any] = field(default_factory=list)

    def n_units(self) -> int:
        rows = math.prod(self.outer)
        sides = -(-self.inner // self.inner_block)
        kind = self.nest.kind
        if kind == "blocks":
            return rows * -(-self.inner // BLOCK)
        if kind == "column_blocks":
            return rows * sides * -(-self.reduced // ROW_BLOCK)
        if kind == "columns" or self.nest.is_map:
            return rows * sides
        return rows

    def copy(self) -> Problem:
        """The same problem on memory of its own; shared buffers stay shared."""
        copies = {id(b.buffer): b.buffer.copy() for b in self.bindings}
        fresh = [Binding(**{**vars(b), "buffer": copies[id(b.buffer)]}) for b in self.bindings]
        return Problem(
            self.nest, self.inner, fresh, self.outer, self.reduced, self.inner_block, self.numbers
        )


def compiled(nest: Nest, bits: int, level: int | None) -> int:
    """Address of the nest's kernel, at a codegen level of its own when one is given."""
    name = nest_text.kernel_name(nest, bits)
    if level is not None:
        name = f"{name}_level{level}"
    text = nest_text.kernel_text(nest, bits, name, features.has_avx512())
    if level is None:
        return jit.compile_functions({name: text})[name]
    before, CONFIG.codegen_level = CONFIG.codegen_level, level
    try:
        return jit.compile_functions({name: text})[name]
    finally:
        CONFIG.codegen_level = before


def run_native(
    problem: Problem, bits: int, cuts: list[int] | None = None, level: int | None = None
) -> list[int]:
    """Runs units in the given order of ranges; the error words of all accesses."""
    nest = problem.nest
    address = compiled(nest, bits, level)
    errors = (ctypes.c_int64 * len(nest.accesses))()
    given: dict[str, int] = {
        "inner_size": problem.inner, "inner_block": problem.inner_block,
        "reduced_size": problem.reduced,
    }  # fmt: skip
    for d, size in enumerate(problem.outer):
        given[f"outer_size.{d}"] = size
    for a, bound in enumerate(problem.bindings):
        size = nest.accesses[a].dtype.itemsize
        given[f"pointer.{a}"] = bound.buffer.address + bound.offset * size
        for d, stride in enumerate(bound.outer):
            given[f"stride.{a}.{d}"] = stride * size
        given[f"block_stride.{a}"] = bound.block * size
        given[f"reduced_stride.{a}"] = bound.reduced * size
        given[f"inner_stride.{a}"] = bound.inner * size
        given[f"index_stride.{a}"] = bound.index_stride * size
        given[f"index_bound.{a}"] = bound.bound
        given[f"error.{a}"] = ctypes.addressof(errors) + 8 * a
    for n, value in enumerate(problem.numbers):
        of = nest.numbers[n]
        stored = np.array([value], NUMPY[of] if of.is_floating_point else np.int64)
        given[f"number.{n}"] = int.from_bytes(stored.tobytes(), "little", signed=False)
    words = [given[each] for each in nest.argument_names]
    array = (ctypes.c_uint64 * max(1, len(words)))(*(w & (2**64 - 1) for w in words))
    scratch = np.zeros(nest.scratch_bytes(problem.inner) + 256, np.uint8)
    start = (scratch.ctypes.data + 63) & -64
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
        address
    )
    edges = [0, *(cuts or []), problem.n_units()]
    ranges = list(itertools.pairwise(sorted(edges)))
    for begin, end in reversed(ranges) if cuts else ranges:
        call(ctypes.addressof(array), begin, end, start)
    for each in problem.bindings:
        each.buffer.check_guards()
    used = nest.scratch_bytes(problem.inner)
    assert not scratch[start - scratch.ctypes.data + used :].any()
    return list(errors)


# ---- the interpreter


def _best(kind: str, values: np.ndarray) -> int:
    chosen = 0
    for i in range(1, len(values)):
        new, old = values[i], values[chosen]
        if old != old:
            break
        if new != new or (new > old if kind == "argmax" else new < old):
            chosen = i
    return chosen


def _extreme(kind: str, values: np.ndarray, of: dtype) -> Any:
    if not of.is_floating_point:
        return values.max() if kind == "max" else values.min()
    if np.isnan(values).any():
        return NUMPY[of](math.nan)
    found = values.max() if kind == "max" else values.min()
    if found == 0:
        signs = np.signbit(values[values == 0])
        return NUMPY[of](-0.0 if (signs.all() if kind == "max" else signs.any()) else 0.0)
    return found


def _counter(kind: str, values: list[Any]) -> Any:
    stack: list[tuple[int, Any]] = []
    for value in values:
        size = 1
        while stack and stack[-1][0] == size:
            value = stack.pop()[1] + value if kind == "sum" else stack.pop()[1] * value
            size *= 2
        stack.append((size, value))
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1] + total if kind == "sum" else stack.pop()[1] * total
    return total


def _lane_sum(kind: str, values: np.ndarray) -> Any:
    """One block of at most 1024 elements."""
    fold = np.add if kind == "sum" else np.multiply
    lanes = np.full(32, 0 if kind == "sum" else 1, values.dtype)
    for start in range(0, len(values), 32):
        piece = values[start : start + 32]
        lanes[: len(piece)] = fold(lanes[: len(piece)], piece)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = fold(lanes[:half], lanes[half:])
    return lanes[0]


def _row_sum(kind: str, values: np.ndarray) -> Any:
    """One column: 128 rows in order, blocks by the counter."""
    blocks = []
    for start in range(0, max(1, len(values)), ROW_BLOCK):
        total = values.dtype.type(0 if kind == "sum" else 1)
        for each in values[start : start + ROW_BLOCK]:
            total = total + each if kind == "sum" else total * each
        blocks.append(total)
    return _counter(kind, blocks)


def reduce(kind: str, values: np.ndarray, of: dtype, columns: bool, start: int) -> Any:
    """What Reduce promises, for the elements of one row or column in order."""
    if kind in ("argmax", "argmin"):
        return np.int64(start + _best(kind, values))
    if kind in ("any", "all"):
        return np.bool_(values.any() if kind == "any" else values.all())
    if kind in ("max", "min"):
        return _extreme(kind, values, of)
    if kind.startswith("tree_"):
        kind = kind.removeprefix("tree_")
        identity = values.dtype.type(0 if kind == "sum" else 1)
        return _counter(kind, list(values)) if len(values) else identity
    if columns:
        return _row_sum(kind, values)
    pieces = [values[at : at + BLOCK] for at in range(0, max(1, len(values)), BLOCK)]
    return _counter(kind, [_lane_sum(kind, piece) for piece in pieces])


def _convert(value: np.ndarray, source: dtype, result: dtype) -> np.ndarray:
    if source is dtypes.bfloat16:
        value = (value.astype(np.uint32) << 16).view(np.float32)
    if result is dtypes.bool_:
        return value != 0
    if result is dtypes.bfloat16:
        bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(value), 0x7FC0, rounded).astype(np.uint16)
    return value.astype(NUMPY[result])


class Interpreter:
    """Values of one row (or of one reduced position of it)."""

    def __init__(self, problem: Problem, row: tuple[int, ...], part: int) -> None:
        self.problem = problem
        self.nest = problem.nest
        self.columns = problem.nest.kind.startswith("column")
        self.row = row
        self.part = part
        self.reduced: dict[int, Any] = {}
        self.kept: dict[int, np.ndarray] = {}
        self.errors = [0] * len(problem.nest.accesses)

    def positions(
        self, number: int, at: np.ndarray, step: int, row_store: bool, otherwise: int = 0
    ) -> np.ndarray:
        """Element numbers in the access's buffer for positions `at` along inner; `otherwise`
        counts as the index of a gather where it is out of range."""
        access, bound = self.nest.accesses[number], self.problem.bindings[number]
        where = np.full(len(at), bound.offset, np.int64)
        where += sum(s * i for s, i in zip(bound.outer, self.row, strict=True))
        if not access.row_level:
            where += step * bound.reduced
        if row_store:
            where += self.part * bound.block
        # What phase.row stores in a columns nest runs along inner, whatever row_level says.
        along_inner = not access.row_level or (row_store and self.columns)
        if access.inner != "zero" and along_inner:
            where += at * (bound.inner if access.inner in ("strided", "pair") else 1)
        if access.index is not None:
            indices = self.value(access.index, at, step, {})
            bad = (indices < 0) | (indices >= bound.bound)
            if bad.any():
                self.errors[number] = number + 1
            where = np.where(
                bad & (otherwise < 0), -1, where + np.where(bad, 0, indices) * bound.index_stride
            )
        return where

    def value(
        self, e: Expression, at: np.ndarray, step: int, memo: dict[Expression, np.ndarray]
    ) -> np.ndarray:
        """Elements at positions `at`."""
        if e not in memo:
            memo[e] = np.broadcast_to(self._value(e, at, step, memo), at.shape)
        return memo[e]

    def _value(self, e: Expression, at: np.ndarray, step: int, memo: Any) -> Any:
        n_outer = self.nest.n_outer
        if e.word == "constant":
            return NUMPY[e.dtype](e.value)
        if e.word == "number":
            return NUMPY[e.dtype](self.problem.numbers[e.value])
        if e.word == "index":
            if e.value < n_outer:
                return np.int64(self.row[e.value])
            return np.int64(step) if self.columns and e.value == n_outer else at
        if e.word == "reduced":
            return self.reduced[e.value]
        if e.word == "kept":
            return self.kept[e.value][at]
        if e.word == "load":
            values = self.problem.bindings[e.value].buffer.values
            return values[self.positions(e.value, at, step, False)]
        a = [self.value(each, at, step, memo) for each in e.arguments]
        with np.errstate(all="ignore"):
            if e.word == "convert":
                return _convert(a[0], e.arguments[0].dtype, e.dtype)
            if e.word == "select":
                return np.where(a[0], a[1], a[2])
            words: dict[str, Any] = {
                "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                "sqrt": np.sqrt, "neg": np.negative, "lt": np.less, "gt": np.greater,
                "max": np.maximum, "min": np.minimum, "abs": np.abs, "rint": np.rint,
                "not_": np.logical_not,
            }  # fmt: skip
            return words[e.word](*a)

    def store(self, access: int, where: np.ndarray, values: np.ndarray) -> None:
        self.problem.bindings[access].buffer.values[where[where >= 0]] = values[where >= 0]

    def run(self, phase: Phase, first: int, stop: int) -> None:
        """One phase over positions [first, stop) along inner."""
        at = np.arange(first, stop)
        memo: dict[Expression, np.ndarray] = {}
        values = [self.value(each.value, at, 0, memo) for each in phase.loop]
        for each, found in zip(phase.loop, values, strict=True):
            if isinstance(each, Store):
                self.store(each.access, self.positions(each.access, at, 0, False, -1), found)
            elif isinstance(each, Keep):
                self.kept[each.scratch] = found
            elif isinstance(each, Reduce):
                self.reduced[each.number] = reduce(each.kind, found, each.value.dtype, False, first)
        one = np.zeros(1, np.int64)
        rows = [self.value(each.value, one, 0, {}) for each in phase.row]
        for each, found in zip(phase.row, rows, strict=True):
            self.store(each.access, self.positions(each.access, one, 0, True, -1), found)

    def run_columns(self, phase: Phase, first: int, stop: int, lo: int, hi: int) -> None:
        """The phase of a columns nest over columns [first, stop), reduced positions [lo, hi)."""
        at = np.arange(first, stop)
        found: list[list[np.ndarray]] = [[] for _ in phase.loop]
        for step in range(lo, hi):
            memo: dict[Expression, np.ndarray] = {}
            for s, each in enumerate(phase.loop):
                found[s].append(self.value(each.value, at, step, memo))
                if isinstance(each, Store):
                    where = self.positions(each.access, at, step, False, -1)
                    self.store(each.access, where, found[s][-1])
        for s, each in enumerate(phase.loop):
            if isinstance(each, Reduce):
                of = each.value.dtype
                rows = np.array(found[s], NUMPY[of]).reshape(-1, len(at))
                self.reduced[each.number] = np.array(
                    [reduce(each.kind, rows[:, c], of, True, lo) for c in range(len(at))]
                )
        memo = {}
        for each in phase.row:
            where = self.positions(each.access, at, 0, True, -1)
            self.store(each.access, where, self.value(each.value, at, 0, memo))


def run_reference(problem: Problem) -> list[int]:
    """Does what the nest says; the error words."""
    nest = problem.nest
    errors = [0] * len(nest.accesses)
    for row in itertools.product(*(range(size) for size in problem.outer)):
        parts = [(0, 0, problem.inner, 0, problem.reduced)]
        if nest.kind == "blocks":
            parts = [
                (b // BLOCK, b, min(b + BLOCK, problem.inner), 0, 0)
                for b in range(0, problem.inner, BLOCK)
            ]
        elif nest.kind == "column_blocks":
            parts = [
                (b // ROW_BLOCK, 0, problem.inner, b, min(b + ROW_BLOCK, problem.reduced))
                for b in range(0, problem.reduced, ROW_BLOCK)
            ]
        for part, first, stop, lo, hi in parts:
            work = Interpreter(problem, row, part)
            for phase in nest.phases:
                if work.columns:
                    work.run_columns(phase, first, stop, lo, hi)
                else:
                    work.run(phase, first, stop)
            errors = [max(a, b) for a, b in zip(errors, work.errors, strict=True)]
    return errors


def same_bits(found: np.ndarray, expected: np.ndarray, bfloat16: bool = False) -> None:
    """Equal bits, any NaN equal to any other."""
    if bfloat16:
        found = (found.astype(np.uint32) << 16).view(np.float32)
        expected = (expected.astype(np.uint32) << 16).view(np.float32)
    if found.dtype.kind == "f":
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        keep = ~np.isnan(expected)
        found, expected = found[keep], expected[keep]
    wrong = found.view(f"u{found.itemsize}") != expected.view(f"u{expected.itemsize}")
    assert not wrong.any(), (np.flatnonzero(wrong)[:5], found[wrong][:5], expected[wrong][:5])


def check(problem: Problem, cuts: list[int] | None = None, expected: Problem | None = None) -> None:
    """Native code of both widths, whole and cut into ranges, against the interpreter."""
    wanted = expected or problem.copy()
    with np.errstate(all="ignore"):
        errors = run_reference(wanted)
    units = problem.n_units()
    if cuts is None:
        cuts = sorted({units // 3, units // 2, units - 1} & set(range(1, units)))
    for bits in (256, 512):
        for chosen in ([], cuts) if cuts else ([],):
            work = problem.copy()
            assert run_native(work, bits, chosen) == errors
            for a, (got, want) in enumerate(zip(work.bindings, wanted.bindings, strict=True)):
                half = problem.nest.accesses[a].dtype is dtypes.bfloat16
                same_bits(got.buffer.values, want.buffer.values, half)
