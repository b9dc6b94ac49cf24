"""Timer: each run is computed before the clock is read, by a clock that counts what has run."""

import pytest

import flambeau as torch
from flambeau.utils.benchmark import Timer


def test_each_run_has_been_computed_when_the_clock_is_read():
    seen = []

    def clock():
        seen.append(counted.kernels_launched)
        return float(len(seen))

    x = torch.ones(8)
    with torch.debug.counts() as counted:
        made = Timer("x.exp()", globals={"x": x}, timer=clock).timeit(5)
    starts, ends = seen[::2], seen[1::2]
    assert [end - start for start, end in zip(starts, ends, strict=True)] == [2, 5]
    assert (made.number_per_run, made.raw_times) == (5, [1.0])


def test_setup_is_run_first_and_waits_for_nothing():
    events = []
    setup = """
        events.append("setup")
        y = torch.ones(3)
    """
    Timer("events.append('run'); y + 1", setup, globals={"events": events}).timeit(3)
    assert events == ["setup", "run", "run", "setup", "run", "run", "run"]


def test_threads_are_set_while_it_measures():
    before = torch.get_num_threads()
    seen = set()
    globals_ = {"note": lambda: seen.add(torch.get_num_threads())}
    Timer("note()", globals=globals_, num_threads=2).timeit(2)
    assert seen == {2}
    assert torch.get_num_threads() == before


def test_ranges_measure_until_there_is_enough():
    timer = Timer("x + 1", globals={"x": torch.ones(3)}, label="add", sub_label="3")
    told = []
    made = timer.blocked_autorange(lambda number, time: told.append((number, time)), 0.01)
    assert sum(made.raw_times) >= 0.01
    assert told == [(made.number_per_run, time) for time in made.raw_times]
    assert made.title == "add: 3"
    assert 0 < made.median < 0.01
    few = timer.adaptive_autorange(threshold=1e9, min_run_time=1e-4)
    assert len(few.raw_times) >= 4


def test_what_it_does_not_measure_is_refused():
    with pytest.raises(NotImplementedError, match="measures Python only"):
        Timer("x", language="c++")
    with pytest.raises(NotImplementedError, match=r"See `Timer.blocked_autorange.`"):
        Timer("x").repeat()
    with pytest.raises(ValueError, match="global_setup is C\\+\\+ only"):
        Timer("x", global_setup="y")
