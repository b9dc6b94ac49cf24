"""Views of one storage: writes through one, reads through another; every overlap, size, dtype."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import overlap_support as pairs
import pytest

import flambeau as torch
import flambeau.debug

RECORDED = Path(__file__).parents[1] / "recorded" / "overlaps.json"
# Past every grain and block: vectors, blocks of sums, blocks of maps, shares of threads.
SIZES = (0, 1, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 32767, 32768, 32769, (1 << 20) + 1)


@pytest.mark.parametrize("fused", [True, False])
def test_every_pair_of_views_reads_before_it_writes(fused: bool) -> None:
    """As if all were read before anything is written, or torch's refusal where torch refuses."""
    refused = set(json.loads(RECORDED.read_text())["refused"])
    start = [float(n + 1) for n in range(pairs.SIZE)]
    with flambeau.debug.fuse(fused):
        for number in range(pairs.N_PAIRS):
            operation, target, source = pairs.pair(number)
            found = pairs.outcome(torch, number)
            if number in refused:
                assert found.startswith("unsupported operation: some elements"), number
            else:
                assert found == str(pairs.expected(operation, start, target, source)), (
                    number, operation, target, source,
                )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_chains_of_writes_through_views(seed: int) -> None:
    """Many writes and reads through views of one storage, all pending, against lists."""
    choice = random.Random(seed)
    memory = [float(choice.randrange(8)) for _ in range(pairs.SIZE)]
    x = torch.tensor(memory)
    kept: list[tuple[Any, list[float]]] = []
    for _ in range(40):
        operation, target, source = pairs.pair(choice.randrange(10**9))
        view, other = x.as_strided(*target), x.as_strided(*source)
        if source[0] != target[0]:
            other = other.expand(target[0])
        if choice.random() < 0.4:
            read = pairs.positions(target)
            kept.append((view * 2, [memory[at] * 2 for at in read]))
        if operation in ("mul_", "addcmul_"):
            operation = "copy_"  # else numbers grow beyond what is exact
        try:
            pairs.apply(torch, operation, view, other)
        except RuntimeError:
            continue
        memory = pairs.expected(operation, memory, target, source)
        x.remainder_(64)
        memory = [value % 64 for value in memory]
    assert x.tolist() == memory
    for tensor, values in kept:
        assert tensor.flatten().tolist() == values


def test_shifts_and_turns_of_whole_rows() -> None:
    q = torch.arange(6.0).reshape(2, 3)
    q[0].copy_(q[1])
    assert q.tolist() == [[3.0, 4.0, 5.0]] * 2
    x = torch.arange(6.0)
    x[::2].add_(x[1::2])
    assert x.tolist() == [1.0, 1.0, 5.0, 3.0, 9.0, 5.0]
    x = torch.arange(9.0).reshape(3, 3)
    x[0] = x[:, 0]
    assert x.tolist() == [[0.0, 3.0, 6.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    x = torch.arange(9.0).reshape(3, 3)
    x[:] = x[0]
    assert x.tolist() == [[0.0, 1.0, 2.0]] * 3
    x = torch.arange(9.0).reshape(3, 3)
    torch.sum(x, 1, out=x[:, 1])
    assert x.tolist() == [[0.0, 3.0, 2.0], [3.0, 12.0, 5.0], [6.0, 21.0, 8.0]]
    x = torch.arange(4.0).reshape(2, 2)
    torch.mm(x, x, out=x)
    assert x.tolist() == [[2.0, 3.0], [6.0, 11.0]]
    big = torch.arange(200_000.0)
    big[:100_000].copy_(big[100_000:])
    big[1::2].copy_(big[::2])
    assert big[:4].tolist() == [100_000.0, 100_000.0, 100_002.0, 100_002.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x[1:].add_(x[:-1]),
        lambda x, i: x.scatter_(0, i, x),
        lambda x, i: x.scatter_add_(0, i, x),
        lambda x, i: x.index_add_(0, i, x),
        lambda x, i: x.index_copy_(0, i, x),
        lambda x, i: x.__setitem__(i, x),
        lambda x, i: torch.take(x, i, out=x),
        lambda x, i: torch.gather(x, 0, i, out=x),
        lambda x, i: torch.index_select(x, 0, i, out=x),
        lambda x, i: x.copy_(x[3]),
        lambda x, i: x.view(2, 3).mul_(x[2:5]),
    ],
)
def test_what_torch_refuses(write: Any) -> None:
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        write(x, torch.tensor([5, 4, 3, 2, 1, 0]))
    assert (x * 0).tolist() == [0.0] * 6


def test_numbers_read_from_what_is_written() -> None:
    x = torch.arange(6.0)
    x.masked_fill_(x > 3, x[1])
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 1.0, 1.0]
    x.fill_(x[3])
    assert x.tolist() == [3.0] * 6


