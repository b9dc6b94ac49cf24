"""Nested tuples, lists and dicts of values: taken apart into leaves, and put together again.

Keeps     named tuples, ordered and default dicts come back as what they were; dicts keep their
          order; None is a leaf.
Touches   nothing.
Not here  what is done with the leaves (func, utils)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, Final

LEAF: Final = "leaf"


class TreeSpec:
    """How a nested value is made of its leaves."""

    __slots__ = ("children", "context", "kind", "num_leaves")

    def __init__(self, kind: Any, context: Any, children: list[TreeSpec]) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.num_leaves: int = 1 if kind is LEAF else sum(c.num_leaves for c in children)

    @property
    def type(self) -> Any:
        """The class of the value; None for a leaf."""
        return None if self.kind is LEAF else self.kind

    @property
    def num_children(self) -> int:
        """Members of the value."""
        return len(self.children)

    @property
    def num_nodes(self) -> int:
        """Values inside, leaves and itself included."""
        return 1 + sum(child.num_nodes for child in self.children)

    def is_leaf(self) -> bool:
        """Whether it is one leaf."""
        return self.kind is LEAF

    def child(self, index: int) -> TreeSpec:
        """How a member is made."""
        return self.children[index]

    def unflatten(self, leaves: Any) -> Any:
        """The nested value with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What another tree has in the places of the leaves.

        Raises   ValueError: it is not nested as this one."""
        if self.kind is LEAF:
            return [tree]
        found = _parts(tree)
        kind = type(tree)
        if found is None or (kind is not self.kind and not {kind, self.kind} <= _DICTS):
            raise ValueError(f"Node type mismatch; expected {self.kind!r}, but got {kind!r}.")
        members = found[2]
        if len(members) != len(self.children):
            raise ValueError(
                f"Node arity mismatch; expected {len(self.children)}, but got {len(members)}."
            )
        if self.kind in _DICTS:
            keys = self.context[1] if self.kind is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(
                    f"Node keys mismatch; expected {sorted(keys, key=str)}, but got "
                    f"{sorted(tree, key=str)}."
                )
            members = [tree[key] for key in keys]
        places: list[Any] = []
        for child, member in zip(self.children, members, strict=True):
            places += child.flatten_up_to(member)
        return places

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (
            (self.kind, self.context, self.children) == (other.kind, other.context, other.children)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.kind is LEAF:
            return "*"
        inner = [child._text(indent + 2) for child in self.children]
        between = ",\n" + " " * (indent + 2)
        return f"TreeSpec({self.kind.__name__}, {self.context}, [{between.join(inner)}])"


_DICTS: Final = {dict, OrderedDict, defaultdict}
# class -> (members and context of a value, a value of both): classes of a program's own
REGISTERED: Final[dict[type, tuple[Callable[..., Any], Callable[..., Any]]]] = {}


def _parts(value: Any) -> tuple[Any, Any, list[Any]] | None:
    """(class, what else is needed to rebuild it, its members); None for a leaf."""
    kind = type(value)
    if kind in (dict, OrderedDict):
        return kind, list(value), list(value.values())
    if kind is defaultdict:
        return kind, [value.default_factory, list(value)], list(value.values())
    if kind in (tuple, list):
        return kind, None, list(value)
    if kind in REGISTERED:
        members, context = REGISTERED[kind][0](value)
        return kind, context, list(members)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind, None, list(value)
    return None


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """(leaves from left to right, how to put them together).

    >>> tree_flatten({"a": (1, [2]), "b": 3})[0]
    [1, 2, 3]
    """
    found = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if found is None:
        return [tree], TreeSpec(LEAF, None, [])
    kind, context, members = found
    leaves: list[Any] = []
    children = []
    for member in members:
        own, spec = tree_flatten(member, is_leaf)
        leaves += own
        children.append(spec)
    return leaves, TreeSpec(kind, context, children)


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """The nested value with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
            f"refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _built(iter(leaves), treespec)


def _built(leaves: Any, spec: TreeSpec) -> Any:
    if spec.kind is LEAF:
        return next(leaves)
    members = [_built(leaves, child) for child in spec.children]
    if spec.kind is defaultdict:
        factory, keys = spec.context
        return defaultdict(factory, zip(keys, members, strict=True))
    if spec.kind in (dict, OrderedDict):
        return spec.kind(zip(spec.context, members, strict=True))
    if spec.kind in REGISTERED:
        return REGISTERED[spec.kind][1](members, spec.context)
    if hasattr(spec.kind, "_fields"):
        return spec.kind(*members)
    return spec.kind(members)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The same nesting with func of each leaf (and of those in its place in other trees).

    >>> tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)
