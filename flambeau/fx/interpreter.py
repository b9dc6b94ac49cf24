"""A graph run node by node, by methods that a program may replace.

Keeps     a value is forgotten after its last use.
Touches   graph.py, proxy.py.
Not here  running the whole text (graph_module.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_arg
from flambeau.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a module's graph; subclasses replace run_node, call_function and the like."""

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None,
            enable_io_processing: bool = True) -> Any:  # fmt: skip
        """What the graph gives for these arguments."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        last_use = {used: node for node in self.graph.nodes for used in node.all_input_nodes}
        for each in self.graph.nodes:
            if each in self.env:
                continue
            self.env[each] = self.run_node(each)
            if each.op == "output":
                return self.env[each]
            if self.garbage_collect_values:
                for used in each.all_input_nodes:
                    if last_use[used] is each:
                        self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The result of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments, in which results stand in the place of nodes."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        return args, kwargs

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with results in the place of nodes."""
        return map_arg(args, lambda node: self.env[node])

    def fetch_attr(self, target: str) -> Any:
        """What the module has under a dotted name."""
        found = self.module
        for name in target.split("."):
            found = getattr(found, name)
        return found

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The next argument."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A method's result."""
        first, *rest = args
        return getattr(first, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A module's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What the graph returns."""
        return args[0]


class Transformer(Interpreter):
    """Makes another module of a module's graph; subclasses say what a node becomes."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = TracerBase()
        self.tracer.graph = self.new_graph

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The same argument in the new graph."""
        default = args[0] if args else Ellipsis
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The same attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same call in the new graph."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same call in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run()
        if result is not None:
            self.new_graph.output(map_proxies(result))
        return GraphModule(self.module, self.new_graph)

    def run(self, *args: Any, **named: Any) -> Any:
        """Arguments are made, not given."""
        return super().run(*args, **named)


def map_proxies(value: Any) -> Any:
    """The same value with nodes in the place of proxies."""
    from flambeau.fx.node import map_aggregate

    return map_aggregate(value, lambda each: each.node if isinstance(each, Proxy) else each)


__getattr__ = module_getattr(__name__)
