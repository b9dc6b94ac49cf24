"""Places in sorted sequences and counts in bins against loops over Python numbers."""

import bisect
import math
import random

import pytest

import flambeau as torch

random.seed(1)
EDGES = sorted(random.uniform(-1, 1) for _ in range(37))
VALUES = [random.uniform(-1.2, 1.2) for _ in range(200)] + EDGES[::5]


def wide(values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("right", [False, True])
def test_places(right):
    search = bisect.bisect_right if right else bisect.bisect_left
    found = torch.searchsorted(wide(EDGES), wide(VALUES), right=right)
    assert found.tolist() == [search(EDGES, value) for value in VALUES]
    assert torch.equal(found, torch.bucketize(wide(VALUES), wide(EDGES), right=right))


def test_nan_comes_last():
    assert torch.searchsorted(wide(EDGES), wide([math.nan])).tolist() == [len(EDGES)]


def test_places_in_rows():
    rows = torch.stack([wide(EDGES), wide(EDGES) + 1])
    found = torch.searchsorted(rows, torch.stack([wide([0.0]), wide([1.0])]))
    assert found[0].tolist() == found[1].tolist()


def test_histogram_of_given_edges():
    counts, edges = torch.histogram(wide(VALUES), wide(EDGES))
    inside = [value for value in VALUES if EDGES[0] <= value <= EDGES[-1]]
    places = [min(bisect.bisect_right(EDGES, value), len(EDGES) - 1) for value in inside]
    assert counts.tolist() == [places.count(place) for place in range(1, len(EDGES))]
    assert edges.tolist() == EDGES


def test_density_has_area_one():
    density, edges = torch.histogram(wide(VALUES), 13, density=True)
    assert (density * (edges[1:] - edges[:-1])).sum().item() == pytest.approx(1)


def test_histc_and_bincount():
    assert torch.histc(wide([0, 1, 1, 2]), 3).tolist() == [1, 2, 1]
    assert torch.bincount(torch.tensor([1, 3, 3]), minlength=5).tolist() == [0, 1, 0, 2, 0]
    weighted = torch.bincount(torch.tensor([1, 1]), torch.tensor([0.5, 0.25]))
    assert weighted.tolist() == [0, 0.75]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: torch.bincount(torch.tensor([-1])), "only supports 1-d non-negative integral"),
        (lambda: torch.histc(wide(VALUES), 0), "bins must be > 0"),
        (lambda: torch.searchsorted(wide(EDGES), wide(VALUES), side="up"), "side can only be"),
        (lambda: torch.histogram(wide([math.nan]), 3), "is not finite"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(RuntimeError, match=says):
        call()
