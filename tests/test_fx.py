"""torch.fx: functions are marked for no tracer."""

import pytest

from flambeau import fx


def test_functions_are_marked_and_nothing_is_traced():
    @fx.wrap
    def double(x):
        return 2 * x

    assert double(2) == 4
    assert fx.wrap("double") == "double"
    with pytest.raises(RuntimeError, match="Must be either a callable or string name"):
        fx.wrap(3)
    with pytest.raises(AttributeError, match="programs are run, not traced"):
        fx.symbolic_trace  # noqa: B018
