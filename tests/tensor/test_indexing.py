"""x[key] in loops: views cost no plans, writes are recorded, index values are checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.engine import run, stream
from flambeau.tensor import index_bounds


def planned(body: Any) -> int:
    before = run.STATS.segments_planned
    body()
    return run.STATS.segments_planned - before


def test_a_view_is_not_recorded() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    x.sum().item()
    before = len(stream.current().segment.records)
    assert x[1].data_ptr() == x.data_ptr() + 16
    views = [x[1], x[:, 2], x[1:], x[..., 0], x[None], x[-1, 1:3], x[1, 2]]
    assert len(stream.current().segment.records) == before
    assert all(view._base is x or view._base is x._base for view in views)


def test_a_thousand_places_make_two_plans_at_most() -> None:
    x = torch.arange(1000.0)

    def body() -> None:
        for k in range(1000):
            assert (x[k] + 1).item() == k + 1

    assert planned(body) <= 2


def test_writing_a_thousand_places_makes_few_plans() -> None:
    x = torch.zeros(1001)
    for k in range(1, 1001):
        x[k] = x[k - 1] * 0.5 + k
    expected = [0.0]
    for k in range(1, 1001):
        expected.append(expected[-1] * 0.5 + k)
    assert torch.allclose(x, torch.tensor(expected))


def test_same_and_other_place_in_one_form() -> None:
    x = torch.zeros(4, 2)
    seen = []
    for i, j in ((0, 0), (1, 2), (3, 3), (2, 1)):
        x[i].add_(1)
        y = x[j] * 2
        seen.append(y.tolist())
    assert seen == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0], [2.0, 2.0]]


def test_a_read_recorded_before_a_write_keeps_the_old_value() -> None:
    x = torch.arange(5.0)
    index = torch.tensor([0, 4])
    y = x[index]
    z = x.flip(0)
    x.mul_(2)
    x[0] = 7
    assert y.tolist() == [0.0, 4.0]
    assert z.tolist() == [4.0, 3.0, 2.0, 1.0, 0.0]
    assert x.tolist() == [7.0, 2.0, 4.0, 6.0, 8.0]


def test_index_values_are_read_once_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real = index_bounds._few
    monkeypatch.setattr(index_bounds, "_few", lambda index: reads.append(1) or real(index))
    table = torch.arange(50.0)
    index = torch.tensor([3, 1, 2])
    for _ in range(5):
        table[index]
    for begin in range(3):
        table[index[begin : begin + 1]]
    assert len(reads) == 1
    index[0] = 60
    with pytest.raises(IndexError, match="index 60 is out of bounds for dimension 0 with size 50"):
        table[index]
    index.data.fill_(2)
    assert table[index].tolist() == [2.0, 2.0, 2.0]
    index.data.fill_(99)
    with pytest.raises(IndexError, match="index 99 is out of bounds"):
        table[index]


def test_an_index_error_leaves_everything_usable() -> None:
    x = torch.arange(3.0)
    pending = x * 2
    for key in (5, (0, 0), torch.tensor([0, 9])):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 1.0
    assert pending.tolist() == [0.0, 2.0, 4.0]
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_a_write_counts_as_a_version_and_is_checked_in_backward() -> None:
    w = torch.ones(3, requires_grad=True)
    u = w * 2
    out = (u * u).sum()
    before = u._version
    u[0] = 5
    assert u._version == before + 1
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        out.backward()


def test_leaves_that_need_gradients_are_not_written() -> None:
    w = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        w[0] = 1
    with torch.no_grad():
        w[0] = 3
    assert w.tolist() == [3.0, 1.0, 1.0]


def test_large_masks_and_gathers() -> None:
    x = torch.arange(300_000)
    chosen = x[x % 3 == 1]
    assert chosen.shape == (100_000,)
    assert (chosen % 3 == 1).all()
    assert int(chosen[-1]) == 299_998
    back = torch.zeros(300_000, dtype=torch.int64)
    back[chosen] = chosen
    assert torch.equal(back, torch.where(x % 3 == 1, x, 0))


def test_a_view_assigned_to_where_it_lies_moves_nothing():
    """`x[i] += 1` writes the view and assigns it to its own place."""
    counts = torch.zeros(3, 3, dtype=torch.int32)
    with torch.debug.counts() as counted:
        for at in ((0, 1), (2, 2), (0, 1)):
            counts[at] += 1
    assert counted.records == 3
    assert counts.tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 1]]
    version = counts._version
    counts[1] = counts[1]
    assert counts._version == version + 1
    counts[1] = counts[0]
    assert counts[1].tolist() == [0, 2, 0]
    leaf = torch.ones(2, requires_grad=True)
    double = leaf * 1
    double[0] *= 3
    double.sum().backward()
    assert leaf.grad.tolist() == [3.0, 1.0]


def test_places_that_are_written_again_and_again() -> None:
    """The quick way of x[indices] = values: what the first, general call does."""
    table = torch.zeros(4, 3)
    rows, columns = torch.tensor([0, -1, 2]), torch.tensor([1, 2, 0])
    for turn in range(1, 4):
        table[rows, columns] = torch.tensor([1.0, 2.0, 3.0]) * turn
        table[table == turn] = table[table == turn] + 0.5
    assert table.tolist() == [[0, 3.5, 0], [0, 0, 0], [9, 0, 0], [0, 0, 6]]
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        table[rows + 2, columns] = torch.ones(3)
    leaf = torch.ones(4, 3, requires_grad=True)
    (table * leaf).sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf[rows, columns] = torch.ones(3)
    copy = leaf * 2
    copy[rows, columns] = torch.ones(3)
    (gradient,) = torch.autograd.grad(copy.sum(), leaf)
    assert gradient.tolist() == [[2, 0, 2], [2, 2, 2], [0, 2, 2], [2, 2, 0]]


def test_a_source_that_is_the_table_is_read_first() -> None:
    table = torch.arange(4.0)
    for _ in range(2):
        table[torch.tensor([0, 1, 2, 3])] = table.flip(0)
    assert table.tolist() == [0, 1, 2, 3]


def test_a_mask_of_one_element_indexes_an_array_as_a_mask():
    ones = np.ones(1)
    assert ones[torch.zeros(1, dtype=torch.bool)].shape == (0,)
    assert ones[torch.ones(1, dtype=torch.bool)].tolist() == [1.0]
    assert [5, 6][torch.tensor(True)] == 6


def test_places_of_a_mask_are_those_of_now() -> None:
    values = torch.arange(6.0).reshape(2, 3)
    mask = values > 2
    assert values[mask].tolist() == values[mask].tolist() == [3, 4, 5]
    mask[0, 0] = True
    assert values[mask].tolist() == [0, 3, 4, 5]
    mask.data[0, 1] = True
    assert values[mask].tolist() == [0, 1, 3, 4, 5]
    mask.numpy()[0, 2] = True
    assert values[mask].tolist() == [0, 1, 2, 3, 4, 5]
    assert values[mask[:, 0]].tolist() == values.tolist()
    large = torch.zeros(2000, dtype=torch.bool)
    for place in (3, 1999):
        large[place] = True
        assert torch.arange(2000)[large].tolist() == sorted({3, place})
