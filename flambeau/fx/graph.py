"""A traced program: its nodes in order, and the Python text that they are.

Keeps     names of nodes differ; a node comes behind what it uses (lint says so where it does not).
Touches   node.py.
Not here  running a graph (graph_module.py, interpreter.py), tracing (_symbolic_trace.py)."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from flambeau.base.missing import module_getattr
from flambeau.fx.node import Argument, Node, Target, function_text, map_arg, type_text

__all__ = ["CodeGen", "Graph", "PythonCode"]

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "div": "/", "mod": "%",
    "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!=", "pow": "**",
    "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_PREFIX: Final = {"neg": "-", "pos": "+", "invert": "~"}


class PythonCode(NamedTuple):
    """The text of a function, and the values it names."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """Writes a graph as a function; classes of a program's own may write another head or end."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line with the function's name and arguments."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line that returns."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """What the function is given, from what a caller gives."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a caller gets, from what the function returns."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names and values that the text needs besides."""
        return []


class _NodeList:
    """The nodes of a graph, which may change while they are walked through."""

    def __init__(self, graph: Graph, step: int = 1) -> None:
        self._graph, self._step = graph, step

    def __len__(self) -> int:
        return len(self._graph._nodes)

    def __iter__(self) -> Iterator[Node]:
        for each in self._graph._nodes[:: self._step]:
            if not each._erased:
                yield each

    def __reversed__(self) -> Iterator[Node]:
        return iter(_NodeList(self._graph, -self._step))

    def __getitem__(self, place: Any) -> Any:
        return self._graph._nodes[place]


class _InsertPoint:
    """Where new nodes go; as a context, until its end."""

    def __init__(self, graph: Graph, place: tuple[Node | None, int]) -> None:
        self._graph, self._before = graph, graph._place
        graph._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._graph._place = self._before


