"""Matrix products: from dtypes, sizes and strides to the steps a runner executes.

Keeps     a plan depends on numbers alone (sizes, byte strides), never on addresses; kernels depend
          on the class of a product alone, never on sizes. Whatever is chosen here (tile, units,
          packing, operands swapped, batches merged) cannot show in the bits.
Touches   gemm_text, gemm_pack_text, gemm_vector_text.
Not here  how an operator's tensors become a batch of matrices (engine/lower.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.gemm_pack_text import pack_kernel
from flambeau.devices.cpu.gemm_text import SUM_BLOCK, ProductClass, product_kernel
from flambeau.devices.cpu.gemm_types import Element
from flambeau.devices.cpu.gemm_vector_text import VectorClass, vector_kernel

ALIGNMENT: Final = 64
MAX_BATCH_DIMS: Final = 4
# Bytes of B up to which it is read where it lies.
_IN_PLACE_BYTES: Final = 768 << 10
# Bytes of a packed operand above which the product is cut in halves that share the workspace.
_MAX_PACKED_BYTES: Final = 64 << 20
# Bytes of B that one unit walks over again and again: half of a second-level cache.
_CACHED_BYTES: Final = 256 << 10
# Bytes between steps of k from which A is packed.
_SPARSE_BYTES: Final = 2048
_K_BLOCK: Final = 1024
# Multiply-adds of a unit in large products, of the smallest unit worth handing to another thread,
# and of the smallest worth handing out for balance alone.
_UNIT_WORK: Final = 3_000_000
_THREAD_WORK: Final = 50_000
_BALANCE_WORK: Final = 250_000
# The same for products with one row, which read more than they compute.
_VECTOR_WORK: Final = 25_000
# Columns of a vector times a matrix that are worth a run of memory, and that fit the first cache.
_ROW_RUN: Final = 256
_ROW_SUMS: Final = 1024
# Elements that a packing step copies in one chunk.
_CHUNK_PACKED: Final = 65_536


class Operand(NamedTuple):
    """An argument known when the plan is bound: an address "a", "b", "c" or "workspace" + bytes."""

    name: str
    n_bytes: int = 0


@dataclass(frozen=True)
class ProductStep:
    """One step of the runner's program; `arguments` are the kernel's words in order."""

    name: str
    text: str
    n_units: int
    chunk_units: int
    arguments: tuple[int | Operand, ...]
    scratch_bytes: int


@dataclass(frozen=True)
class ProductPlan:
    """Steps in order, and the bytes of 64-byte aligned workspace they share."""

    steps: tuple[ProductStep, ...]
    workspace_bytes: int = 0


class _Matrix(NamedTuple):
    """Where an operand lies: byte strides of its batch dimensions, rows and columns."""

    operand: Operand
    batch: tuple[int, ...]
    row: int
    column: int

    def transposed(self) -> _Matrix:
        return self._replace(row=self.column, column=self.row)

    def moved(self, n_bytes: int) -> _Matrix:
        name, offset = self.operand
        return self._replace(operand=Operand(name, offset + n_bytes))


class _Product(NamedTuple):
    """C = A B for every batch entry."""

    sizes: tuple[int, ...]
    m: int
    n: int
    k: int
    a: _Matrix
    b: _Matrix
    c: _Matrix

    def swapped(self) -> _Product:
        """The transposed product, which computes the same elements from the same fma."""
        return self._replace(
            m=self.n, n=self.m, a=self.b.transposed(), b=self.a.transposed(), c=self.c.transposed()
        )


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
    matrices = []
    for name, (steps, row, column) in zip(
        "abc", (strides_a, strides_b, strides_c), strict=True
    ):
        steps = (steps,) if isinstance(steps, int) else tuple(steps)
        matrices.append(_Matrix(Operand(name), steps, row, column))
    product = _merged(_Product(sizes, m, n, k, *matrices))
    return _plan(_oriented(product, kind), Element(kind, vector_bits), max(1, n_threads_hint))


def _merged(product: _Product) -> _Product:
    """Fewer batch dimensions: those of size 1 go, neighbours that are one in memory join, and one
    over which an operand does not change becomes part of the other's rows or columns."""
    keep = [d for d, size in enumerate(product.sizes) if size > 1]
    sizes = [product.sizes[d] for d in keep]
    strides = [[each.batch[d] for d in keep] for each in (product.a, product.b, product.c)]
    d = len(sizes) - 1
    while d > 0:
        if all(each[d - 1] == each[d] * sizes[d] for each in strides):
            sizes[d - 1] *= sizes.pop(d)
            for each in strides:
                each[d - 1] = each.pop(d)
        d -= 1
    a, b, c = (
        each._replace(batch=tuple(steps))
        for each, steps in zip((product.a, product.b, product.c), strides, strict=True)
    )
    product = product._replace(sizes=tuple(sizes), a=a, b=b, c=c)
    if sizes:
        inner, m, n = sizes[-1], product.m, product.n
        if b.batch[-1] == 0 and a.batch[-1] == m * a.row and c.batch[-1] == m * c.row:
            return _without_last(product)._replace(m=m * inner)
        if a.batch[-1] == 0 and b.batch[-1] == n * b.column and c.batch[-1] == n * c.column:
            return _without_last(product)._replace(n=n * inner)
    return product


