"""Matrix products: from dtypes, sizes and strides to the steps a runner executes.

Keeps     a plan depends on numbers alone (sizes, byte strides), never on addresses; kernels depend
          on the class of a product alone, never on sizes. Whatever is chosen here (tile, units,
          packing, operands swapped, batches merged) cannot show in the bits.
Touches   grid, pack_steps, product_text, vector_text.
Not here  how an operator's tensors become a batch of matrices (planning/lowering/lower.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm.elements import Element, element_of
from flambeau.devices.cpu.gemm.grid import (
    ALIGNMENT,
    Grid,
    edge_vectors_of,
    grid_of,
    is_vector_product,
    pack_kinds,
    round_up,
    tile_of,
    vector_grid_of,
)
from flambeau.devices.cpu.gemm.pack_steps import pack_a_step, pack_b_step, packed_a_sizes
from flambeau.devices.cpu.gemm.product import (
    Matrix,
    Operand,
    Product,
    ProductPlan,
    ProductStep,
    merged,
    oriented,
)
from flambeau.devices.cpu.gemm.product_text import ProductClass, product_kernel
from flambeau.devices.cpu.gemm.vector_text import VectorClass, vector_kernel

MAX_BATCH_DIMS: Final = 4
# Bytes of a packed operand above which the product is cut in halves that share the workspace.
MAX_PACKED_BYTES: Final = 64 << 20

Batch = int | tuple[int, ...]
Strides = tuple[Batch, int, int]


@lru_cache(maxsize=4096)
def plan_product(
    kind: dtype,
    batch: Batch,
    m: int,
    n: int,
    k: int,
    strides_a: Strides,
    strides_b: Strides,
    strides_c: Strides,
    vector_bits: int,
    n_threads_hint: int = 1,
) -> ProductPlan:
    """Steps that compute C (batch, m, n) = A (batch, m, k) times B (batch, k, n).

    Strides are in bytes: (batch, row, column) of each matrix; batch sizes and strides are ints or
    tuples of up to four. Any stride is allowed, 0 and negative ones included; the elements of C
    must not overlap each other, A or B.
    """
    sizes = (batch,) if isinstance(batch, int) else tuple(batch)
    if len(sizes) > MAX_BATCH_DIMS:
        raise ValueError(f"a product has at most {MAX_BATCH_DIMS} batch dimensions, not {sizes}")
    if m <= 0 or n <= 0 or any(size <= 0 for size in sizes):
        return ProductPlan(())
    a, b, c = [
        _matrix(name, strides)
        for name, strides in zip("abc", (strides_a, strides_b, strides_c), strict=True)
    ]
    product = merged(Product(sizes, m, n, k, a, b, c))
    choices = _Choices(element_of(kind, vector_bits), max(1, n_threads_hint))
    return _plan(oriented(product, kind), choices)


class _Choices(NamedTuple):
    """What does not change from part to part of a product."""

    element: Element
    n_threads: int


def _matrix(name: str, strides: Strides) -> Matrix:
    steps, row, column = strides
    batch = (steps,) if isinstance(steps, int) else tuple(steps)
    return Matrix(Operand(name), batch, row, column)


def _plan(product: Product, choices: _Choices) -> ProductPlan:
    """Steps of an oriented product, in halves when packed operands would take too much memory."""
    element, n_threads = choices
    if is_vector_product(product, element):
        return _plan_vector(product, choices)
    rows, vectors = tile = tile_of(product, element)
    packs = pack_kinds(product, element, rows)
    width = vectors * element.lanes
    size = element.n_packed_bytes
    if packs[1] and product.n * product.k * size > MAX_PACKED_BYTES and product.n > 8 * width:
        parts = _column_halves(product, width)
    elif packs[0] and product.m * product.k * size > MAX_PACKED_BYTES and product.m > 8 * rows:
        # The halves of the columns of the transposed product.
        parts = [each.swapped() for each in _column_halves(product.swapped(), rows)]
    else:
        grid = grid_of(product, element, n_threads, tile, packs)
        return _plan_part(product, choices, grid, tile, packs)
    plans = [_plan(part, choices) for part in parts]
    steps = tuple(step for plan in plans for step in plan.steps)
    return ProductPlan(steps, max(plan.workspace_bytes for plan in plans))


def _column_halves(product: Product, width: int) -> list[Product]:
    """Two products, of the first and the last columns, cut at a multiple of `width`."""
    half = round_up(product.n // 2, width)
    right = product._replace(
        n=product.n - half,
        b=product.b.moved(half * product.b.column),
        c=product.c.moved(half * product.c.column),
    )
    return [product._replace(n=half), right]


def _plan_part(
    product: Product, choices: _Choices, grid: Grid, tile: tuple[int, int], packs: tuple[str, str]
) -> ProductPlan:
    """Packing steps where several units share a packed operand, then the product itself."""
    element = choices.element
    rows, vectors = tile
    width = vectors * element.lanes
    pack_a, pack_b = packs
    a, b = product.a, product.b
    a_block, a_tile = grid.row_block * a.row, rows * a.row
    steps: list[ProductStep] = []
    workspace = 0
    if pack_a and grid.n_column_blocks > 1:
        step, a, a_block, a_tile, workspace = pack_a_step(
            product, element, pack_a, grid.row_block, rows, workspace
        )
        steps.append(step)
        pack_a = ""
    b_panel = width * element.n_packed_bytes
    if pack_b and not grid.packs_own:
        step, b, b_panel, workspace = pack_b_step(product, element, pack_b, vectors, workspace)
        steps.append(step)
        pack_b = ""
    elif pack_b:
        b_panel *= round_up(min(grid.k_block, product.k), element.lanes)
        if pack_b == "rows" and not element.is_narrow and product.m >= rows:
            pack_b = "passing"
    shape = ProductClass(
        element.dtype, element.vector_bits, rows, vectors,
        edge_vectors_of(product.n, vectors, element.lanes), pack_a, pack_b,
        product.c.column == element.n_bytes or product.n == 1, len(product.sizes),
    )  # fmt: skip
    name, text = product_kernel(shape)
    scratch = _Scratch(product, element, grid, shape, b_panel)
    arguments: list[int | Operand] = [
        a.operand, b.operand, product.c.operand, product.m, product.n, product.k,
        grid.k_block, grid.row_block, grid.column_block, grid.n_row_blocks, grid.n_column_blocks,
        *((grid.n_column_blocks, 1) if grid.rows_first else (1, grid.n_row_blocks)),
        a_block, scratch.a_tile or a_tile, a.row, a.column, b.row, b.column, b_panel,
        product.c.row, product.c.column,
        scratch.sums_step, scratch.packed_a, scratch.packed_a_stride, scratch.packed_b,
        int(not packs[0]),
    ]  # fmt: skip
    arguments += _batch_words(product, a, b)
    steps.append(
        ProductStep(
            name, text, grid.n_units, grid.chunk_units, tuple(arguments), scratch.n_bytes
        )
    )  # fmt: skip
    return ProductPlan(tuple(steps), workspace)


class _Scratch:
    """A unit's scratch memory: sums of its tiles, then its own packed A and B."""

    def __init__(
        self, product: Product, element: Element, grid: Grid, shape: ProductClass, b_panel: int
    ) -> None:
        width = shape.vectors * element.lanes
        tile_bytes = shape.rows * width * element.n_packed_bytes
        n_tiles = -(-grid.row_block // shape.rows) * (grid.column_block // width)
        # Only sums that wait for the next block of k need a place for each tile.
        is_deep = grid.k_block < product.k
        self.sums_step = tile_bytes if is_deep else 0
        self.packed_a = round_up(tile_bytes * (n_tiles if is_deep else 1), ALIGNMENT)
        self.packed_a_stride = self.a_tile = a_bytes = 0
        if shape.pack_a:
            self.packed_a_stride, self.a_tile, a_bytes = packed_a_sizes(
                shape.pack_a, grid.row_block, min(grid.k_block, product.k), shape.rows, element
            )
        self.packed_b = round_up(self.packed_a + a_bytes, ALIGNMENT)
        b_bytes = (grid.column_block // width) * b_panel if shape.pack_b else 0
        self.n_bytes = round_up(self.packed_b + b_bytes, ALIGNMENT)


def _batch_words(product: Product, a: Matrix, b: Matrix) -> list[int | Operand]:
    """Size and strides of each batch dimension."""
    words: list[int | Operand] = []
    for each in zip(product.sizes, a.batch, b.batch, product.c.batch, strict=True):
        words += each
    return words


def _plan_vector(product: Product, choices: _Choices) -> ProductPlan:
    """One step for a product whose A is one row, over a matrix with a contiguous dimension."""
    element = choices.element
    a, b, c = product.a, product.b, product.c
    grid = vector_grid_of(product, element, choices.n_threads)
    shape = VectorClass(
        element.dtype, element.vector_bits, grid.kind, grid.groups, grid.blocks,
        len(product.sizes),
    )  # fmt: skip
    name, text = vector_kernel(shape)
    words: list[int | Operand] = [
        a.operand, b.operand, c.operand, product.n, product.k, grid.column_block,
        grid.n_column_blocks, a.column, b.row, b.column, c.column,
    ]  # fmt: skip
    words += _batch_words(product, a, b)
    scratch = 0
    if grid.kind == "rows":
        scratch = 2 * round_up(grid.column_block, element.lanes) * element.n_packed_bytes
        scratch = round_up(scratch, ALIGNMENT)
    step = ProductStep(name, text, grid.n_units, grid.chunk_units, tuple(words), scratch)
    return ProductPlan((step,))
