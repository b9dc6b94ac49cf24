"""Caching allocator: 64-byte aligned blocks that are kept and reused.

Keeps     512 readable bytes behind every block (kernels load whole vectors past the end, and
          drop what they loaded); freeing is a list append, safe in a signal handler, in the
          collector and at exit; no lock: each shared step is one operation of a built-in type.
Touches   libc's mmap, munmap and madvise; /proc/meminfo.
Not here  the arena of a plan (engine/plan.py), torch's error text (the engine writes it).

Three ranges of sizes. Small blocks (to 16 KB) are cut from 64 KB slabs, medium ones (to 1 MB)
from 2 MB slabs, both taken from 64 MB regions; a slab belongs to one size class for good. Large
blocks are mappings of their own. Regions and large mappings are aligned to 2 MB and ask for huge
pages: the first write to a fresh 4 KB page costs more than the write itself. Freed large blocks
are kept up to a quarter of the machine's memory; the class unused for longest goes first."""

from __future__ import annotations

import ctypes
import itertools
from array import array
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from flambeau.base.counters import Counter, Counters

if TYPE_CHECKING:
    Words = array[int]

ALIGNMENT: Final = 64
SLACK_BYTES: Final = 512
_HUGE_PAGE: Final = 2 << 20
_GUARD_BYTES: Final = 4096  # holds the slack of the last block before it
_REGION_BYTES: Final = 64 << 20
_SMALL_SLAB: Final = 64 << 10
_SMALL_LIMIT: Final = 16 << 10
_MEDIUM_SLAB: Final = _HUGE_PAGE
_LARGE_LIMIT: Final = 1 << 20
_TABLE_LIMIT: Final = 64 << 10

_PROT_READ_WRITE: Final = 0x3
_MAP_PRIVATE_ANONYMOUS: Final = 0x22
_MADV_HUGEPAGE: Final = 14
_MAP_FAILED: Final = ctypes.c_void_p(-1).value

_libc: Final = ctypes.CDLL(None, use_errno=True)
_mmap: Final = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_munmap: Final = _libc.munmap
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_madvise: Final = _libc.madvise
_madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class OutOfMemory(MemoryError):  # noqa: N818 (users see torch's RuntimeError instead)
    """The machine cannot hold another `n_bytes`."""

    def __init__(self, n_bytes: int) -> None:
        super().__init__(f"cannot allocate {n_bytes} bytes")
        self.n_bytes = n_bytes


class Statistics(Counters):
    """Bytes asked for and not yet given back. Exact where there is a GIL: no thread switch and no
    collection can come between reading and writing one of the words.

    cached_bytes   in freed large blocks
    mapped_bytes   asked of the operating system and not returned
    """

    __slots__ = ()

    allocations = Counter()
    current_bytes = Counter()
    peak_bytes = Counter()
    cached_bytes = Counter()
    mapped_bytes = Counter()

    def reset_peak(self) -> None:
        """Let the peak start again from what is in use now."""
        self.peak_bytes = self.current_bytes


STATS: Final = Statistics()
_COUNTS: Final = STATS.words
_ALLOCATIONS, _CURRENT, _PEAK, _CACHED, _MAPPED = range(5)


class SizeClass:
    """Free blocks of one capacity."""

    __slots__ = ("capacity", "free", "last_freed")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.free: list[int] = []
        self.last_freed = 0


class Block:
    """Memory handed out; gives itself back when nobody refers to it any more.

    No __init__: `allocate` sets the slots, which takes two thirds of the time of a call."""

    __slots__ = ("_free", "address", "n_bytes")

    address: int
    n_bytes: int
    _free: list[int]

    # The default argument outlives the module's globals, which go first at interpreter exit.
    def __del__(self, counts: Words = _COUNTS, current: int = _CURRENT) -> None:
        try:
            self._free.append(self.address)
            counts[current] -= self.n_bytes
        except AttributeError:
            pass  # an exception from a signal handler came before it was given memory


