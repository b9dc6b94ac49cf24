"""Steps that pack an operand of a product whole, for the units of the next step to share.

Keeps     what does not change along a batch dimension is packed once.
Touches   product, grid, pack_text.
Not here  units that pack for themselves, when either is worth it (plan.py, grid.py)."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.gemm.elements import Element
from flambeau.devices.cpu.gemm.grid import ALIGNMENT, round_up
from flambeau.devices.cpu.gemm.pack_text import pack_kernel
from flambeau.devices.cpu.gemm.product import Matrix, Operand, Product, ProductStep

# Elements that a packing step copies in one chunk.
_CHUNK_PACKED: Final = 65_536


def _padded(inner: int, element: Element) -> int:
    """Bytes from one packed row to the next: whole vectors, and a line more so that rows do not
    all start in the same set of the cache."""
    return round_up(inner * element.n_packed_bytes, 64) + 64


def _packed_batch(
    sizes: tuple[int, ...], strides: tuple[int, ...], entry_bytes: int
) -> tuple[list[int], tuple[int, ...], int]:
    """Words of a packing step's batch, the packed operand's batch strides, its entries."""
    words: list[int] = []
    result: list[int] = []
    count = 1
    for size, stride in reversed(tuple(zip(sizes, strides, strict=True))):
        size = size if stride else 1  # what does not change is packed once
        step = count * entry_bytes if stride else 0
        words[:0] = [size, stride, step]
        result.insert(0, step)
        count *= size
    return words, tuple(result), count


def _pack_step(
    element: Element, operand: str, kind: str, tile: int, words: list[int | Operand],
    batch_words: list[int], n_units: int, unit_elements: int,
) -> ProductStep:  # fmt: skip
    name, text = pack_kernel(
        element.dtype, element.vector_bits, operand, kind, tile, len(batch_words) // 3
    )
    chunk = max(1, _CHUNK_PACKED // max(1, unit_elements))
    return ProductStep(name, text, n_units, chunk, (*words, *batch_words), 0)


def packed_a_sizes(
    kind: str, n_rows: int, k: int, tile_rows: int, element: Element
) -> tuple[int, int, int]:
    """Bytes between packed rows (or tiles, for "columns"), between tiles, and in all."""
    if kind == "columns":
        stride = _padded(tile_rows * k, element)
        return stride, stride, -(-n_rows // tile_rows) * stride
    stride = _padded(k, element)
    return stride, tile_rows * stride, n_rows * stride


def pack_a_step(
    product: Product, element: Element, kind: str, row_block: int, rows: int, workspace: int
) -> tuple[ProductStep, Matrix, int, int, int]:
    """Step that packs A whole, where it then lies, bytes of a block and a tile, workspace used."""
    a, k = product.a, product.k
    stride, tile_bytes, block_bytes = packed_a_sizes(kind, row_block, k, rows, element)
    n_blocks = -(-product.m // row_block)
    batch_words, batch, n_entries = _packed_batch(product.sizes, a.batch, n_blocks * block_bytes)
    target = Operand("workspace", workspace)
    words: list[int | Operand] = [
        a.operand, target, product.m, k, a.row, a.column, stride, row_block, block_bytes, n_blocks
    ]  # fmt: skip
    step = _pack_step(
        element, "a", kind, rows, words, batch_words, n_blocks * n_entries, row_block * k
    )
    size = element.n_packed_bytes
    row, column = (size, size * rows) if kind == "columns" else (stride, size)
    packed = Matrix(target, batch, row, column)
    workspace += round_up(n_entries * n_blocks * block_bytes, ALIGNMENT)
    return step, packed, block_bytes, tile_bytes, workspace


def pack_b_step(
    product: Product, element: Element, kind: str, vectors: int, workspace: int
) -> tuple[ProductStep, Matrix, int, int]:
    """Step that packs B whole, where it then lies, bytes of a panel, workspace used."""
    b, k = product.b, product.k
    width = vectors * element.lanes
    row_bytes = width * element.n_packed_bytes
    panel_bytes = round_up(k, element.lanes) * row_bytes
    n_panels = -(-product.n // width)
    batch_words, batch, n_entries = _packed_batch(product.sizes, b.batch, n_panels * panel_bytes)
    target = Operand("workspace", workspace)
    # Units of a few panels: rows of B are then read in longer runs.
    per_unit = max(1, min(4, _CHUNK_PACKED // max(1, k * width)))
    n_blocks = -(-n_panels // per_unit)
    words: list[int | Operand] = [
        b.operand, target, product.n, k, b.column, b.row, panel_bytes, per_unit * width,
        per_unit * panel_bytes, n_blocks,
    ]  # fmt: skip
    step = _pack_step(
        element, "b", kind, vectors, words, batch_words, n_blocks * n_entries, k * width * per_unit
    )
    packed = Matrix(target, batch, row_bytes, element.n_packed_bytes)
    return step, packed, panel_bytes, workspace + n_entries * n_panels * panel_bytes
