"""How a product is cut: register tile, blocks, units, what is packed.

Keeps     choices weigh speed only; any of them gives the same bits.
Touches   product, elements, features (the size of a cache).
Not here  the steps that carry them out (plan.py)."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from flambeau.devices.cpu.features import second_cache_bytes
from flambeau.devices.cpu.gemm.elements import Element
from flambeau.devices.cpu.gemm.product import Product
from flambeau.devices.cpu.gemm.tile_text import SUM_BLOCK

# Rows and vectors of a tile by the vectors in a row of C (0: any other number), and vectors by
# rows where rows are few: as many accumulators as registers allow, with a few for operands.
TILES: Final[dict[int, tuple[dict[int, tuple[int, int]], dict[int, int]]]] = {
    256: ({1: (12, 1), 3: (4, 3), 0: (6, 2)}, {1: 12, 2: 6, 3: 4, 4: 3}),
    512: (
        {1: (14, 1), 2: (14, 2), 3: (8, 3), 0: (6, 4)},
        {1: 28, 2: 12, 3: 8, 4: 6, 5: 5, 7: 3, 8: 3},
    ),
}
ALIGNMENT: Final = 64
# Bytes of B up to which it is read where it lies, by the width of vectors (newer CPUs have larger
# second-level caches), and rows of A from which packing more than that pays.
_IN_PLACE_BYTES: Final = {256: 256 << 10, 512: 768 << 10}
_REUSED_ROWS: Final = 24
# Tiles of a column of C from which two heights are weighed, and from which there is one.
_SOME_TILES: Final = 4
_MANY_TILES: Final = 10
# Tiles of a row of C from which a narrower last tile would save too little.
_LONG_ROW: Final = 8
# Rows of A up to which units do not share a packed B, and up to which a unit that packs its own
# columns takes all of them: packing twice costs more than it gains, the more so the fewer rows.
_SHARED_ROWS: Final = 192
_OWN_ROWS: Final = 2048
# Rows of a unit from which packing all of B for itself costs less than the rows of A and C that
# another thread has in its caches: what computed them, and what reads them, goes by rows.
_ROWS_WORTH_PACKING: Final = 192
# Units may end up to one part in so many after the soonest.
_UNEVEN: Final = 25
# Bytes of B that one unit walks over again and again, at most.
_CACHED_BYTES: Final = 512 << 10
# Bytes between steps of k from which A is packed, where the columns of B are more than a few; for
# those few it is read in place by blocks of k that leave room in the caches' few sets.
_SPARSE_BYTES: Final = 2048
_FEW_COLUMNS: Final = 192
# Elements of k that are packed together, at least and, where the cache has room, at most.
_K_BLOCK: Final = 1024
_DEEP_K_BLOCK: Final = 2048
# Multiply-adds of a unit in large products, of the smallest unit worth handing to another thread,
# and of the smallest worth handing out for balance alone.
_UNIT_WORK: Final = 2_000_000
_THREAD_WORK: Final = 100_000
_BALANCE_WORK: Final = 250_000
# The same for products with one row, which read more than they compute.
_VECTOR_WORK: Final = 25_000
# Chains of a row times columns, by the width of vectors: each waits four cycles for itself.
_CHAINS: Final = {256: 4, 512: 2}
# Units a thread from which no care is needed for threads to end together.
_MANY: Final = 16
# Bytes of a matrix from which its rows are added to sums in memory, not in registers.
_VECTOR_BYTES: Final = 200_000
# Columns of a vector times a matrix that are worth a run of memory, and bytes of their sums that
# fit the first cache.
_ROW_RUN: Final = 256
_ROW_SUM_BYTES: Final = 16 << 10


def round_up(number: int, unit: int) -> int:
    """Least multiple of `unit` that is not below `number`."""
    return -(-number // unit) * unit


def tile_of(product: Product, element: Element) -> tuple[int, int]:
    """Rows and vectors of the register tile: as many accumulators as registers allow."""
    n_vectors = -(-product.n // element.lanes)
    by_vectors, by_rows = TILES[element.vector_bits]
    rows, vectors = by_vectors.get(n_vectors, by_vectors[0])
    rows = _height(product.m, rows, max(rows, *by_rows))
    if rows in by_rows:
        vectors = min(by_rows[rows], n_vectors)
    if element.accumulated == "i64":
        rows, vectors = min(rows, 4), min(vectors, 2)  # a 64-bit multiply takes several registers
    return rows, vectors


def _height(m: int, rows: int, tallest: int) -> int:
    """Rows of a tile for m rows where they would be `rows` for very many: few that are computed
    twice or for nothing, and from some tiles on few heights, each of which is a kernel."""
    if m >= _MANY_TILES * rows:
        return rows
    heights = (
        range(rows, rows - 2, -1) if m >= _SOME_TILES * rows else range(tallest, rows // 2, -1)
    )
    fitting = [each for each in heights if 0 < each <= m]
    # Half a row stands for a tile's beginning.
    return min(fitting, key=lambda each: -(-m // each) * (2 * each + 1), default=m)


def edge_vectors_of(n: int, vectors: int, lanes: int) -> int:
    """Vectors of the last tile of a row; a narrower tile is worth its text in short rows only."""
    edge = n % (vectors * lanes)
    if not edge or n > _LONG_ROW * vectors * lanes:
        return vectors
    return -(-edge // lanes)


def _is_sparse(product: Product, size: int, rows: int) -> bool:
    """Whether rows of a tile of A lie far apart along k: each step wastes a line of the cache."""
    column = product.a.column
    return column != size and product.m > rows and abs(column) >= _SPARSE_BYTES


def pack_kinds(product: Product, element: Element, rows: int) -> tuple[str, str]:
    """How A and B are to be packed; "" for an operand read in place."""
    size = element.n_bytes
    a, b = product.a, product.b
    pack_a = ""
    if element.is_narrow or (_is_sparse(product, size, rows) and product.n > _FEW_COLUMNS):
        pack_a = "rows" if a.column == size else "columns" if a.row == size else "strided"
    if b.column == size or product.n == 1:
        b_bytes = product.k * product.n * size
        big = b_bytes > _IN_PLACE_BYTES[element.vector_bits] and product.m > _REUSED_ROWS
        pack_b = "rows" if element.is_narrow or big else ""
        if product.n == 1 and element.is_narrow:
            pack_b = "strided"
    else:
        pack_b = "columns" if b.row == size else "strided"
    return pack_a, pack_b


class Grid(NamedTuple):
    """Sizes of blocks of k, rows and columns, and how many units a chunk has.

    rows_first    the units of the same rows follow each other, not those of the same columns
    packs_own     each unit packs its columns of B for itself, where they are to be packed
    """

    k_block: int
    row_block: int
    column_block: int
    n_row_blocks: int
    n_column_blocks: int
    n_units: int
    chunk_units: int
    rows_first: bool
    packs_own: bool


def grid_of(
    product: Product,
    element: Element,
    n_threads: int,
    tile: tuple[int, int],
    packs: tuple[str, str],
) -> Grid:
    """Units of similar work, enough of them for the threads, not too many for their cost."""
    rows, width = tile[0], tile[1] * element.lanes
    m, n, k = product.m, product.n, max(1, product.k)
    n_entries = prod(product.sizes)
    cached = min(_CACHED_BYTES, second_cache_bytes() // 2) // element.n_packed_bytes
    k_block = k
    deepest = min(max(_K_BLOCK, cached // width), _DEEP_K_BLOCK)
    if not packs[0] and _is_sparse(product, element.n_bytes, rows):
        deepest = SUM_BLOCK
    if k > deepest + deepest // 4:
        k_block = round_up(-(-k // -(-k // deepest)), SUM_BLOCK)
    cached = cached // k_block // width * width
    n_column_blocks = -(-n // min(max(cached, width), round_up(n, width)))
    is_cached = k_block == k and n_column_blocks == 1  # a thread's cache holds all of B
    work = m * n * k
    total = work * n_entries
    least = 1  # units that every thread has some of
    if n_threads > 1:
        least = max(
            min(total // _BALANCE_WORK, 4 * n_threads), min(total // _THREAD_WORK, n_threads)
        )
    wanted = max(1, -(-max(least, total // _UNIT_WORK) // n_entries))
    tall, wide = -(-m // rows), -(-n // width)
    if wanted < n_column_blocks and work <= _BALANCE_WORK:
        n_column_blocks = wanted  # a cheap product is one unit, whatever the cache would like
    n_row_blocks = max(1, min(tall, -(-wanted // n_column_blocks)))
    alone = max(n_column_blocks, min(wide, -(-least // n_entries)))
    has_own = k_block == k and m <= _OWN_ROWS and _is_even(wide, alone, n_entries, n_threads)
    tallest = m // _ROWS_WORTH_PACKING * n_entries
    packs_own = True
    if packs[1] and is_cached and n_threads > 1 and tallest >= 2 * n_threads > n_entries:
        n_row_blocks = wanted = min(n_row_blocks, -(-2 * n_threads // n_entries))
    elif packs[1] and (m <= _SHARED_ROWS or has_own):
        # Units that have all rows pack their columns of B for themselves, where they are hot.
        n_row_blocks, wanted = 1, -(-least // n_entries)
    else:
        packs_own = n_row_blocks == 1
    if n_row_blocks * n_column_blocks < wanted:
        n_column_blocks = min(wide, -(-wanted // n_row_blocks))
    if n_row_blocks >= n_column_blocks:
        n_row_blocks = _evened(tall, n_row_blocks, n_column_blocks * n_entries, n_threads)
    else:
        n_column_blocks = _evened(wide, n_column_blocks, n_row_blocks * n_entries, n_threads)
    column_block = -(-wide // n_column_blocks) * width
    row_block = -(-tall // n_row_blocks) * rows
    n_column_blocks, n_row_blocks = -(-n // column_block), -(-m // row_block)
    chunk = n_units = n_entries * n_row_blocks * n_column_blocks
    if n_threads > 1 and total > 2 * _THREAD_WORK:
        chunk = max(1, min(n_units // (4 * n_threads), _UNIT_WORK * n_units // total))
    return Grid(
        k_block, row_block, column_block, n_row_blocks, n_column_blocks, n_units, chunk,
        is_cached, packs_own or n_row_blocks == 1,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _evened(n_tiles: int, n_blocks: int, times: int, n_threads: int) -> int:
    """Blocks to cut `n_tiles` into, `times` over: `n_blocks`, or up to twice as many where that
    lets the threads, who take them one by one, end sooner."""
    if n_threads == 1 or n_blocks * times < n_threads or n_blocks * times > _MANY * n_threads:
        return n_blocks
    ends: dict[int, int] = {}
    for count in range(n_blocks, min(n_tiles, 2 * n_blocks) + 1):
        block = -(-n_tiles // count)
        if block not in ends:
            ends[block] = _end(n_tiles, block, times, n_threads)
    soonest = min(ends.values())
    # A larger block costs less: the largest that ends within 2 % of the soonest.
    block = max(each for each, end in ends.items() if 50 * end <= 51 * soonest)
    return -(-n_tiles // block)


def _is_even(n_tiles: int, n_blocks: int, times: int, n_threads: int) -> bool:
    """Whether `n_tiles` cut into at least so many blocks keep all threads busy to the end."""
    block = -(-n_tiles // _evened(n_tiles, n_blocks, times, n_threads))
    end = _end(n_tiles, block, times, n_threads)
    return end * n_threads * _UNEVEN <= n_tiles * times * (_UNEVEN + 1)


def _end(n_tiles: int, block: int, times: int, n_threads: int) -> int:
    """Tiles of the thread that ends last, where whoever has least takes the next block."""
    full, rest = divmod(n_tiles, block)
    if not rest or times == 1:
        rounds, over = divmod(full * times, n_threads)
        return rounds * block + (block if over else rest)
    loads = [0] * n_threads
    for each in ([block] * full + [rest]) * times:
        loads[loads.index(min(loads))] += each
    return max(loads)


class VectorGrid(NamedTuple):
    """Kernel and chains of a vector times a matrix, blocks of columns, units."""

    kind: str
    groups: int
    blocks: int
    column_block: int
    n_column_blocks: int
    n_units: int
    chunk_units: int


def is_vector_product(product: Product, element: Element) -> bool:
    """A is one row and B is read where it lies; short rows of B are left to the tiles, which keep
    their sums in registers."""
    if product.m != 1:
        return False
    size = element.n_bytes
    b_bytes = product.k * product.n * size
    return product.b.row == size or (product.b.column == size and b_bytes > _VECTOR_BYTES)


def vector_grid_of(product: Product, element: Element, n_threads: int) -> VectorGrid:
    """Blocks of columns that are long runs of memory, or whole sets of chains."""
    n, k = product.n, max(1, product.k)
    n_entries = prod(product.sizes)
    total = n * k * n_entries
    wanted = min(total // _VECTOR_WORK, 4 * n_threads) if n_threads > 1 else 1
    wanted = max(1, -(-wanted // n_entries))
    groups, blocks = 1, 1
    if product.b.column == element.n_bytes:
        kind = "rows"
        # Long runs of memory are worth more than balance.
        column_block = max(_ROW_RUN, round_up(-(-n // min(wanted, n_threads)), 64))
        column_block = min(column_block, _ROW_SUM_BYTES // element.n_packed_bytes)
    else:
        kind = "few_columns" if n < element.lanes else "columns"
        groups, blocks = _chains(n, k, product.b.column, element)
        width = groups * element.lanes
        column_block = round_up(max(-(-n // wanted), 2 * width), width)
        column_block = round_up(-(-n // max(1, n // column_block)), width)
        while 0 < n % column_block < min(width, n):
            column_block += width  # the last block has a whole set of columns too
    column_block = min(column_block, n)
    n_blocks = -(-n // column_block)
    chunk = n_units = n_entries * n_blocks
    if n_threads > 1 and total > 2 * _VECTOR_WORK:
        chunk = max(1, min(n_units // (2 * n_threads), _UNIT_WORK * n_units // total))
    return VectorGrid(kind, groups, blocks, column_block, n_blocks, n_units, chunk)


def _chains(n: int, k: int, stride: int, element: Element) -> tuple[int, int]:
    """Groups of columns and blocks of k whose chains run at the same time.

    Columns a power of two apart fight for the same lines of the first cache, so later blocks of
    the same columns are better there; else groups of columns, which need no whole blocks.
    """
    chains = _CHAINS[element.vector_bits]
    while chains > 1 and n < chains * element.lanes:
        chains //= 2
    if k >= 2 * SUM_BLOCK and (stride % 1024 == 0 or chains == 1):
        blocks = min(max(2, chains), k // SUM_BLOCK)
        return max(1, chains // blocks), blocks
    return chains, 1