def _without_last(product: _Product) -> _Product:
    a, b, c = (each._replace(batch=each.batch[:-1]) for each in (product.a, product.b, product.c))
    return product._replace(sizes=product.sizes[:-1], a=a, b=b, c=c)


def _oriented(product: _Product, kind: dtype) -> _Product:
    """The product or its transpose, whichever suits the kernels better."""
    size = kind.itemsize
    m, n, c = product.m, product.n, product.c
    if n == 1 and m > 1:
        return product.swapped()
    if m == 1:
        return product
    if c.column != size and c.row == size:
        product = product.swapped()
    m, n, b = product.m, product.n, product.b
    if b.column != size and b.row == size and m <= 16 and n > 2 * m:
        # B would have to be transposed whole for the sake of few rows; A is read as it lies.
        return product.swapped()
    return product


def _tile(product: _Product, element: Element) -> tuple[int, int]:
    """Rows and vectors of the register tile: as many accumulators as registers allow."""
    n_vectors = -(-product.n // element.lanes)
    if element.vector_bits == 512:
        shapes = {1: (14, 1), 2: (14, 2), 3: (8, 3)}
        rows, vectors = shapes.get(n_vectors, (6, 4))
        by_rows = {1: 28, 2: 12, 3: 8}
    else:
        shapes = {1: (12, 1), 3: (4, 3)}
        rows, vectors = shapes.get(n_vectors, (6, 2))
        by_rows = {1: 12, 2: 6, 3: 4, 4: 3}
    if product.m in by_rows:
        rows, vectors = product.m, min(by_rows[product.m], n_vectors)
    if element.accumulated == "i64":
        rows, vectors = min(rows, 4), min(vectors, 2)  # a 64-bit multiply takes several registers
    return min(rows, product.m), vectors


def _plan(product: _Product, element: Element, n_threads: int) -> ProductPlan:
    """Steps of an oriented product, in halves when packed operands would take too much memory."""
    size = element.n_bytes
    if product.m == 1 and (
        product.b.row == size or product.b.column == size and product.k * product.n * size > 200_000
    ):
        return _plan_vector(product, element, n_threads)
    tile = _tile(product, element)
    packs = [_pack_kinds(product, element, tile[0])]
    size = element.n_packed_bytes
    a_bytes = product.m * product.k * size if packs[0][0] else 0
    b_bytes = product.n * product.k * size if packs[0][1] else 0
    width = tile[1] * element.lanes
    if b_bytes > _MAX_PACKED_BYTES and product.n > 8 * width:
        half = -(-product.n // (2 * width)) * width
        parts = [product._replace(n=half), product._replace(
            n=product.n - half, b=product.b.moved(half * product.b.column),
            c=product.c.moved(half * product.c.column),
        )]  # fmt: skip
    elif a_bytes > _MAX_PACKED_BYTES and product.m > 8 * tile[0]:
        half = -(-product.m // (2 * tile[0])) * tile[0]
        parts = [product._replace(m=half), product._replace(
            m=product.m - half, a=product.a.moved(half * product.a.row),
            c=product.c.moved(half * product.c.row),
        )]  # fmt: skip
    else:
        return _plan_part(product, element, n_threads, tile, packs[0])
    plans = [_plan(part, element, n_threads) for part in parts]
    steps = tuple(step for plan in plans for step in plan.steps)
    return ProductPlan(steps, max(plan.workspace_bytes for plan in plans))


def _pack_kinds(product: _Product, element: Element, rows: int) -> tuple[str, str]:
    """How A and B are to be packed; "" for an operand read in place."""
    size = element.n_bytes
    a, b = product.a, product.b
    pack_a = ""
    # Rows of a tile that lie far apart along k waste a line of the cache for each step.
    is_sparse = a.column != size and product.m > rows and abs(a.column) >= _SPARSE_BYTES
    if element.is_narrow or (is_sparse and product.n > 64):
        pack_a = "rows" if a.column == size else "columns" if a.row == size else "strided"
    if b.column == size or product.n == 1:
        big = product.k * product.n * size > _IN_PLACE_BYTES and product.m > 24
        pack_b = "rows" if element.is_narrow or big else ""
        if product.n == 1 and element.is_narrow:
            pack_b = "strided"
    else:
        pack_b = "columns" if b.row == size else "strided"
    return pack_a, pack_b


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


class _Grid(NamedTuple):
    """Sizes of blocks of k, rows and columns, and how many units a chunk has."""

    k_block: int
    row_block: int
    column_block: int
    n_row_blocks: int
    n_column_blocks: int
    n_units: int
    chunk_units: int


def _grid(
    product: _Product, element: Element, n_threads: int, tile: tuple[int, int]
) -> _Grid:
    """Units of similar work, enough of them for the threads, not too many for their cost."""
    rows, width = tile[0], tile[1] * element.lanes
    m, n, k = product.m, product.n, max(1, product.k)
    n_entries = 1
    for size in product.sizes:
        n_entries *= size
    k_block = k if k <= _K_BLOCK + _K_BLOCK // 2 else _round_up(-(-k // -(-k // _K_BLOCK)), SUM_BLOCK)
    cached = _CACHED_BYTES // (k_block * element.n_packed_bytes) // width * width
    column_block = min(max(cached, width), _round_up(n, width))
    work = m * n * k
    total = work * n_entries
    wanted = total // _UNIT_WORK
    if n_threads > 1:
        wanted = max(wanted, min(total // _BALANCE_WORK, 4 * n_threads))
        wanted = max(wanted, min(total // _THREAD_WORK, n_threads))
    wanted = max(1, -(-wanted // n_entries))
    n_column_blocks = -(-n // column_block)
    tall = -(-m // rows)
    if wanted < n_column_blocks and work <= _BALANCE_WORK:
        n_column_blocks = wanted  # a cheap product is one unit, whatever the cache would like
    n_row_blocks = max(1, min(tall, -(-wanted // n_column_blocks)))
    if n_row_blocks * n_column_blocks < wanted:
        n_column_blocks = min(-(-n // width), -(-wanted // n_row_blocks))
    column_block = _round_up(-(-n // n_column_blocks), width)
    n_column_blocks = -(-n // column_block)
    row_block = -(-tall // n_row_blocks) * rows
    n_row_blocks = -(-m // row_block)
    n_units = n_entries * n_row_blocks * n_column_blocks
    chunk = n_units
    if n_threads > 1 and total > 2 * _THREAD_WORK:
        chunk = max(1, min(n_units // (4 * n_threads), _UNIT_WORK * n_units // total))
    return _Grid(k_block, row_block, column_block, n_row_blocks, n_column_blocks, n_units, chunk)


def _plan_part(
    product: _Product, element: Element, n_threads: int, tile: tuple[int, int],
    packs: tuple[str, str],
) -> ProductPlan:  # fmt: skip
    """Packing steps where several units share a packed operand, then the product itself."""
    grid = _grid(product, element, n_threads, tile)
    rows, vectors = tile
    width = vectors * element.lanes
    steps: list[ProductStep] = []
    workspace = 0
    pack_a, pack_b = packs
    a, b = product.a, product.b
    a_block, a_tile = grid.row_block * a.row, rows * a.row
    if pack_a and grid.n_column_blocks > 1:
        step, a, a_block, a_tile, workspace = _pack_a_step(
            product, element, pack_a, grid.row_block, rows, workspace
        )
        steps.append(step)
        pack_a = ""
    panel_bytes = _round_up(min(grid.k_block, product.k), element.lanes) * width
    panel_bytes *= element.n_packed_bytes
    if pack_b and grid.n_row_blocks > 1:
        step, b, panel_bytes, workspace = _pack_b_step(product, element, pack_b, vectors, workspace)
        steps.append(step)
        pack_b = ""
    elif not pack_b:
        panel_bytes = width * element.n_packed_bytes
    edge_columns = product.n % width
    shape = ProductClass(
        element.dtype, element.vector_bits, rows, vectors, product.m % rows,
        -(-edge_columns // element.lanes) if edge_columns else vectors, pack_a, pack_b,
        product.c.column == element.n_bytes or product.n == 1, len(product.sizes),
    )  # fmt: skip
    name, text = product_kernel(shape)
    tile_bytes = rows * width * element.n_packed_bytes
    n_tiles = -(-grid.row_block // rows) * (grid.column_block // width)
    is_deep = grid.k_block < product.k
    packed_a = _round_up(tile_bytes * (n_tiles if is_deep else 1), ALIGNMENT)
    packed_a_stride, a_bytes = 0, 0
    if pack_a:
        packed_a_stride, a_tile, a_bytes = _packed_a(
            pack_a, grid.row_block, min(grid.k_block, product.k), rows, element
        )
    packed_b = _round_up(packed_a + a_bytes, ALIGNMENT)
    b_bytes = (grid.column_block // width) * panel_bytes if pack_b else 0
    c = product.c
    arguments: list[int | Operand] = [
        a.operand, b.operand, c.operand, product.m, product.n, product.k, grid.k_block,
        grid.row_block, grid.column_block, grid.n_row_blocks, grid.n_column_blocks, a_block,
        a_tile, a.row, a.column,
        b.row, b.column, panel_bytes, c.row, c.column, tile_bytes if is_deep else 0,
        packed_a, packed_a_stride, packed_b,
    ]  # fmt: skip
    for size, *strides in zip(product.sizes, a.batch, b.batch, c.batch, strict=True):
        arguments += [size, *strides]
    scratch = _round_up(packed_b + b_bytes, ALIGNMENT)
    steps.append(
        ProductStep(name, text, grid.n_units, grid.chunk_units, tuple(arguments), scratch)
    )
    return ProductPlan(tuple(steps), workspace)


def _padded(inner: int, element: Element) -> int:
    """Bytes from one packed row to the next: whole vectors, and a line more so that rows do not
    all start in the same set of the cache."""
    return _round_up(inner * element.n_packed_bytes, 64) + 64


def _distinct(sizes: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """(size, stride) of the batch dimensions along which an operand changes."""
    return [(s, t) if t else (1, 0) for s, t in zip(sizes, strides, strict=True)]


def _packed_batch(
    sizes: tuple[int, ...], strides: tuple[int, ...], entry_bytes: int
) -> tuple[list[int], tuple[int, ...], int]:
    """Words of a packing step's batch, the packed operand's batch strides, its entries."""
    words: list[int] = []
    result: list[int] = []
    count = 1
    for size, stride in reversed(_distinct(sizes, strides)):
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


def _packed_a(
    kind: str, n_rows: int, k: int, tile_rows: int, element: Element
) -> tuple[int, int, int]:
    """Bytes between packed rows (or tiles, for "columns"), between tiles, and in all."""
    if kind == "columns":
        stride = _padded(tile_rows * k, element)
        return stride, stride, -(-n_rows // tile_rows) * stride
    stride = _padded(k, element)
    return stride, tile_rows * stride, n_rows * stride


def _pack_a_step(
    product: _Product, element: Element, kind: str, row_block: int, rows: int, workspace: int
) -> tuple[ProductStep, _Matrix, int, int, int]:
    """Step that packs A whole, where it then lies, bytes of a block and a tile, workspace used."""
    a, k = product.a, product.k
    stride, tile_bytes, block_bytes = _packed_a(kind, row_block, k, rows, element)
    n_blocks = -(-product.m // row_block)
    batch_words, batch, n_entries = _packed_batch(product.sizes, a.batch, n_blocks * block_bytes)
    target = Operand("workspace", workspace)
    words = [
        a.operand, target, product.m, k, a.row, a.column, stride, row_block, block_bytes, n_blocks
    ]  # fmt: skip
    step = _pack_step(
        element, "a", kind, rows, words, batch_words, n_blocks * n_entries, row_block * k
    )
    size = element.n_packed_bytes
    row, column = (size, size * rows) if kind == "columns" else (stride, size)
    packed = _Matrix(target, batch, row, column)
    workspace += _round_up(n_entries * n_blocks * block_bytes, ALIGNMENT)
    return step, packed, block_bytes, tile_bytes, workspace


def _pack_b_step(
    product: _Product, element: Element, kind: str, vectors: int, workspace: int
) -> tuple[ProductStep, _Matrix, int, int]:
    """Step that packs B whole, where it then lies, bytes of a panel, workspace used."""
    b, k = product.b, product.k
    width = vectors * element.lanes
    row_bytes = width * element.n_packed_bytes
    panel_bytes = _round_up(k, element.lanes) * row_bytes
    n_panels = -(-product.n // width)
    batch_words, batch, n_entries = _packed_batch(product.sizes, b.batch, n_panels * panel_bytes)
    target = Operand("workspace", workspace)
    # Units of a few panels: rows of B are then read in longer runs.
    per_unit = max(1, min(4, _CHUNK_PACKED // max(1, k * width)))
    n_blocks = -(-n_panels // per_unit)
    words = [
        b.operand, target, product.n, k, b.column, b.row, panel_bytes, per_unit * width,
        per_unit * panel_bytes, n_blocks,
    ]  # fmt: skip
    step = _pack_step(
        element, "b", kind, vectors, words, batch_words, n_blocks * n_entries, k * width * per_unit
    )
    packed = _Matrix(target, batch, row_bytes, element.n_packed_bytes)
    return step, packed, panel_bytes, workspace + n_entries * n_panels * panel_bytes


def _plan_vector(product: _Product, element: Element, n_threads: int) -> ProductPlan:
    """One step for a product whose A is one row, over a matrix with a contiguous dimension."""
    n, k = product.n, max(1, product.k)
    a, b, c = product.a, product.b, product.c
    n_entries = 1
    for size in product.sizes:
        n_entries *= size
    is_rows = b.column == element.n_bytes
    kind, groups, blocks = "rows", 1, 1
    total = n * k * n_entries
    wanted = min(total // _VECTOR_WORK, 4 * n_threads) if n_threads > 1 else 1
    wanted = max(1, -(-wanted // n_entries))
    if is_rows:
        column_block = max(_ROW_RUN, _round_up(-(-n // wanted), 64))
        column_block = min(column_block, _ROW_SUMS)
    else:
        kind = "few_columns" if n < element.lanes else "columns"
        groups, blocks = _chains(n, k, b.column, element.lanes)
        # The last block of columns must have a set of them too.
        width = groups * element.lanes
        column_block = _round_up(max(-(-n // wanted), 2 * width), width)
        column_block = _round_up(-(-n // max(1, n // column_block)), width)
        if n % column_block and n % column_block < width:
            column_block += width
    column_block = min(column_block, n)
    n_blocks = -(-n // column_block)
    shape = VectorClass(
        element.dtype, element.vector_bits, kind, groups, blocks, len(product.sizes)
    )  # fmt: skip
    name, text = vector_kernel(shape)
    words: list[int | Operand] = [
        a.operand, b.operand, c.operand, n, product.k, column_block, n_blocks, a.column, b.row,
        b.column, c.column,
    ]  # fmt: skip
    for size, *strides in zip(product.sizes, a.batch, b.batch, c.batch, strict=True):
        words += [size, *strides]
    n_units = n_entries * n_blocks
    chunk = n_units
    if n_threads > 1 and total > 2 * _VECTOR_WORK:
        chunk = max(1, min(n_units // (2 * n_threads), 2_000_000 * n_units // total))
    scratch = 2 * _round_up(column_block, element.lanes) * element.n_packed_bytes if is_rows else 0
    step = ProductStep(name, text, n_units, chunk, tuple(words), _round_up(scratch, ALIGNMENT))
    return ProductPlan((step,))


def _chains(n: int, k: int, stride: int, lanes: int) -> tuple[int, int]:
    """Groups of columns and blocks of k whose chains run at the same time.

    Columns a power of two apart fight for the same lines of the first cache, so two blocks of the
    same columns are better there; else two groups of columns, which need no whole blocks.
    """
    if n >= 2 * lanes and (k < 2 * SUM_BLOCK or stride % 1024):
        return 2, 1
    return 1, 2 if k >= 2 * SUM_BLOCK else 1
