"""What native flushes know is bounded and can be forgotten."""

import pytest

import flambeau as torch
from flambeau.engine import run, stream
from flambeau.tensor.native import library
from flambeau.tensor.native.flush import known
from flambeau.tensor.native.flush.words import PLAN_BITS, mixed, place_of

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native code here")


@pytest.fixture
def plans():
    """The table of known plans."""
    run.forget_plans()
    return run.QUICK.learn.__self__


def repeated(make, count=5):
    for _ in range(count):
        kept = make()
        stream.current().synchronize("a test")
    return kept


def test_a_plan_that_ran_twice_is_known(plans):
    x = repeated(lambda: torch.ones(3), 1)
    repeated(lambda: x + 1, 1)
    assert not plans._places
    repeated(lambda: x + 1, 2)  # the first time may have been record by record
    assert len(plans._places) == 1
    run.forget_plans()
    assert not plans._places
    assert not any(plans._words)


def test_more_plans_than_places(plans):
    for size in range(1, 40):
        x = torch.ones(size)
        assert repeated(lambda x=x: x + 1, 4).tolist() == [2.0] * size
    known_before = len(plans._places)
    assert known_before >= 30
    assert len(plans._places) <= known._PLACES


def test_words_are_bounded(plans, monkeypatch):
    monkeypatch.setattr(known, "MAX_WORDS", 300)
    for size in range(1, 30):
        x = torch.ones(size)
        assert repeated(lambda x=x: (x + 1) * 2, 4).tolist() == [4.0] * size
        assert plans._n_words <= 300


def test_what_is_compared_first_stays_a_word():
    mix = mixed(
        first=2**47, last=2**47 - 1, count=2048, inputs=9, fresh=2000, n_touched=5, threads=2
    )
    assert 0 <= mix < 2**64
    assert 0 <= place_of(mix) < 1 << PLAN_BITS
