"""torch.utils._pytree: functions of nested values, and where in them a leaf lies.

Keeps     torch's names and order; a class that a program registers is nested as it says.
Touches   base.trees.
Not here  taking apart and putting together (base.trees)."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from flambeau.base.missing import module_getattr
from flambeau.base.trees import (
    LEAF,
    REGISTERED,
    TreeSpec,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

__all__ = [
    "SUPPORTED_NODES",
    "Context",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "key_get",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]  # fmt: skip

PyTree: TypeAlias = Any
Context: TypeAlias = Any
SUPPORTED_NODES = REGISTERED


def LeafSpec() -> TreeSpec:
    """How one leaf is put together."""
    return TreeSpec(LEAF, None, [])


# Classes of a program's own ---------------------------------------------------------------


def register_pytree_node(
    cls: Any, flatten_fn: Callable[..., Any], unflatten_fn: Callable[..., Any], **named: Any
) -> None:
    """Nest a class: flatten_fn(value) gives members and context, unflatten_fn takes both.

    Raises   ValueError: the class is nested already.

    >>> class Pair:
    ...     def __init__(self, one, other):
    ...         self.both = [one, other]
    >>> register_pytree_node(Pair, lambda pair: (pair.both, None), lambda both, _: Pair(*both))
    >>> tree_map(lambda leaf: leaf * 2, Pair(1, 2)).both
    [2, 4]
    """
    if cls in REGISTERED or cls in (dict, list, tuple, OrderedDict, defaultdict):
        raise ValueError(f"{cls} is already registered as pytree node.")
    REGISTERED[cls] = (flatten_fn, unflatten_fn)


def _register_pytree_node(cls: Any, flatten: Any, unflatten: Any, *rest: Any, **named: Any) -> None:
    """The older name; a class may be registered anew."""
    REGISTERED[cls] = (flatten, unflatten)


def register_dataclass(cls: Any, *, field_names: Any = None, **named: Any) -> None:
    """Nest a data class by its fields."""
    names = [each.name for each in dataclasses.fields(cls)] if field_names is None else field_names
    register_pytree_node(
        cls,
        lambda value: ([getattr(value, name) for name in names], list(names)),
        lambda members, context: cls(**dict(zip(context, members, strict=True))),
    )


# Whole trees --------------------------------------------------------------------------------


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """How a nested value is made of its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Call func on each leaf; the tree itself comes back."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, fn: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """A tree of the same form, with fn of the leaves that are of a class, or one of several."""
    chosen = _chosen(kind)
    return tree_map(lambda leaf: fn(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, fn: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """Call fn on the leaves that are of a class; the tree itself comes back."""
    tree_map_only(kind, fn, tree, is_leaf)
    return tree


def _chosen(kind: Any) -> Callable[[Any], bool]:
    """Whether a leaf is of a class, of one of several, or as a function says."""
    if isinstance(kind, (type, tuple)) or hasattr(kind, "__args__"):
        return lambda leaf: isinstance(leaf, kind)
    return kind  # type: ignore[no-any-return]


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred holds for all leaves of a class."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


def tree_any_only(kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred holds for a leaf of a class."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


# Where a leaf lies --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What lies there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What lies there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What lies there."""
        return getattr(obj, self.name)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """A dict's members, each with its key, and the keys: for classes that are like dicts."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _get_node_type(tree: Any) -> Any:
    """The class that a value is taken apart as."""
    return type(tree)


def _keys(spec: TreeSpec) -> list[Any]:
    """The places of a value's members."""
    if spec.kind in (dict, OrderedDict):
        return [MappingKey(key) for key in spec.context]
    if spec.kind is defaultdict:
        return [MappingKey(key) for key in spec.context[1]]
    if hasattr(spec.kind, "_fields"):
        return [GetAttrKey(name) for name in spec.kind._fields]
    return [SequenceKey(number) for number in range(spec.num_children)]


def _paths(spec: TreeSpec, before: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if spec.is_leaf():
        yield before
        return
    for key, child in zip(_keys(spec), spec.children, strict=True):
        yield from _paths(child, (*before, key))


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """((path, leaf) from left to right, how to put them together)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return list(zip(_paths(spec, ()), leaves, strict=True)), spec


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[Any]:
    """(path, leaf) from left to right."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None
) -> Any:
    """The same nesting with func(path, leaf) of each leaf.

    >>> tree_map_with_path(lambda path, leaf: keystr(path), {"a": [1, 2]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    places = zip(_paths(spec, ()), leaves, *others, strict=True)
    return tree_unflatten([func(*each) for each in places], spec)


def keystr(kp: Iterable[Any]) -> str:
    """A path as it would be written behind the tree."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What lies at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


__getattr__ = module_getattr(__name__)
