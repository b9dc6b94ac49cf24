"""Updates of many tensors by native code: their slots, their counted writes."""

import pytest

import flambeau as torch
from flambeau.engine import run, stream
from flambeau.gradients import saved
from flambeau.tensor.native import library

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native code here")


def test_slots_are_those_python_gives():
    whole, other = torch.ones(3, 4), torch.zeros(2)
    views = [whole, whole[1], other, whole[1], whole.t(), other, torch.ones(1) * 2]
    native = run.QUICK.slots(stream.current().segment, views)
    assert native == run._slots(stream.current().segment, views)
    assert len(set(native)) == 5


def test_slots_of_what_is_no_tensor():
    with pytest.raises((TypeError, AttributeError)):
        run.QUICK.slots(stream.current().segment, 3)


def test_writes_are_counted_where_each_tensor_counts():
    plain, site = torch.ones(2), object()
    with torch.inference_mode():
        uncounted = torch.ones(2)
    view = plain[:1]
    before = plain._version
    given = (plain, view, uncounted, plain)
    with torch.inference_mode():
        assert library.library().bumps(given, site, saved.bump) is None
    assert plain._version == before + 3
    assert plain._storage.write_site is site
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        library.library().bumps((uncounted,), site, saved.bump)
