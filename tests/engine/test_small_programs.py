"""Small programs that break a naive lazy engine, each with the answer an eager one gives."""

from __future__ import annotations

import threading

import pytest

import flambeau as torch
import flambeau.debug


def test_two_views_that_meet_in_one_iteration_only() -> None:
    for i, j in ((0, 1), (1, 1), (2, 0)):
        x = torch.arange(3.0)
        x[i].add_(1)
        y = x[j] * 2
        expected = [0.0, 1.0, 2.0]
        expected[i] += 1
        assert y.item() == expected[j] * 2


def test_equal_relative_sizes_that_collapse_differently() -> None:
    for shape in ((6, 20), (10, 12)):
        a = torch.arange(120.0).reshape(shape) * 1
        b = a.t().reshape(2, 3, 4, 5) + 0
        assert b.flatten().tolist() == [
            float(r * shape[1] + c) for c in range(shape[1]) for r in range(shape[0])
        ]


def test_reads_before_a_write_keep_the_old_value() -> None:
    x = torch.arange(4.0)
    index = torch.tensor([3, 0])
    y = x[index]
    x.mul_(2)
    assert y.tolist() == [3.0, 0.0]
    x = torch.arange(4.0)
    y = x.flip(0)
    x.add_(1)
    assert y.tolist() == [3.0, 2.0, 1.0, 0.0]
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_write_from_another_thread_comes_after() -> None:
    x = torch.arange(4.0)
    y = x * 2
    writer = threading.Thread(target=x.zero_)
    writer.start()
    writer.join()
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert x.tolist() == [0.0] * 4


def test_writes_through_data_are_not_counted_and_through_detach_are() -> None:
    w = torch.ones(3, requires_grad=True)
    y = (w * w).exp()
    w.data.clamp_(-0.1, 0.1)
    y.sum().backward()
    w = torch.ones(3, requires_grad=True)
    y = (w * w).exp()
    w.detach().clamp_(-0.1, 0.1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_lengths_never_seen_before() -> None:
    x = torch.arange(200.0)
    for i in range(1, 200, 7):
        assert x[:i].mean().item() == pytest.approx((i - 1) / 2)


def test_a_size_no_machine_holds_raises_at_its_line() -> None:
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator: can't allocate memory"):
        torch.empty(2**60)
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator: can't allocate memory"):
        torch.zeros(2**60)
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]


def test_reading_now_and_then_changes_nothing() -> None:
    x = torch.ones(3)
    for i in range(40):
        x = x * 1.01
        if i % 10 == 0:
            x.sum().item()
    assert x.tolist() == pytest.approx([1.01**40] * 3, rel=1e-5)


def test_stack_of_many_scalars() -> None:
    s = torch.arange(2000.0)
    assert torch.stack([s[k] for k in range(2000)]).tolist() == s.tolist()


def test_denormals_of_pending_work_stay() -> None:
    t = torch.tensor([1e-40])
    y = t * 1
    torch.set_flush_denormal(True)
    try:
        assert y.item() == pytest.approx(1e-40, rel=1e-3)
    finally:
        torch.set_flush_denormal(False)


# A handler may be called inside a collector's callback, where Python drops what it raises.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_the_middle_of_a_loop() -> None:
    import signal

    class Stop(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    x = torch.ones(64, 64)
    try:
        for delay in (0.001, 0.005, 0.02, 0.06):
            signal.setitimer(signal.ITIMER_REAL, delay)
            try:
                y = x
                for _ in range(100_000):
                    y = (y @ x).clamp(max=1.0) + 0.0
                    if _ % 50 == 0:
                        y.sum().item()
            except Stop:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert y.shape == (64, 64)
            assert y.max().item() == 1.0
            assert (x + 1).sum().item() == 2 * 64 * 64
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_reductions_over_nothing() -> None:
    assert torch.zeros(2, 0).sum().item() == 0.0
    assert torch.zeros(2, 0).sum(1).tolist() == [0.0, 0.0]
    assert torch.zeros(0, 4).sum(0).tolist() == [0.0] * 4
    assert torch.zeros(3, 0, 2).prod(1).tolist() == [[1.0, 1.0]] * 3
    assert torch.zeros(2, 0).any().item() is False
    assert torch.zeros(2, 0).all().item() is True


def test_a_number_where_a_tensor_is_needed() -> None:
    with pytest.raises(TypeError, match=r"argument 'input' \(position 1\) must be Tensor, not int"):
        torch.nn.functional.linear(3, torch.ones(2, 2))
    with pytest.raises(TypeError, match=r"must be Tensor, not float"):
        torch.softmax(1.5, 0)


@pytest.mark.parametrize("first", ["sum", "norm", "max", "softmax"])
def test_positions_beside_what_is_reduced_over_several_dims(first: str) -> None:
    """Values that depend on two positions do not join a loop that walks both as one."""
    x = torch.ones(3, 3)
    with flambeau.debug.fuse_new(True):
        total = getattr(torch, first)(x, **({"dim": 1} if first == "softmax" else {}))
        one = torch.eye(3)
        lower = torch.tril(x)
        places = x.sum((0, 1)) + torch.triu(x)
        assert one.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        assert lower.tolist() == [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
        assert places.tolist() == [[10.0, 10.0, 10.0], [9.0, 10.0, 10.0], [9.0, 9.0, 10.0]]
        assert total.numel() in (1, 9)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "mean"])
@pytest.mark.parametrize("shape", [(3, 4), (40, 33), (2, 3, 5)])
def test_positions_beside_what_is_reduced_flat(shape: tuple[int, ...], reduce: str) -> None:
    """Nor a loop that walks them as the one dimension of another view."""
    x = torch.ones(shape)
    x.tolist()
    with flambeau.debug.fuse_new(True):
        total, upper = getattr(x.view(-1), reduce)(), torch.triu(x)
        lower = torch.tril(x)
        values = (total.tolist(), upper.tolist(), lower.tolist())
    with flambeau.debug.fuse(False):
        expected = getattr(x.view(-1), reduce)().tolist(), torch.triu(x).tolist()
        assert values == (*expected, torch.tril(x).tolist())