class Graph:
    """Nodes in order, made one by one or by a tracer.

    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(abs, (x,)))
    >>> print(graph.python_code("self").src.strip())
    def forward(self, x):
        abs_1 = abs(x);  x = None
        return abs_1
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, **named: Any) -> None:
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._nodes: list[Node] = []
        self._place: tuple[Node | None, int] = (None, 0)
        self._used: dict[str, int] = {}
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _NodeList:
        """All nodes, in order."""
        return _NodeList(self)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write the function by another writer."""
        self._codegen = codegen

    # ------------------------------------------------------------------ names and places

    def _named(self, candidate: str) -> str:
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = candidate, 0
        if (found := re.match(r"(.*)_(\d+)$", candidate)) and candidate in self._used:
            base, number = found.group(1), int(found.group(2))
        elif candidate not in self._used and not _reserved(candidate):
            self._used[candidate] = 0
            return candidate
        number = max(number, self._used.get(base, 0)) + 1
        while f"{base}_{number}" in self._used:
            number += 1
        self._used[base] = number
        self._used[f"{base}_{number}"] = 0
        return f"{base}_{number}"

    def _target_to_str(self, target: Target) -> str:
        if isinstance(target, str):
            name = target[2:-2] if target.startswith("__") and target.endswith("__") else target
        else:
            name = getattr(target, "__name__", type(target).__name__)
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace(".", "_")).lower()

    def _beside(self, node: Node, step: int) -> Node:
        place = self._nodes.index(node) + step
        return self._nodes[place % len(self._nodes)]

    def _move(self, node: Node, beside: Node, behind: int) -> None:
        if node is not beside:
            if node in self._nodes:
                self._nodes.remove(node)
            self._nodes.insert(self._nodes.index(beside) + behind, node)

    def _insert(self, node: Node) -> None:
        beside, behind = self._place
        if beside is None:
            self._nodes.insert(len(self._nodes) if not behind else 0, node)
            return
        self._nodes.insert(self._nodes.index(beside) + behind, node)
        if behind:
            self._place = (node, 1)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go before node n; without one, to the front."""
        return _InsertPoint(self, (n, 0) if n is not None else (None, 1))

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go behind node n, one behind the other; without one, to the end."""
        return _InsertPoint(self, (n, 1) if n is not None else (None, 0))

    # ------------------------------------------------------------------------ new nodes

    def create_node(
        self, op: str, target: Target, args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None, name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Make a node and put it in its place."""
        made = Node(
            self, self._named(name if name is not None else self._target_to_str(target)), op,
            target, args or (), kwargs or {}, type_expr,
        )  # fmt: skip
        self._insert(made)
        return made

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = Ellipsis) -> Node:
        """An argument of the function."""
        args = () if default_value is Ellipsis else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of one of the module's modules."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None,
        type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of another graph's node, whose arguments arg_transform translates."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copy all nodes of another graph; returns what its output is here."""
        for each in g.nodes:
            if each in val_map:
                continue
            if each.op == "output":
                made = map_arg(each.args[0], lambda node: val_map[node])
                return (made, each) if return_output_node else made
            val_map[each] = self.node_copy(each, lambda node: val_map[node])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = self._codegen
        found = made.graph_copy(self, copies := {}, return_output_node=True)
        if found is not None:
            value, old = found
            end = made.output(value, type_expr=getattr(old, "type", None))
            end.meta = dict(old.meta)
            copies[old] = end
        return made

    # ---------------------------------------------------------------------- old nodes

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out.

        Raises   RuntimeError: its result is still used"""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        self._nodes.remove(to_erase)
        to_erase._erased = True
        to_erase._set((), {})

    def output_node(self) -> Node:
        """The node that returns."""
        return next(each for each in reversed(self.nodes) if each.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target where it is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def eliminate_dead_code(self, is_impure_node: Any = None) -> bool:
        """Take out nodes whose results nobody uses; whether there were any."""
        kept = is_impure_node or (lambda node: node.is_impure())
        count = len(self._nodes)
        for each in reversed(self.nodes):
            if not each.users and not kept(each):
                self.erase_node(each)
        return len(self._nodes) != count

    def lint(self) -> None:
        """Raises RuntimeError where a node uses what comes after it, or what is not there."""
        seen: set[Node] = set()
        for each in self._nodes:
            for used in each.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{each}' was used before it has been defined! "
                        "Please check that Nodes in the graph are topologically ordered"
                    )
            seen.add(each)
            if self.owning_module is not None and each.op in ("get_attr", "call_module"):
                owner = self.owning_module
                for part in str(each.target).split("."):
                    if not hasattr(owner, part):
                        raise RuntimeError(
                            f"Node {each} target {each.target} references nonexistent attribute "
                            f"{part} of {type(owner).__name__}"
                        )
                    owner = getattr(owner, part)

    # --------------------------------------------------------------------------- text

    def python_code(self, root_module: str, **named: Any) -> PythonCode:
        """The graph as the text of a function, in which root_module is the module's name."""
        names: dict[str, Any] = dict(self._codegen.additional_globals())
        last_use = {used: node for node in self._nodes for used in node.all_input_nodes}
        arguments: list[str] = []
        lines: list[str] = []
        returned = ""
        for each in self._nodes:
            if each.op == "placeholder":
                arguments.append(_argument_text(each))
                argument = str(each.target).lstrip("*")
                if argument != each.name:
                    lines.append(f"{each.name} = {argument}")
                continue
            if each.op == "output":
                if each.type is not None:
                    returned = f" -> {type_text(each.type)}"
                lines.append(self._codegen.generate_output(_text(each.args[0], names)))
                continue
            done = [used.name for used in each.all_input_nodes if last_use[used] is each]
            done += [] if each.users else [each.name]
            ending = f";  {' = '.join([*done, 'None'])}" if done else ""
            lines.append(f"{each.name} = {_call_text(each, root_module, names)}{ending}")
        head = self._codegen.gen_fn_def(arguments, returned)
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        return PythonCode(f"\n\n\n{head}\n{body}", names)

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {each.format_node()}" for each in self._nodes)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self._nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        for row in rows:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())


def _reserved(name: str) -> bool:
    return keyword.iskeyword(name) or hasattr(builtins, name) or name in ("self", "torch")


def _argument_text(node: Node) -> str:
    kind = f" : {type_text(node.type)}" if node.type is not None else ""
    default = f" = {node.args[0]!r}" if node.args else ""
    return f"{node.target}{kind}{default}"


class _Words(str):
    """Text that stands for itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _text(value: Any, names: dict[str, Any]) -> Any:
    """A value as it is written: nodes by name, what has no literal by a global."""
    if isinstance(value, Node):
        return _Words(value.name)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        inner = ", ".join(repr(_text(each, names)) for each in value)
        return _Words(f"{_global(type(value), names)}({inner})")
    if isinstance(value, tuple):
        return tuple(_text(each, names) for each in value)
    if isinstance(value, list):
        return [_text(each, names) for each in value]
    if isinstance(value, dict):
        return {key: _text(each, names) for key, each in value.items()}
    if isinstance(value, slice):
        parts = (repr(_text(each, names)) for each in (value.start, value.stop, value.step))
        return _Words(f"slice({', '.join(parts)})")
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str)):
        return value if value is not Ellipsis else _Words("...")
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return value
    return _Words(_global(value, names))


def _global(value: Any, names: dict[str, Any]) -> str:
    """The name under which the text finds a value."""
    base = re.sub(r"\W+", "_", function_text(value) if callable(value) else str(value)) or "value"
    if callable(value) and getattr(builtins, base, None) is value:
        return base
    base = base if not base[0].isdigit() else f"_{base}"
    name, number = base, 0
    while name in names and names[name] is not value:
        number += 1
        name = f"{base}_{number}"
    names[name] = value
    return name


def _call_text(node: Node, root: str, names: dict[str, Any]) -> str:
    args = [repr(_text(each, names)) for each in node.args]
    if node.op == "get_attr":
        return _path(root, str(node.target))
    name = getattr(node.target, "__name__", "")
    if node.op == "call_function" and not node.kwargs:
        if getattr(node.target, "__module__", None) in ("_operator", "operator"):
            args = [f"({each})" if each.startswith("-") else each for each in args]
            if name in _INFIX and len(args) == 2:
                return f"{args[0]} {_INFIX[name]} {args[1]}"
            if name in _PREFIX and len(args) == 1:
                return f"{_PREFIX[name]}{args[0]}"
            if name == "getitem" and len(args) == 2:
                return f"{args[0]}[{args[1]}]"
        if node.target is getattr and len(args) == 2 and str(node.args[1]).isidentifier():
            return f"{args[0]}.{node.args[1]}"
    written = ", ".join([*args, *(f"{k} = {_text(v, names)!r}" for k, v in node.kwargs.items())])
    if node.op == "call_method":
        rest = ", ".join(
            [*args[1:], *(f"{k} = {_text(v, names)!r}" for k, v in node.kwargs.items())]
        )
        return f"{args[0]}.{node.target}({rest})"
    if node.op == "call_module":
        return f"{_path(root, str(node.target))}({written})"
    return f"{_global(node.target, names)}({written})"


def _path(root: str, target: str) -> str:
    """The expression for an attribute of an attribute; numbered modules by getattr."""
    for part in target.split("."):
        root = f"{root}.{part}" if part.isidentifier() else f'getattr({root}, "{part}")'
    return root


__getattr__ = module_getattr(__name__)