def test_writes_into_expanded_memory_are_refused() -> None:
    x = torch.arange(3.0)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.expand(2, 3).add_(1)
    assert x.expand(2, 3).sum(0).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("strides", [(1, 2), (1, 3), (7, 1), (1, 19)])
def test_sums_over_first_dims_into_turned_memory(strides: tuple[int, int]) -> None:
    """The rows that are written do not lie one behind the other as those that are read do."""
    parts = torch.arange(24.0).reshape(4, 2, 3)
    for write in (
        lambda target: torch.sum(parts, 0, out=target),
        lambda target: torch.amax(parts + 24, 0, out=target),
        lambda target: target.copy_(parts.sum(0)),
        lambda target: target.sub_(parts.mean(0) * -4),
    ):
        target = torch.zeros(40).as_strided((2, 3), strides)
        expected = torch.zeros(2, 3)
        write(target)
        write(expected)
        assert target.tolist() == expected.tolist() != [[0.0] * 3] * 2


def switches() -> Iterator[None]:
    """Fused or not, numbers of threads, both widths: any two of the three in every combination."""
    for threads, fused in itertools.product((1, 2, 3, 7), (True, False)):
        bits = 256 if fused == (threads % 2 == 0) else 512
        with (
            flambeau.debug.fuse(fused),
            flambeau.debug.threads(threads),
            flambeau.debug.vector_bits(bits),
        ):
            yield


@pytest.mark.parametrize("name", [each for each in pairs.SHARED_WRITES if each != "random_"])
def test_writes_through_views_that_overlap_themselves(name: str) -> None:
    """The last element in row-major order wins, and what reads later reads memory."""
    choice = random.Random(name)
    for dtype in ("float32", "int16", "bfloat16", "bool", "complex64", "float64"):
        if dtype in ("bool", "complex64") and name not in ("copy_", "fill_", "masked_fill_"):
            continue
        view = pairs.shared_view(choice, 64)
        start = (torch.arange(64) % 7).to(getattr(torch, dtype))
        expected = pairs.written_in_order(torch, name, start.clone(), view)
        read = [expected[at] for at in pairs.positions(view)]
        for _ in switches():
            memory = start.clone()
            seen = memory.as_strided(*view)
            pairs.SHARED_WRITES[name](torch, seen)
            later = seen.reshape(-1) * 1
            assert later.tolist() == read, (name, dtype, view)
            assert memory.tolist() == expected, (name, dtype, view)


@pytest.mark.parametrize("seed", range(4))
def test_chains_of_writes_through_views_that_overlap_themselves(seed: int) -> None:
    """Pending writes through several such views, and what is read between them."""

    def outcome() -> list[list[float]]:
        choice = random.Random(seed)
        memory = (torch.arange(512) % 7).float()
        results = [memory]
        for _ in range(12):
            seen = memory.as_strided(*pairs.shared_view(choice, 512))
            pairs.SHARED_WRITES[choice.choice(list(pairs.SHARED_WRITES))](torch, seen)
            results += [seen + 1, (seen * seen).sum(-1)]
            memory.remainder_(64)
        return [each.reshape(-1).tolist() for each in results]

    expected = outcome()
    for _ in switches():
        assert outcome() == expected


def test_many_threads_write_through_a_view_that_overlaps_itself() -> None:
    def squared() -> Any:
        seen = torch.zeros(4096).fill_(2).as_strided((4030, 3), (1, 1))
        return seen.mul_(seen).sum()

    for threads in (2, 7):
        with flambeau.debug.threads(threads):
            assert {squared().item() for _ in range(300)} == {4.0 * 3 * 4030}


def test_windows_filled_by_index() -> None:
    """What is not selected is not written back over what is."""
    for _ in switches():
        x = torch.arange(10.0).reshape(2, 5)
        windows = x.unfold(1, 2, 1)
        windows.index_fill_(2, torch.tensor([0]), 2.0)
        assert (windows + 1).tolist() == [[[3.0, 3.0]] * 3 + [[3.0, last]] for last in (5.0, 10.0)]


def test_a_nan_or_zero_that_is_left_alone() -> None:
    """A zero of the other sign is another number, a NaN is the same as any."""
    nan = float("nan")
    for _ in switches():
        x = torch.tensor([nan, 0.0, nan, 2.0])
        x.unfold(0, 2, 1).masked_fill_(torch.tensor([[True, False]] * 2 + [[False, False]]), nan)
        assert str(x.tolist()) == "[nan, nan, nan, 2.0]"
        x = torch.tensor([0.0, 0.0, 1.0])
        x.unfold(0, 2, 1).masked_fill_(torch.tensor([[False, True], [False, False]]), -0.0)
        assert str(x.tolist()) == "[0.0, -0.0, 1.0]"


