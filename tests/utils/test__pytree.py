"""Nested values by torch.utils._pytree's names."""

import collections

import pytest

from flambeau.base.trees import REGISTERED
from flambeau.utils import _pytree as pytree

Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024 - what programs write
TREE = {"b": [1, (2, 3)], "a": Pair(4, None), "c": collections.OrderedDict(z=5)}


class Box:
    def __init__(self, inside, label):
        self.inside = inside
        self.label = label


def test_structures():
    spec = pytree.tree_structure(TREE)
    assert (spec.num_leaves, spec.num_nodes, spec.num_children, spec.type) == (6, 11, 3, dict)
    assert spec == pytree.tree_structure(TREE)
    assert spec.unflatten(pytree.tree_iter(TREE)) == TREE
    assert repr(pytree.tree_structure({"b": [1, (2, 3)], "a": None})) == (
        "TreeSpec(dict, ['b', 'a'], [TreeSpec(list, None, [*,\n"
        "    TreeSpec(tuple, None, [*,\n"
        "      *])]),\n"
        "  *])"
    )


def test_questions_about_leaves():
    assert pytree.tree_all(lambda leaf: leaf != 9, TREE)
    assert pytree.tree_any(lambda leaf: leaf == 3, TREE)
    assert pytree.tree_all_only(int, lambda leaf: leaf > 0, TREE)
    assert not pytree.tree_any_only(str, lambda leaf: True, TREE)
    seen = []
    assert pytree.tree_map_(seen.append, [1, 2]) == [1, 2]
    assert seen == [1, 2]


def test_paths():
    found = [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_leaves_with_path(TREE)]
    assert found[0] == ("['b'][0]", 1)
    assert ("['a'].y", None) in found
    for path, leaf in pytree.tree_flatten_with_path(TREE)[0]:
        assert pytree.key_get(TREE, path) == leaf


def test_a_class_of_ones_own():
    pytree.register_pytree_node(
        Box, lambda box: ([box.inside], box.label), lambda inside, label: Box(inside[0], label)
    )
    try:
        made = pytree.tree_map(lambda leaf: leaf * 2, Box(3, "q"))
        assert (made.inside, made.label) == (6, "q")
        with pytest.raises(ValueError, match="is already registered as pytree node"):
            pytree.register_pytree_node(Box, None, None)
    finally:
        del REGISTERED[Box]


@pytest.mark.parametrize(
    ("other", "says"),
    [([1, 2, 3], "Node arity mismatch; expected 2, but got 3."),
     ((1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>.")],
)  # fmt: skip
def test_trees_that_are_not_nested_alike(other, says):
    with pytest.raises(ValueError, match=says):
        pytree.tree_map(lambda a, b: a, [1, 2], other)
    assert pytree.tree_map(lambda a, b: b, [1, 2], [{"a": 1}, 3]) == [{"a": 1}, 3]


def test_names_that_libraries_take_from_inside():
    from flambeau.utils import _pytree

    members, keys = _pytree._dict_flatten_with_keys({"a": 1})
    assert (members, keys) == ([(_pytree.MappingKey("a"), 1)], ["a"])
    assert _pytree._get_node_type([1]) is list
    assert int not in _pytree.SUPPORTED_NODES