class LargeBlock(Block):
    """A mapping of its own; goes back to the operating system when too much is kept."""

    __slots__ = ("_class",)

    _class: SizeClass

    def __del__(self, counts: Words = _COUNTS, current: int = _CURRENT) -> None:
        try:
            size_class = self._class
            counts[_CACHED] += size_class.capacity
            self._free.append(self.address)
            counts[current] -= self.n_bytes
            size_class.last_freed = next(_clock)
            limit = cache_limit()
            if counts[_CACHED] > limit:
                release_cached(limit - limit // 8)
        except (AttributeError, NameError, TypeError):
            pass  # as above; or at interpreter exit, when modules have lost their contents


def allocate(n_bytes: int) -> Block:
    """A block of at least `n_bytes`, contents undefined; OutOfMemory if there is none."""
    if n_bytes <= _TABLE_LIMIT:
        free = _table[n_bytes + 63 >> 6]
    elif n_bytes <= _LARGE_LIMIT:
        free = _class_of(n_bytes).free
    else:
        return _allocate_large(n_bytes)
    block = Block()
    try:
        address = free.pop()
    except IndexError:
        address = _cut_slab(_class_of(n_bytes))
    block.address = address
    block.n_bytes = n_bytes
    block._free = free
    _count(n_bytes)
    return block


def _count(n_bytes: int) -> None:
    counts = _COUNTS
    counts[_ALLOCATIONS] += 1
    counts[_CURRENT] = current = counts[_CURRENT] + n_bytes
    if current > counts[_PEAK]:
        counts[_PEAK] = current


def free_blocks(n_bytes: int) -> list[int] | None:
    """Addresses of free blocks for `n_bytes`, the next one last; None for large ones, which more
    belongs to than a list."""
    return _class_of(n_bytes).free if n_bytes <= _LARGE_LIMIT else None


def release_cached(keep_bytes: int = 0) -> None:
    """Give freed large blocks back to the operating system until `keep_bytes` are kept."""
    for size_class in sorted(_classes.copy().values(), key=lambda one: one.last_freed):
        while _COUNTS[_CACHED] > keep_bytes:
            try:
                address = size_class.free.pop(0) if size_class.capacity > _LARGE_LIMIT else None
            except IndexError:
                break
            if address is None:
                break
            _COUNTS[_CACHED] -= size_class.capacity
            _COUNTS[_MAPPED] -= size_class.capacity
            _munmap(address, size_class.capacity + _GUARD_BYTES)


@cache
def machine_bytes() -> int:
    """Memory and swap of the machine: more than this can never be had."""
    return sum(_meminfo().get(name, 0) for name in ("MemTotal", "SwapTotal")) or 1 << 62


@cache
def cache_limit() -> int:
    """Bytes in freed large blocks that are kept."""
    return max(256 << 20, _meminfo().get("MemTotal", 0) // 4)


def _meminfo() -> dict[str, int]:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = [line.split() for line in lines]
    except OSError:
        return {}
    return {field[0].rstrip(":"): int(field[1]) * 1024 for field in fields if len(field) > 1}


def _capacity_of(n_bytes: int) -> int:
    """Size of the class that holds `n_bytes`: 64-byte steps to 512 bytes, then a fixed number of
    steps a doubling, so that at most a fifth of a block (an eighth of a large one) is unused."""
    if n_bytes <= 512:
        return max(ALIGNMENT, n_bytes + 63 & -64)
    large = n_bytes > _LARGE_LIMIT
    step = 1 << (n_bytes - 1).bit_length() - (4 if large else 3)
    if large:
        step = max(step, _HUGE_PAGE)
    return n_bytes + step - 1 & -step


def _class_of(n_bytes: int) -> SizeClass:
    capacity = _capacity_of(n_bytes)
    try:
        return _classes[capacity]
    except KeyError:
        return _classes.setdefault(capacity, SizeClass(capacity))


def _allocate_large(n_bytes: int) -> Block:
    if n_bytes > machine_bytes():
        raise OutOfMemory(n_bytes)
    size_class = _class_of(n_bytes)
    address = _reuse(size_class)
    if address is None:
        # A freed block of the next two classes beats a fresh mapping, which costs page faults.
        larger = _class_of(size_class.capacity + 1)
        for candidate in (larger, _class_of(larger.capacity + 1)):
            address = _reuse(candidate)
            if address is not None:
                size_class = candidate
                break
    if address is None:
        address = _map(size_class.capacity)
    if address is None:
        raise OutOfMemory(n_bytes)
    block = LargeBlock()
    block.address = address
    block.n_bytes = n_bytes
    block._free = size_class.free
    block._class = size_class
    _count(n_bytes)
    return block


def _reuse(size_class: SizeClass) -> int | None:
    try:
        address = size_class.free.pop()
    except IndexError:
        return None
    _COUNTS[_CACHED] -= size_class.capacity
    return address


def _cut_slab(size_class: SizeClass) -> int:
    """Give the class a slab more and take its first block."""
    small = size_class.capacity <= _SMALL_LIMIT
    n_bytes = _SMALL_SLAB if small else _MEDIUM_SLAB
    try:
        start = next(_slabs[small])
    except StopIteration:
        region = _map(_REGION_BYTES)
        if region is None:
            raise OutOfMemory(size_class.capacity) from None
        # Two threads may each bring a region here: the slabs of one are lost, never shared.
        slabs = iter(range(region, region + _REGION_BYTES, n_bytes))
        start = next(slabs)
        _slabs[small] = slabs
    capacity = size_class.capacity
    last = start + n_bytes - capacity
    # Highest first in the list: `pop` hands out ascending addresses.
    size_class.free[:0] = range(start + (last - start) // capacity * capacity, start, -capacity)
    return start


def _map(n_bytes: int) -> int | None:
    """Fresh zeroed mapping aligned to a huge page, a guard page of slack behind it."""
    n_mapped = n_bytes + _GUARD_BYTES + _HUGE_PAGE
    start: int | None = _mmap(None, n_mapped, _PROT_READ_WRITE, _MAP_PRIVATE_ANONYMOUS, -1, 0)
    if start is None or start == _MAP_FAILED:
        release_cached()
        start = _mmap(None, n_mapped, _PROT_READ_WRITE, _MAP_PRIVATE_ANONYMOUS, -1, 0)
        if start is None or start == _MAP_FAILED:
            return None
    aligned = start + _HUGE_PAGE - 1 & -_HUGE_PAGE
    end = aligned + n_bytes + _GUARD_BYTES
    if aligned > start:
        _munmap(start, aligned - start)
    if start + n_mapped > end:
        _munmap(end, start + n_mapped - end)
    _madvise(aligned, n_bytes, _MADV_HUGEPAGE)
    _COUNTS[_MAPPED] += n_bytes
    return aligned


_clock: Final = itertools.count(1)
_classes: Final[dict[int, SizeClass]] = {}
_slabs: Final[dict[bool, Iterator[int]]] = {True: iter(()), False: iter(())}
# Free list of every size up to _TABLE_LIMIT, by its number of 64-byte lines.
_table: Final[list[list[int]]] = []
while len(_table) * 64 <= _TABLE_LIMIT:
    _one = _class_of(len(_table) * 64)
    _table.extend([_one.free] * (_one.capacity // 64 + 1 - len(_table)))
