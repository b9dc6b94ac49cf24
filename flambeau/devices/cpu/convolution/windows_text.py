"""Pieces of the convolution kernels: windows to columns and back.

Keeps     columns are rows of scratch, one for each channel and place of the kernel; a row may be
          stored past its end, never an image.
Touches   writer, tiles, gemm.elements.
Not here  the kernels themselves (forward_text.py, transposed_text.py, weight_text.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm.elements import Element, element_of
from flambeau.devices.cpu.tiles import TileShape
from flambeau.devices.cpu.writer import Writer

# Words of the geometry, strides in bytes: output rows of a depth, their width; channels of a
# group, places of the kernel; what a step of the window and a step in the kernel move by.
GEOMETRY: Final = (
    "out_h", "out_w", "kernel_d", "kernel_h", "kernel_w", "channel", "step_d", "step_h", "step_w",
    "far_d", "far_h", "far_w",
)  # fmt: skip


@dataclass(frozen=True)
class ConvolutionClass:
    """What a kernel's text depends on.

    step        distance of windows along a row: 1, 2, or 0 for any other
    rows, edge  rows of a register tile and of the last one of a column (0: none)
    vectors     vectors of a tile
    has_bias    a bias is added before the result is stored
    run         lanes that rows of places are added up with, no more than a row has
    lanes       lanes that rows of windows are copied with
    is_short    such a vector holds a row
    is_flat     images have no depth
    scattered   columns are read where images lie: which operand of the tiles they are
    is_wide     vectors run on from row to row
    """

    dtype: dtype
    vector_bits: int
    step: int
    rows: int
    edge: int
    vectors: int
    has_bias: bool = False
    run: int = 0
    lanes: int = 0
    is_short: bool = False
    is_flat: bool = False
    scattered: str = ""
    is_wide: bool = False

    @property
    def element(self) -> Element:
        """How the dtype is computed with."""
        return element_of(self.dtype, self.vector_bits)

    @property
    def add(self) -> str:
        """Instruction that adds two elements."""
        return "fadd" if self.element.is_float else "add"

    @property
    def tile(self) -> TileShape:
        """The register tile."""
        return TileShape(self.element, self.rows, self.edge, self.vectors, self.scattered)

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.tile.width


def copy_run(w: Writer, kind: ConvolutionClass, source: str, target: str, words: dict[str, str]
             ) -> None:  # fmt: skip
    """out_w elements of a row of windows to scratch, where more may be stored."""
    stored, lanes, size = kind.element.stored, kind.lanes, kind.element.n_bytes
    vector = f"<{lanes} x {stored}>"
    if kind.step not in (1, 2):
        with w.loop("0", words["out_w"], [("ptr", source)]) as loop:
            w.store(stored, w.load(stored, loop.carried[0]), w.at(stored, target, loop.index))
            loop.next = [w.moved(loop.carried[0], words["step_w"])]
        return

    def copy(index: str) -> None:
        first = w.at(stored, source, w.mul(index, 2) if kind.step == 2 else index)
        value = w.load(vector, first, size)
        if kind.step == 2:
            evens = ", ".join(f"i32 {2 * lane}" for lane in range(lanes))
            high = w.load(vector, w.at(stored, first, lanes), size)
            value = w.let(
                f"shufflevector {vector} {value}, {vector} {high}, <{lanes} x i32> <{evens}>"
            )
        w.store(vector, value, w.at(stored, target, index), size)

    if kind.is_short:
        copy("0")
        return
    with w.loop("0", words["out_w"], step=lanes) as loop:
        copy(loop.index)


def each_column(
    w: Writer, words: dict[str, str], channels: str, image: str, columns: str, columns_row: str,
    body: Callable[[str, str], None],
) -> None:  # fmt: skip
    """body(place in the image, row of columns) for every channel and place of the kernel."""
    with w.loop("0", channels, [("ptr", image), ("ptr", columns)]) as channel:
        start = [("ptr", channel.carried[0]), ("ptr", channel.carried[1])]
        with w.loop("0", words["kernel_d"], start) as depth:
            start = [("ptr", depth.carried[0]), ("ptr", depth.carried[1])]
            with w.loop("0", words["kernel_h"], start) as line:
                start = [("ptr", line.carried[0]), ("ptr", line.carried[1])]
                with w.loop("0", words["kernel_w"], start) as place:
                    body(place.carried[0], place.carried[1])
                    place.next = [
                        w.moved(place.carried[0], words["far_w"]),
                        w.moved(place.carried[1], columns_row),
                    ]
                line.next = [w.moved(line.carried[0], words["far_h"]), place.results[1]]
            depth.next = [w.moved(depth.carried[0], words["far_d"]), line.results[1]]
        channel.next = [w.moved(channel.carried[0], words["channel"]), depth.results[1]]


def each_row(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], first: tuple[str, str], rows: str,
    image: str, columns: str, body: Callable[[str, str], None], n_bytes: int = 0,
) -> None:  # fmt: skip
    """body(window of the row's start in the image, its place in columns) for `rows` output rows;
    first: number of the first one within its depth, byte offset of its window. n_bytes: of a place
    in columns, if not an element's."""
    run = w.mul(words["out_w"], n_bytes or kind.element.n_bytes)
    if kind.is_flat:
        with w.loop("0", rows, [("ptr", w.moved(image, first[1])), ("ptr", columns)]) as row:
            source, target = row.carried
            body(source, target)
            row.next = [w.moved(source, words["step_h"]), w.moved(target, run)]
        return
    back = w.sub(words["step_d"], w.mul(w.sub(words["out_h"], 1), words["step_h"]))
    start = [("i64", first[0]), ("ptr", w.moved(image, first[1])), ("ptr", columns)]
    with w.loop("0", rows, start) as row:
        line, source, target = row.carried
        body(source, target)
        following = w.add(line, 1)
        wraps = w.compare("sge", following, words["out_h"])
        move = w.let(f"select i1 {wraps}, i64 {back}, i64 {words['step_h']}")
        row.next = [
            w.let(f"select i1 {wraps}, i64 0, i64 {following}"), w.moved(source, move),
            w.moved(target, run),
        ]  # fmt: skip


def unit_of(
    w: Writer, words: dict[str, str], unit: str, block: str, whole: str
) -> tuple[str, str, str, str]:
    """(entry, group, first, count) of a unit: `block` and `whole` are the words that say how many
    rows or channels a block has, and there are."""
    rest, number = w.divide(unit, words["n_blocks"])
    entry, group = w.divide(rest, words["groups"])
    first = w.mul(number, words[block])
    return entry, group, first, w.smaller(w.sub(words[whole], first), words[block])


def first_row(w: Writer, words: dict[str, str], row: str) -> tuple[str, str]:
    """Number of an output row within its depth, byte offset of its first window."""
    depth, line = w.divide(row, words["out_h"])
    offset = w.add(w.mul(depth, words["step_d"]), w.mul(line, words["step_h"]))
    return line, offset


def gather_columns(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], channels: str, image: str,
    first: tuple[str, str], rows: str, columns: str, columns_row: str,
) -> None:  # fmt: skip
    """Windows of `rows` output rows as columns of scratch."""

    def column(place: str, target: str) -> None:
        each_row(
            w, kind, words, first, rows, place, target,
            lambda source, to: copy_run(w, kind, source, to, words),
        )  # fmt: skip

    each_column(w, words, channels, image, columns, columns_row, column)


def tabulate_columns(w: Writer, words: dict[str, str], channels: str, table: str) -> None:
    """Bytes from the first element of an image to that of each row of columns, to a table."""
    each_column(w, words, channels, "null", table, "8", lambda place, at: w.store("ptr", place, at))


def tabulate_places(
    w: Writer, kind: ConvolutionClass, words: dict[str, str], first: tuple[str, str], rows: str,
    table: str,
) -> None:  # fmt: skip
    """Bytes from the first element of an image to the windows of `rows` output rows, to a table."""

    def row(source: str, target: str) -> None:
        with w.loop("0", words["out_w"], [("ptr", source), ("ptr", target)]) as loop:
            at, to = loop.carried
            w.store("ptr", at, to)
            loop.next = [w.moved(at, words["step_w"]), w.moved(to, 8)]

    each_row(w, kind, words, first, rows, "null", table, row, 8)
