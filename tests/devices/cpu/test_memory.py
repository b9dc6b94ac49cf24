"""The allocator: alignment, slack, reuse, counting, failure."""

from __future__ import annotations

import ctypes
import gc
import itertools
import signal
import threading
from pathlib import Path

import pytest

from flambeau.devices.cpu import memory
from tests.devices.cpu.native_support import in_new_process

SIZES = [
    0, 1, 63, 64, 65, 511, 512, 513, 4096, 16384, 16385, 65536, 65537, 100_000,
    (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20, (4 << 20) + 1, 40_000_000,
]  # fmt: skip


@pytest.mark.parametrize("n_bytes", SIZES)
def test_aligned_writable_and_readable_past_the_end(n_bytes: int) -> None:
    blocks = [memory.allocate(n_bytes) for _ in range(3)]
    for block in blocks:
        assert block.n_bytes == n_bytes
        assert block.address % memory.ALIGNMENT == 0
        ctypes.memset(block.address, 0x5A, n_bytes)
        assert len(ctypes.string_at(block.address, n_bytes + memory.SLACK_BYTES)) >= n_bytes
    for block in blocks:
        assert ctypes.string_at(block.address, n_bytes) == b"\x5a" * n_bytes


def test_the_slack_of_the_last_block_stays_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading there may work by chance, so look at what is returned to the system."""
    returned: list[tuple[int, int]] = []
    real = memory._munmap

    def munmap(address: int, n_bytes: int) -> int:
        returned.append((address, address + n_bytes))
        return int(real(address, n_bytes))

    monkeypatch.setattr(memory, "_munmap", munmap)
    memory.release_cached()
    for _ in range(3):
        returned.clear()
        block = memory.allocate(16 << 20)
        low, high = block.address, block.address + block.n_bytes + memory.SLACK_BYTES
        assert all(end <= low or start >= high for start, end in returned)
        assert any(start > low for start, end in returned) or not returned
        del block
        memory.release_cached()
    monkeypatch.setitem(memory._slabs, False, iter(()))
    returned.clear()
    block = memory.allocate(1 << 20)
    end_of_region = block.address + memory._REGION_BYTES
    assert all(not start < end_of_region + 512 < end for start, end in returned)


def test_blocks_do_not_overlap() -> None:
    blocks = [memory.allocate(size) for size in SIZES for _ in range(5)]
    ranges = sorted((block.address, block.n_bytes) for block in blocks)
    for (address, n_bytes), (following, _) in itertools.pairwise(ranges):
        assert address + max(n_bytes, 1) <= following


@pytest.mark.parametrize("n_bytes", SIZES)
def test_what_is_freed_is_used_again(n_bytes: int) -> None:
    address = memory.allocate(n_bytes).address
    mapped = memory.STATS.mapped_bytes
    assert memory.allocate(n_bytes).address == address
    assert memory.STATS.mapped_bytes == mapped


def test_a_slightly_larger_free_block_serves() -> None:
    memory.release_cached()
    address = memory.allocate(33 << 20).address
    assert memory.allocate(31 << 20).address == address


def test_counts_bytes_asked_for() -> None:
    gc.collect()
    stats = memory.STATS
    stats.reset_peak()
    start, allocations = stats.current_bytes, stats.allocations
    assert stats.peak_bytes == start
    first = memory.allocate(1000)
    second = memory.allocate(5_000_000)
    assert stats.current_bytes == start + 5_001_000
    del second
    assert stats.current_bytes == start + 1000
    assert stats.peak_bytes == start + 5_001_000
    del first
    assert stats.current_bytes == start
    assert stats.allocations == allocations + 2
    stats.reset_peak()
    assert stats.peak_bytes == start


def test_more_than_the_machine_has_fails_at_once() -> None:
    current, mapped = memory.STATS.current_bytes, memory.STATS.mapped_bytes
    with pytest.raises(memory.OutOfMemory) as caught:
        memory.allocate(2**60)
    assert caught.value.n_bytes == 2**60
    assert isinstance(caught.value, MemoryError)
    assert (memory.STATS.current_bytes, memory.STATS.mapped_bytes) == (current, mapped)


def test_when_a_mapping_fails_the_kept_blocks_are_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del [memory.allocate(50 << 20)][0]
    assert memory.STATS.cached_bytes >= 50 << 20
    real, refused = memory._mmap, []

    def fails_while_something_is_kept(*arguments: object) -> object:
        if memory.STATS.cached_bytes:
            refused.append(arguments)
            return memory._MAP_FAILED
        return real(*arguments)

    monkeypatch.setattr(memory, "_mmap", fails_while_something_is_kept)
    block = memory.allocate(200 << 20)
    assert refused
    assert memory.STATS.cached_bytes == 0
    ctypes.memset(block.address, 1, 100)
    monkeypatch.setattr(memory, "_mmap", lambda *_: memory._MAP_FAILED)
    with pytest.raises(memory.OutOfMemory):
        memory.allocate(400 << 20)


def test_kept_blocks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.release_cached()
    monkeypatch.setattr(memory, "cache_limit", lambda: 64 << 20)
    mapped = memory.STATS.mapped_bytes
    blocks = [memory.allocate(size << 20) for size in range(2, 40)]
    del blocks
    assert memory.STATS.cached_bytes <= 64 << 20
    assert memory.STATS.mapped_bytes - mapped == memory.STATS.cached_bytes
    memory.release_cached()
    assert memory.STATS.mapped_bytes == mapped


def test_capacities_hold_and_waste_little() -> None:
    for n_bytes in [*range(5000), *range(5000, 1 << 27, 99_991)]:
        capacity = memory._capacity_of(n_bytes)
        assert capacity >= n_bytes
        assert capacity % memory.ALIGNMENT == 0
        assert memory._capacity_of(capacity) == capacity
        if n_bytes > 32 << 20:
            assert capacity - n_bytes <= n_bytes / 8 + 1
        elif n_bytes > 1 << 20:
            assert capacity - n_bytes < 2 << 20
        elif n_bytes > 512:
            assert capacity - n_bytes <= n_bytes / 4


def test_threads_never_get_the_same_block() -> None:
    wrong = []

    def work(mark: int) -> None:
        for turn in range(3000):
            block = memory.allocate(64 if turn % 3 else 2_000_000)
            ctypes.c_int64.from_address(block.address).value = mark
            other = memory.allocate(64)
            ctypes.c_int64.from_address(other.address).value = mark
            if ctypes.c_int64.from_address(block.address).value != mark:
                wrong.append(mark)

    current = memory.STATS.current_bytes
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert memory.STATS.current_bytes == current


def test_a_signal_handler_may_allocate_at_any_moment() -> None:
    kept: list[memory.Block] = []
    old = signal.signal(signal.SIGALRM, lambda *_: kept.append(memory.allocate(64)))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        blocks = [memory.allocate(64) for _ in range(100_000)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert kept
    assert len({block.address for block in blocks + kept}) == len(blocks) + len(kept)


def test_blocks_alive_at_exit_are_silent() -> None:
    in_new_process(
        "from flambeau.devices.cpu import memory\n"
        "class Cycle: pass\n"
        "cycle = Cycle(); cycle.me = cycle; cycle.block = memory.allocate(100_000_000)\n"
        "blocks = [memory.allocate(n) for n in (0, 100, 10 ** 5, 10 ** 7)]\n"
        "import builtins; builtins.keep = blocks\n"
    )


def test_large_blocks_ask_for_huge_pages() -> None:
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not switch.exists() or "[never]" in switch.read_text():
        pytest.skip("this kernel gives no huge pages")
    block = memory.allocate(8 << 20)
    assert block.address % (2 << 20) == 0
    ctypes.memset(block.address, 1, 8 << 20)
    flags = ""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and ":" not in head:
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low <= block.address < high
        elif inside and head == "VmFlags:":
            flags = line
    assert " hg" in flags
