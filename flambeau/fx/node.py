"""One step of a graph: what is called, with what, and who uses the result.

Keeps     `users` are the nodes whose arguments name this one, whatever is changed by the methods.
Touches   nothing.
Not here  the order of nodes (graph.py), how programs become nodes (_symbolic_trace.py)."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.base.missing import module_getattr

if TYPE_CHECKING:
    from flambeau.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """The same tuples, lists, dicts and slices, with fn of everything in them.

    >>> map_aggregate([1, (2, {"a": 3})], lambda each: each * 10)
    [10, (20, {'a': 30})]
    """
    if isinstance(a, tuple):
        made = [map_aggregate(each, fn) for each in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return [map_aggregate(each, fn) for each in a]
    if isinstance(a, dict):
        return {key: map_aggregate(each, fn) for key, each in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """The same arguments, with fn of the nodes in them."""
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


class Node:
    """A step of a graph.

    op       "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output"
    target   the function, or the name of the method, module, attribute or argument
    args, kwargs   arguments, in which nodes stand for their results
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple[Any, ...],
        kwargs: dict[str, Any], return_type: Any = None,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def __repr__(self) -> str:
        return self.name

    @property
    def args(self) -> tuple[Any, ...]:
        """Arguments by place; to be set, not changed."""
        return self._args

    @args.setter
    def args(self, given: tuple[Any, ...]) -> None:
        self._set(given, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments by name; to be set, not changed."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, given: dict[str, Any]) -> None:
        self._set(self._args, given)

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for each in self.all_input_nodes:
            each.users.pop(self, None)
        self._args = tuple(args)
        self._kwargs = dict(kwargs)
        for each in self.all_input_nodes:
            each.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        found: dict[Node, None] = {}

        def note(node: Node) -> Node:
            found[node] = None
            return node

        map_arg((self._args, self._kwargs), note)
        return list(found)

    @property
    def next(self) -> Node:
        """The node behind this one."""
        return self.graph._beside(self, 1)

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self.graph._beside(self, -1)

    @property
    def stack_trace(self) -> str | None:
        """Where the step was traced, if that was kept."""
        found: str | None = self.meta.get("stack_trace")
        return found

    def prepend(self, x: Node) -> None:
        """Move node x before this one."""
        self.graph._move(x, self, 0)

    def append(self, x: Node) -> None:
        """Move node x behind this one."""
        self.graph._move(x, self, 1)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Set one argument by place."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put an argument in at a place."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *, propagate_meta: bool = False,
    ) -> list[Node]:  # fmt: skip
        """Let the users of this node use another; returns them."""
        if propagate_meta:
            replace_with.meta = dict(self.meta)
        users = [each for each in self.users if delete_user_cb(each)]
        for each in users:
            each.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Let this node use another in the place of one of its inputs."""

        def swapped(node: Node) -> Any:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, swapped), map_arg(self._kwargs, swapped))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step is kept although nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return getattr(self.target, "__name__", "") in ("_assert", "setitem")
        return False

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: Any = None
    ) -> str:
        """The node as a line of a printed graph."""
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            users = f"[num_users={len(self.users)}]"
            return f"%{self.name} : {users} = placeholder[target={self.target}]{default}"
        if self.op == "output":
            return f"return {self.args[0]!r}"
        target = self.target if isinstance(self.target, str) else function_text(self.target)
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {self._shown(self.args)}, kwargs = {self._shown(self.kwargs)})"

    def _shown(self, value: Any) -> str:
        return repr(map_arg(value, lambda node: _Bare(f"%{node.name}")))


class _Bare(str):
    """Text that is printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def type_text(kind: Any) -> str:
    """An annotation as a program would write it."""
    if not isinstance(kind, builtins.type):
        return repr(kind).removeprefix("typing.")
    if kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}".replace("flambeau.tensor.tensor.", "torch.")


def function_text(function: Any) -> str:
    """A function's name behind its module's, as programs know them."""
    name = getattr(function, "__name__", repr(function))
    module = getattr(function, "__module__", None) or "builtins"
    module = {"_operator": "operator", "flambeau": "torch"}.get(module, module)
    return name if module == "builtins" else f"{module}.{name}"


__getattr__ = module_getattr(__name__)
