"""Products of blocks in cache as LLVM text: loops over the register tiles of gemm, in a Writer.

Keeps     the contract of bits of gemm.tile_text, whatever the tile.
Touches   gemm.tile_text, gemm.elements, writer.
Not here  whole products (gemm), who multiplies blocks (convolution, attention)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flambeau.devices.cpu.gemm.elements import Element
from flambeau.devices.cpu.gemm.tile_text import SCATTERED, ragged_function, tile_function
from flambeau.devices.cpu.writer import Writer


@dataclass(frozen=True)
class TileShape:
    """A register tile.

    rows, edge  rows of a tile and of the last one of a column (0: none)
    vectors     vectors of a tile
    scattered   "a" or "b": which of A and B is read by a table
    """

    element: Element
    rows: int
    edge: int
    vectors: int
    scattered: str = ""

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.vectors * self.element.lanes


def tile_functions(shapes: Iterable[TileShape]) -> str:
    """Text of the tiles that `tiles` calls; all shapes have one element and as many vectors."""
    listed = list(shapes)
    element, vectors = listed[0].element, listed[0].vectors
    parts = [element.declarations, ragged_function(element, vectors, True)]
    for rows in sorted({each for shape in listed for each in (shape.rows, shape.edge)} - {0}):
        scattered = listed[0].scattered
        parts.append(tile_function(element, rows, vectors, True, scattered=scattered))
    return "\n".join(parts)


def context_of(w: Writer, **words: str | int) -> str:
    """A context for the tiles, made once in the entry block; see set_context."""
    context = w.let(f"alloca [{len(SCATTERED)} x i64], align 16")
    set_context(w, context, **words)
    return context


def set_context(w: Writer, context: str, **words: str | int) -> None:
    """Store words of the tiles' context."""
    for name, value in words.items():
        kind = "ptr" if name.endswith("_at") else "i64"
        w.store(kind, value, w.at("i64", context, SCATTERED.index(name)))


def tiles(
    w: Writer, shape: TileShape, context: str, a: str, b: str, c: str, m: str, n: str,
    a_row: str | int, c_row: str | int, sums: str, sums_step: str | int,
    column_bytes: str | int = 0, panel_sums: str | int = 0, panel_bytes: str | int = 0,
) -> None:  # fmt: skip
    """C (m, n) = A B by tiles; a panel of B stays in the first cache while A passes by. Tiles keep
    their sums `sums_step` bytes apart.

    column_bytes   from a column of B to the next, where B is packed by panels of a tile's width
    panel_sums     from the sums of a panel to the next one's, where they do not follow each other
    panel_bytes    from a panel of B to the next, where it is scattered
    """
    size, width = shape.element.n_bytes, shape.width
    a_step, c_step = w.mul(a_row, shape.rows), w.mul(c_row, shape.rows)
    whole = w.sub(m, shape.edge)
    name = "scattered_tile" if shape.scattered else "tile"
    with w.loop("0", n, [("ptr", sums), ("ptr", b)], step=width) as panel:
        columns = w.smaller(w.sub(n, panel.index), width)
        right = panel.carried[1]
        if not panel_bytes:
            right = w.moved(b, w.mul(panel.index, column_bytes or size))
        start = w.moved(c, w.mul(panel.index, size))

        def call(rows: int, left: str, out: str, place: str) -> None:
            w.put(
                f"call fastcc void @{name}_{rows}x{shape.vectors}(ptr {left}, ptr {right}, "
                f"ptr {out}, ptr {place}, i64 {columns}, ptr {context})"
            )

        carried = [("ptr", a), ("ptr", start), ("ptr", panel.carried[0])]
        with w.loop("0", whole, carried, step=shape.rows) as tile:
            left, out, place = tile.carried
            call(shape.rows, left, out, place)
            tile.next = [w.moved(left, a_step), w.moved(out, c_step), w.moved(place, sums_step)]
        left, out, place = tile.results
        if shape.edge:
            call(shape.edge, left, out, place)
            place = w.moved(place, sums_step)
        panel.next = [
            w.moved(panel.carried[0], panel_sums) if panel_sums else place,
            w.moved(panel.carried[1], panel_bytes) if panel_bytes else panel.carried[1],
        ]
