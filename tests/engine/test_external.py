"""Memory shared with Python outside: what is seen from both sides, and when."""

from __future__ import annotations

import gc
import mmap
import weakref

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("count", [5, 1 << 20])
def test_reads_see_what_was_there_when_they_were_recorded(count: int) -> None:
    """Small arrays are copied, large ones read at once: the answer is the same."""
    a = np.arange(count, dtype=np.float32)
    t = torch.from_numpy(a)
    y = t + 1
    a[:] = 5
    assert y[:3].tolist() == [1.0, 2.0, 3.0]
    assert (t + 1)[:3].tolist() == [6.0, 6.0, 6.0]


def test_writes_are_seen_from_both_sides() -> None:
    a = np.zeros(4, dtype=np.float32)
    t = torch.from_numpy(a)
    t.add_(2)
    assert a.tolist() == [2.0] * 4
    z = torch.ones(3)
    n = z.numpy()
    w = z * 2
    n[0] = 7
    assert w.tolist() == [2.0, 2.0, 2.0]
    assert z.tolist() == [7.0, 1.0, 1.0]
    z.mul_(3)
    assert n.tolist() == [21.0, 3.0, 3.0]
    z[1:] = 0
    assert n.tolist() == [21.0, 0.0, 0.0]


def test_arrays_that_overlap_are_ordered_by_address() -> None:
    a = np.arange(8, dtype=np.float64)
    left, right = torch.from_numpy(a[:5]), torch.from_numpy(a[1:6])
    left.add_(10)
    assert right.tolist() == [11.0, 12.0, 13.0, 14.0, 5.0]
    y = right * 2
    left.zero_()
    assert y.tolist() == [22.0, 24.0, 26.0, 28.0, 10.0]
    assert right.tolist() == [0.0, 0.0, 0.0, 0.0, 5.0]


def test_strided_arrays() -> None:
    a = np.arange(10, dtype=np.int64)
    b = torch.from_numpy(a[1::3])
    a[4] = -1
    assert b.tolist() == [1, -1, 7]
    assert (b + 1).tolist() == [2, 0, 8]
    b.mul_(2)
    assert a.tolist() == [0, 2, 2, 3, -2, 5, 6, 14, 8, 9]


def test_memory_that_ends_with_its_page() -> None:
    """Vectors read past the end; a mapping's end must not be a crash."""
    with mmap.mmap(-1, 4096) as mapping:
        a = np.frombuffer(mapping, dtype=np.float32)
        for start in (0, 1000, 1017, 1023):
            t = torch.from_numpy(a[start:])
            t.add_(1)
            assert (t * 2).sum().item() > 0
            assert (t.reshape(1, -1) @ t).shape == (1,)
        assert a[1023] == 4.0
        del t, a


def test_an_array_kept_by_its_tensor_alone() -> None:
    t = torch.from_numpy(np.ones(4, dtype=np.float32))
    total = t + 1
    t.zero_()
    assert total.tolist() == [2.0] * 4
    assert t.tolist() == [0.0] * 4


def test_autograd_saves_the_tensor_not_the_copy() -> None:
    a = np.ones(3, dtype=np.float32)
    x = torch.from_numpy(a)
    w = torch.ones(3, requires_grad=True)
    y = (w * x).sum()
    a[:] = 4
    y.backward()
    assert w.grad.tolist() == [4.0, 4.0, 4.0]


def test_a_read_only_array_warns() -> None:
    a = np.ones(2)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(a)


def test_frombuffer() -> None:
    raw = bytearray(b"\x01\x02\x03\x04")
    t = torch.frombuffer(raw, dtype=torch.uint8)
    raw[0] = 9
    assert t.tolist() == [9, 2, 3, 4]
    t[3] = 7
    assert raw[3] == 7
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        torch.frombuffer(bytearray(5), dtype=torch.int32)


def test_a_waiting_record_does_not_keep_an_array() -> None:
    """Once its tensor and the graph have let go of an array, nothing that was recorded holds it."""
    w = torch.ones(3, requires_grad=True)
    a = np.ones(3, dtype=np.float32)
    seen = weakref.ref(a)
    x = torch.from_numpy(a)
    z = (w * x).sum()
    del a, x
    z.backward(retain_graph=True)
    gc.collect()
    assert seen() is not None  # the graph may be asked again
    z.backward()
    gc.collect()
    assert seen() is None
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_memory_of_ours_is_shared_no_longer_than_arrays_see_it() -> None:
    """An operator copies what an array can still write to, and nothing once the array is gone."""
    x = torch.ones(50) * 2
    array = x.numpy()
    first = x + 1
    assert x._storage.external is not None
    array[:] = 5
    assert first[0].item() == 3.0
    del array
    second = x + 1
    assert x._storage.external is None
    assert second[0].item() == 6.0
