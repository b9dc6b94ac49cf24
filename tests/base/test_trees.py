"""Nested values: leaves, and back."""

from collections import OrderedDict, defaultdict
from typing import NamedTuple

import pytest

from flambeau.base.trees import tree_flatten, tree_leaves, tree_map, tree_unflatten


class Point(NamedTuple):
    x: int
    y: object


def test_all_kinds_come_back():
    tree = {
        "a": (1, [2, None]),
        "b": Point(3, OrderedDict(z=4)),
        "c": defaultdict(list, k=5),
        "d": (),
    }
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4, 5]
    assert spec.num_leaves == 6
    back = tree_unflatten(leaves, spec)
    assert back == tree
    assert type(back["b"]) is Point
    assert back["c"].default_factory is list
    assert tree_flatten(back)[1] == spec


def test_map_over_several():
    assert tree_map(lambda a, b: a * b, {"k": [2, 3]}, {"k": [5, 7]}) == {"k": [10, 21]}
    assert tree_leaves([(1, 2), 3], is_leaf=lambda v: isinstance(v, tuple)) == [(1, 2), 3]


def test_a_wrong_number_of_leaves_is_refused():
    _, spec = tree_flatten((1, 2))
    with pytest.raises(ValueError, match="`leaves` has length 1 but"):
        tree_unflatten([1], spec)
