"""Views on plain integers: torch's shapes, strides, offsets and sentences."""

import pytest
from rules_support import RULES, laid_out

from flambeau.base import view_rules

VIEWS = {
    "view": lambda t, shape: (view_rules.viewed(t, shape), 0),
    "expand": lambda t, shape: (view_rules.expanded(t, shape), 0),
    "transpose": lambda t, a, b: (view_rules.transposed(t, a, b), 0),
    "permute": lambda t, dims: (view_rules.permuted(t, dims), 0),
    "squeeze": lambda t, dim: (view_rules.squeezed(t, None if dim is None else (dim,)), 0),
    "unsqueeze": lambda t, dim: (view_rules.unsqueezed(t, dim), 0),
    "select": view_rules.selected,
    "diagonal": view_rules.diagonalised,
}


def attempt(geometry, view, arguments):
    try:
        found, offset = VIEWS[view](laid_out(geometry), *arguments)
    except (RuntimeError, IndexError) as error:
        return [type(error).__name__, str(error).split("\n")[0]]
    return [list(found.shape), list(found.strides), offset]


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_random_layouts(view):
    """Right and wrong arguments alike give what torch gives."""
    rows = [row for row in RULES["views"] if row[1] == view]
    assert len(rows) > 50
    for geometry, _, arguments, expected in rows:
        assert attempt(geometry, view, arguments) == expected, (geometry, arguments)


def test_a_view_that_needs_a_copy_says_so():
    """torch's sentence, then the way out."""
    with pytest.raises(RuntimeError) as caught:
        view_rules.viewed(laid_out([[3, 4], [1, 3]]), (12,))
    assert "Use .reshape(...) instead." in str(caught.value)
    assert "strides (1, 3)" in str(caught.value)
    assert view_rules.view_strides(laid_out([[3, 4], [1, 3]]), (12,)) is None


def test_slices():
    """Offset and stride in elements."""
    found, offset = view_rules.sliced(laid_out([[3, 10], [10, 1]]), 1, 2, 4, 2)
    assert (found.shape, found.strides, offset) == ((3, 4), (10, 2), 2)
