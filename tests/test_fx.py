"""torch.fx's package offers what its files have."""

import pytest

from flambeau import fx


def test_names_are_found_where_they_are():
    assert fx.Graph is fx.graph.Graph
    assert fx.symbolic_trace is fx._symbolic_trace.symbolic_trace
    with pytest.raises(AttributeError, match=r"module 'torch.fx' has no attribute 'nothing'"):
        fx.nothing  # noqa: B018