def test_gradients_of_writes_through_views_that_overlap_themselves() -> None:
    for _ in switches():
        x = torch.arange(6.0, requires_grad=True)
        whole = x * 1
        seen = whole.unfold(0, 2, 1)
        seen.masked_fill_(torch.tensor([True, False]), 0.0)
        (whole * whole).sum().backward()
        assert x.grad.tolist() == [0.0] * 5 + [10.0]


def test_other_dtypes_of_one_memory() -> None:
    """view(dtype) while work on the memory is pending, from both sides."""
    x = torch.arange(4, dtype=torch.int32)
    y = x.view(torch.float32)
    x.add_(0x3F800000)  # the bits of 1.0 and what follows it
    assert (y > 0.999).tolist() == [True] * 4
    y.mul_(2)
    assert x.tolist() == [0x40000000 + n for n in range(4)]
    halves = x.view(torch.int16)
    kept = x + 0
    halves[::2] = 7
    assert [value & 0xFFFF for value in x.tolist()] == [7] * 4
    assert kept.tolist() == [0x40000000 + n for n in range(4)]
    bytes_ = x.view(torch.uint8)
    bytes_.zero_()
    y[1] = 1.0
    assert x.tolist() == [0, 0x3F800000, 0, 0]
    wide = torch.arange(4, dtype=torch.int64)
    low = wide.view(torch.int32)[::2]
    low.copy_(wide.view(torch.int32)[1::2])
    assert wide.tolist() == [0] * 4


@pytest.mark.parametrize("size", SIZES)
def test_sizes_past_every_block(size: int) -> None:
    x = torch.arange(size, dtype=torch.int64)
    y = x * 2 + 1
    assert y.sum().item() == size * size
    x[1:].add_(0)
    whole = torch.stack([x, x * 3], 1)  # two columns, rows of 2
    assert whole.sum(0).tolist() == [size * (size - 1) // 2, 3 * (size * (size - 1) // 2)]
    back = torch.empty(size, 2, dtype=torch.int64).t()
    torch.add(whole.t(), 1, out=back)
    assert not back.is_contiguous() or size < 2
    if size:
        assert [back[0, -1].item(), back[1, 0].item()] == [size, 1]
        assert (back[0] == x + 1).all().item()
        halves = x.to(torch.float32)[::2]
        halves.neg_()
        assert halves[-1].item() == -((size - 1) // 2 * 2)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3), (1, 0)])
def test_nothing_at_all(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape)
    assert (x + 1).shape == shape
    x.add_(1).mul_(x)
    assert x.t().shape == shape[::-1] if len(shape) == 2 else True
    assert x.sum().item() == 0
    assert x.sum(0).tolist() == torch.zeros(shape[1:]).tolist()
    assert torch.cat([x, x], 0).shape == (shape[0] * 2, *shape[1:])
    assert x.reshape(-1).shape == (0,)
    assert (x @ torch.zeros(shape[-1], 2)).sum().item() == 0 if len(shape) > 1 else True
    with pytest.raises((RuntimeError, IndexError)):
        x.amax()
    assert torch.ones(2).add_(x.sum()).tolist() == [1.0, 1.0]


def test_no_dims() -> None:
    x = torch.tensor(2.0)
    y = x.expand(3)
    x.mul_(3)
    assert y.tolist() == [6.0] * 3
    x.view(1, 1).add_(1)
    assert (x.item(), y.sum().item()) == (7.0, 21.0)
    x.copy_(torch.ones(()))
    assert (y + x).tolist() == [2.0] * 3
    assert torch.arange(3.0).add_(x).tolist() == [1.0, 2.0, 3.0]


def test_mixed_dtypes_through_views() -> None:
    whole = torch.zeros(4, 6, dtype=torch.float64)
    for row, dtype in enumerate(("bool", "int16", "bfloat16", "float32")):
        whole[row, ::2] = torch.tensor([1, 0, 1]).to(getattr(torch, dtype))
    whole[:, 1::2].sub_(torch.tensor([1, 2, 3], dtype=torch.uint8))
    assert whole.tolist() == [[1.0, -1.0, 0.0, -2.0, 1.0, -3.0]] * 4
    small = torch.zeros(3, dtype=torch.int8)
    small.add_(torch.tensor([100, 100, 100], dtype=torch.int64)).add_(100)
    assert small.tolist() == [-56] * 3
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        small.add_(0.5)
    assert small.tolist() == [-56] * 3


def test_what_comes_of_an_overwritten_row_is_not_computed_again_from_it():
    """A later phase of a nest keeps the value: by then its operand's memory holds another."""
    found = []
    for enabled in (False, True):
        with flambeau.debug.fuse(enabled), flambeau.debug.fuse_new(True):
            x = torch.arange(33.0) / 33 + 0.3
            x.tolist()
            x.neg_()
            inverse = 1 / x
            total = x.exp().sum()
            found.append((inverse + total).tolist())
    assert found[0] == found[1]
