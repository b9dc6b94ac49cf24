"""Fused or not, whatever the threads, vector width, code generation level, cuts and references:
the same bits. Random programs over the registry (random_programs.py)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau.debug
from flambeau.engine import run, stream
from tests.engine.random_programs import Program, bits, outcome

SETTINGS = settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
SEEDS = st.integers(0, 2**20)


@SETTINGS
@given(SEEDS)
def test_fused_equals_unfused(seed: int) -> None:
    """FLAMBEAU_FUSE=0 and the default give equal bits."""
    fused = outcome(seed, 20)
    with flambeau.debug.fuse(False):
        unfused = outcome(seed, 20)
    assert fused == unfused


@SETTINGS
@given(SEEDS)
def test_the_first_and_later_runs_are_equal(seed: int) -> None:
    """Small segments run record by record, then fused: exact plans, other sizes, and fresh ones."""
    run.forget_plans()
    expected = outcome(seed, 30)
    for _ in range(3):
        assert bits(Program(seed, 30).run()) == expected
    run.forget_plans()
    assert bits(Program(seed, 30).run()) == expected


def test_programs_fuse_enough() -> None:
    """The comparison means something: at least two statements a kernel on average."""
    statements = kernels = 0

    def count(reason: str, plan: object, records: object, seconds: object) -> None:
        nonlocal statements, kernels
        statements += plan.statements  # type: ignore[attr-defined]
        kernels += plan.n_kernels  # type: ignore[attr-defined]

    run.OBSERVERS.append(count)
    try:
        for seed in range(12):
            outcome(seed, 30)
    finally:
        run.OBSERVERS.remove(count)
    assert statements >= 2 * kernels


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_nothing(threads: int) -> None:
    """Any number of threads gives equal bits."""
    for seed in (3, 14, 15):
        expected = outcome(seed, 20)
        with flambeau.debug.threads(threads):
            assert outcome(seed, 20) == expected


def test_vector_width_changes_nothing() -> None:
    """256- and 512-bit vectors give equal bits."""
    for seed in (1, 22, 33, 44):
        with flambeau.debug.vector_bits(256):
            narrow = outcome(seed, 20)
        with flambeau.debug.vector_bits(512):
            wide = outcome(seed, 20)
        assert narrow == wide


@SETTINGS
@given(SEEDS)
def test_cuts_and_references_change_nothing(seed: int) -> None:
    """Extra synchronisation points and extra references to results change no bit."""
    expected = outcome(seed, 20)

    def cut(number: int) -> None:
        if number % 3 == seed % 3:
            stream.current().synchronize("a test")

    assert outcome(seed, 20, cut) == expected
    kept: list[object] = []
    program = Program(seed, 20, lambda number: kept.extend(program.pool))
    assert bits(program.run()) == expected


def test_a_cached_plan_equals_a_fresh_one() -> None:
    """The same program with other data: the second time from the cache, then with all plans
    forgotten."""
    for seed in (7, 8):
        outcome(seed, 25)
        cached = outcome(seed, 25)
        run.forget_plans()
        assert outcome(seed, 25) == cached
