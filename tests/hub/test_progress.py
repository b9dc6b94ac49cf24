"""A progress bar with the package for it and without."""

import sys

from flambeau import hub
from flambeau.hub import progress


def test_bars_show_nothing_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    made = progress._bar()
    with made([1, 2], total=2, desc="x") as bar:
        assert list(bar) == [1, 2]
        assert (bar.n, bar.total) == (2, 2)
        bar.update(3)
        bar.set_description("y")
    assert bar.n == 5


def test_the_bar_is_at_both_of_torchs_places():
    from flambeau.utils import model_zoo

    assert hub.tqdm is model_zoo.tqdm is progress.tqdm
