"""New small segments, record by record: same values, known records, fused the second time."""

from __future__ import annotations

import random
from typing import Any

import flambeau as torch
from flambeau import debug
from flambeau.engine import run
from flambeau.engine.planning import apart


def _batch(generator: random.Random, n_items: int) -> Any:
    """Items built by writes to slices of random lengths: a form that hardly ever comes again."""
    items = []
    for _ in range(n_items):
        length = generator.randint(1, 14)
        given = torch.tensor([generator.randint(0, 25) for _ in range(length)])
        x = torch.zeros(16, dtype=torch.long)
        y = torch.zeros(16, dtype=torch.long)
        x[1 : 1 + length] = given
        y[:length] = given
        y[length + 1 :] = -1
        items.append(x + y)
    return torch.stack(items)


def _chain(x: Any, n_steps: int) -> Any:
    for number in range(n_steps):
        x = x * 1.5 + number
    return x


def _plans(reports: Any) -> list[tuple[int, int]]:
    return [(len(each.operators), len(each.kernels)) for each in reports.segments]


def test_values_of_forms_that_never_come_again() -> None:
    for seed in range(6):
        found = _batch(random.Random(seed), 24).tolist()
        with debug.fuse(False):
            assert _batch(random.Random(seed), 24).tolist() == found


def test_new_segments_of_known_records_compile_nothing() -> None:
    for seed in range(20, 26):
        _batch(random.Random(seed), 24).tolist()
    with debug.counts() as seen:
        for seed in range(30, 36):
            _batch(random.Random(seed), 24).tolist()
    assert seen.kernels_compiled + seen.kernels_loaded == 0
    assert seen.segments_flushed >= 6


def test_fused_when_it_comes_again() -> None:
    run.forget_plans()
    x = torch.arange(5.0)
    with debug.explain() as first:
        expected = _chain(x, 10).tolist()
    with debug.explain() as second:
        assert _chain(x, 10).tolist() == expected
    with debug.explain() as third:
        assert _chain(x, 10).tolist() == expected
    assert [_plans(each) for each in (first, second, third)] == [[(20, 20)], [(20, 1)], [(20, 1)]]
    assert apart.NOTE in str(first)
    assert apart.NOTE not in str(second)


def test_other_sizes_are_fused_when_the_form_comes_again() -> None:
    run.forget_plans()
    _chain(torch.arange(5.0), 9).tolist()
    with debug.explain() as seen:
        _chain(torch.arange(7.0), 9).tolist()
    assert _plans(seen) == [(19, 1)]


def test_fused_at_once_where_it_is_short_or_large_or_asked_for() -> None:
    run.forget_plans()
    with debug.explain() as seen:
        _chain(torch.arange(5.0), 3).tolist()
        _chain(torch.ones(100_000), 11).sum().item()
        with debug.fuse_new(True):
            _chain(torch.arange(5.0), 12).tolist()
    assert all(n_kernels < n_records / 2 for n_records, n_kernels in _plans(seen))


def test_memory_of_what_nobody_keeps_is_used_again() -> None:
    run.forget_plans()
    x = torch.ones(1000)
    with debug.explain() as seen:
        _chain(x, 100).sum().item()
    assert seen.segments[0].arena_bytes <= 4 * 4096


def test_writes_through_views_and_results_in_two_parts() -> None:
    """In-place work on views with offsets, shared operands, operators with two results."""

    def program() -> list[Any]:
        x = torch.arange(24.0).reshape(4, 6)
        for number in range(4):
            x[number, 1:4] += x[number, 2:5] * x[number, 2:5]
            x[:, number].mul_(0.5)
            values, places = x.sort(dim=1, descending=True)
            x[number] = values[number] + places[number]
            x[number, number:] -= x[number].max(0)[0]
        return [x.tolist(), x.t()[1:, ::2].tolist()]

    run.forget_plans()
    found = program()
    again = program()
    with debug.fuse(False):
        assert program() == found == again


def test_gradients_of_a_new_segment() -> None:
    def program() -> list[Any]:
        w = torch.full((3, 3), 0.25, requires_grad=True)
        h = torch.ones(2, 3)
        for number in range(5):
            h = torch.tanh(h @ w + number * 0.1)
        h.sum().backward()
        return [h.tolist(), w.grad.tolist()]

    run.forget_plans()
    found = program()
    with debug.fuse_new(True):
        run.forget_plans()
        assert program() == found
