"""Windows of pools as LLVM text: which places of a plane an output covers.

Keeps     windows are cut to the plane; places are visited in row-major order.
Touches   writer.
Not here  what is done with the places (largest_text.py, average_text.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.writer import Writer

AXES: Final = ("d", "h", "w")
# Of each of three dims: places of the plane, outputs, then the window.
SIZES: Final = tuple(
    f"{name}_{axis}" for axis in AXES for name in ("in", "out", "kernel", "step", "pad", "far")
)


@dataclass(frozen=True)
class PoolClass:
    """What a kernel's text depends on.

    is_adaptive   windows follow from sizes alone: output o of n covers [o i / n, (o + 1) i / n)
    step          distance of windows along a row where rows are vectorised: 1 or 2, else 0
    """

    dtype: dtype
    is_adaptive: bool = False
    step: int = 0
    vector_bits: int = 256

    @property
    def stored(self) -> str:
        """LLVM type of an element."""
        names = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}
        return names[self.dtype.name]

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.vector_bits // (8 * self.dtype.itemsize)


class Span(NamedTuple):
    """Places [low, high) of a dim, `far` apart; their number with padding counted."""

    low: str
    high: str
    counted: str


def span(w: Writer, kind: PoolClass, words: dict[str, str], axis: str, at: str) -> Span:
    """What output `at` covers along a dim."""
    size = words[f"in_{axis}"]
    if kind.is_adaptive:
        outputs = words[f"out_{axis}"]
        low = w.let(f"udiv i64 {w.mul(at, size)}, {outputs}")
        end = w.add(w.mul(w.add(at, 1), size), w.sub(outputs, 1))
        high = w.let(f"udiv i64 {end}, {outputs}")
        return Span(low, high, w.sub(high, low))
    far, pad = words[f"far_{axis}"], words[f"pad_{axis}"]
    start = w.sub(w.mul(at, words[f"step_{axis}"]), pad)
    reach = w.add(w.mul(w.sub(words[f"kernel_{axis}"], 1), far), 1)
    end = w.add(start, reach)
    high = w.smaller(end, size)
    # The first place that is not padding: as many steps of `far` as the start lies before 0.
    before = w.sub(0, start)
    is_before = w.compare("sgt", before, 0)
    lacking = w.let(f"select i1 {is_before}, i64 {before}, i64 0")
    steps, _ = w.divide(w.add(lacking, w.sub(far, 1)), far)
    low = w.add(start, w.mul(steps, far))
    counted = w.sub(w.smaller(end, w.add(size, pad)), start)
    return Span(low, high, counted)


@contextmanager
def outputs(w: Writer, words: dict[str, str], axes: tuple[str, ...] = AXES) -> Iterator[list[str]]:
    """A loop for each dim over its outputs; gives their indices."""
    if not axes:
        yield []
        return
    with w.loop("0", words[f"out_{axes[0]}"]) as loop, outputs(w, words, axes[1:]) as rest:
        yield [loop.index, *rest]


def flat(w: Writer, words: dict[str, str], prefix: str, indices: list[str]) -> str:
    """Number of a place of the plane ("in") or of an output ("out"), row-major."""
    depth, line, place = indices
    row = w.add(w.mul(depth, words[f"{prefix}_h"]), line)
    return w.add(w.mul(row, words[f"{prefix}_w"]), place)


def volume(w: Writer, words: dict[str, str], prefix: str) -> str:
    """Places of a plane, or outputs."""
    rows = w.mul(words[f"{prefix}_d"], words[f"{prefix}_h"])
    return w.mul(rows, words[f"{prefix}_w"])


def clear(w: Writer, kind: PoolClass, plane: str, count: str) -> None:
    """Zeros over a plane."""
    whole = w.let(f"and i64 {count}, {-kind.lanes}")
    vector = f"<{kind.lanes} x {kind.stored}>"
    with w.loop("0", whole, step=kind.lanes) as loop:
        place = w.at(kind.stored, plane, loop.index)
        w.store(vector, "zeroinitializer", place, kind.dtype.itemsize)
    zero = "0.0" if kind.dtype.is_floating_point else "0"
    with w.loop(whole, count) as loop:
        w.store(kind.stored, zero, w.at(kind.stored, plane, loop.index))
