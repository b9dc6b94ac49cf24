"""Plan templates: a plan bound for other sizes is the plan that planning anew gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau.debug import counts
from flambeau.engine.planning import template
from flambeau.engine.planning.symbolic.sizes import Replay, Tape
from flambeau.tensor import functions
from tests.engine import random_programs
from tests.engine.random_programs import DTYPES, Program, bits, make

# What a size of a program becomes in its variants: coinciding, one, none, past blocks and rows.
BECOMES = [2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 64, 127, 130, 1, 0]
LARGE = [1025, 2050, 17000]


class Resized(Program):
    """A random program over other sizes: its choices do not depend on them."""

    def __init__(self, seed: int, n_steps: int, sizes: dict[int, int]) -> None:
        super().__init__(seed, n_steps)
        self.sizes = sizes
        self.values = random.Random(seed + 1)

    def run(self) -> list[Any]:
        choice = self.choice
        shapes = [shape for shape in random_programs.SHAPES if shape != (1100,)]
        shape = choice.choice(shapes)
        for _ in range(3):
            dtype = choice.choice(DTYPES[:2] if choice.random() < 0.6 else DTYPES)
            own = shape if choice.random() < 0.7 else choice.choice(shapes)
            resized = tuple([self.sizes.get(size, size) for size in own])
            self.pool.append(make(self.values, resized, dtype))
        for _ in range(self.n_steps):
            self._step()
        return self.pool

    def _view(self) -> Any:
        source, choice = self._any(), self.choice
        kind, place = choice.randrange(5), choice.random()
        if kind == 0 and source.ndim >= 2:
            return functions.transpose(source, 0, 1)
        if kind == 1 and source.ndim >= 1 and source.shape[0] > 1:
            return functions.narrow(source, 0, 1, source.shape[0] - 1)
        if kind == 2 and source.ndim >= 1 and source.shape[-1] > 0:
            return functions.select(source, source.ndim - 1, int(place * source.shape[-1]))
        if kind == 3:
            return functions.unsqueeze(source, 0)
        return source.reshape(-1)


@pytest.fixture
def checked() -> Iterator[None]:
    """Every template is compared with planning anew, word by word."""
    before = template.CHECK[0]
    template.CHECK[0] = True
    yield
    template.CHECK[0] = before


def _variants(seed: int, count: int) -> list[dict[int, int]]:
    choice = random.Random(seed)
    bases = sorted({size for shape in random_programs.SHAPES for size in shape if size > 1})
    variants = []
    for number in range(count):
        become = BECOMES[:13] if number < count - 2 else BECOMES
        sizes = {base: choice.choice(become) for base in bases}
        if number == 1:
            sizes[40] = choice.choice(LARGE)
        variants.append(sizes)
    return variants


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_of_other_sizes_bind_to_the_same_words(checked: None, seed: int) -> None:
    bound = template.STATS.bound
    # The operators there are decide what a seed's program is: some read nothing twice.
    for program in range(seed, 120, 40):
        for sizes in _variants(seed, 7):
            bits(Resized(program, 12, sizes).run())
    assert template.STATS.bound > bound


@pytest.mark.parametrize("seed", range(12, 18))
def test_bound_plans_give_the_bits_of_plans_of_their_own(seed: int) -> None:
    variants = _variants(seed, 6)
    bound = [bits(Resized(seed, 12, sizes).run()) for sizes in variants]
    template.forget()
    for sizes, wanted in zip(variants, bound, strict=True):
        with torch.debug.fuse(False):
            template.forget()
            assert bits(Resized(seed, 12, sizes).run()) == wanted


def test_never_seen_sizes_are_bound(checked: None) -> None:
    x = torch.arange(500, dtype=torch.float64)
    for i in range(1, 6):
        x[:i].mean().item()
    with counts() as seen:
        for i in range(6, 400):
            assert x[:i].mean().item() == (i - 1) / 2
    assert (seen.segments_planned, seen.kernels_compiled) == (0, 0)


def test_equal_forms_that_collapse_differently_are_told_apart(checked: None) -> None:
    for sizes in ((6, 20), (10, 12), (8, 15), (12, 10), (4, 30), (24, 5)):
        a = torch.arange(120, dtype=torch.float32).reshape(sizes)
        one = (a * 2).reshape(2, 3, 4, 5) + 1
        other = (a.t() * 2).reshape(2, 3, 4, 5) + 1
        assert one.flatten().tolist() == [2.0 * n + 1 for n in range(120)]
        assert other.flatten().tolist() == [2 * v + 1 for v in a.t().flatten().tolist()]


def test_sizes_that_coincide_are_told_apart(checked: None) -> None:
    for rows, columns in ((3, 5), (4, 7), (5, 5), (7, 7), (1, 4), (4, 1), (2, 2), (0, 3), (6, 11)):
        x = torch.ones(rows, columns) * 3
        y = torch.arange(columns, dtype=torch.float32)
        z = x + y
        total = (z.sum(0) * 2).sum().item() if rows else 0.0
        assert total == 2 * rows * (3 * columns + columns * (columns - 1) / 2)
        assert (z - z.sum(1, keepdim=True)).shape == (rows, columns)


def test_products_of_other_sizes_are_bound(checked: None) -> None:
    w = torch.ones(6, 9)
    for n in (2, 3, 5, 8, 17, 33, 64, 130):
        y = torch.relu(torch.ones(n, 6) @ w) + 1
        assert y.tolist() == [[7.0] * 9] * n


def test_forms_and_templates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "MAX_RECORDS", 60)
    template.forget()
    for n_steps in range(1, 12):
        for size in (3, 4, 5):
            x = torch.ones(size)
            for _ in range(n_steps):
                x = x * 2
            assert x.tolist() == [2.0**n_steps] * size
    assert template.remembered() <= 60


def test_a_tape_asks_again_what_planning_asked() -> None:
    tape = Tape()
    a, b, c = tape.input(6, 2), tape.input(3, 2), tape.input(18, 2)
    assert a % b == 0
    assert a * b == c
    assert not a < b
    replay = Replay(tape, [tape.index_of(a // b)])
    assert replay.values([8, 4, 32]) is not None
    assert replay.values([8, 3, 24]) is None  # not a multiple
    assert replay.values([8, 4, 33]) is None  # another product
    assert replay.values([2, 2, 4]) is not None


def test_a_size_that_becomes_a_number_is_a_condition() -> None:
    tape = Tape()
    a = tape.input(6, 2)
    assert list(range(a)) == [0, 1, 2, 3, 4, 5]
    replay = Replay(tape, [])
    assert replay.values([6]) is not None
    assert replay.values([7]) is None
