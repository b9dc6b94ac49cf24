"""What stands for a value while a program is traced: what is done with it becomes nodes.

Keeps     a program that asks a proxy for what only a value can tell is told so (TraceError).
Touches   graph.py, node.py.
Not here  which calls are stepped into (_symbolic_trace.py)."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from flambeau.base.missing import module_getattr
from flambeau.fx.graph import Graph
from flambeau.fx.node import Argument, Node, Target, map_aggregate

__all__ = ["Attribute", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """A program that cannot be traced, since it asks for values."""


class TracerBase:
    """Makes nodes of what is done with proxies."""

    graph: Graph
    record_stack_traces = False

    def create_node(
        self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """A node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node's result."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None, proxy_factory_fn: Any = None,
    ) -> Proxy:  # fmt: skip
        """A node of a call with proxies, and what stands for its result."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, given, named, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument as a graph has it: proxies become their nodes.

        Raises   NotImplementedError: what is no value that a graph can hold"""
        return map_aggregate(a, self._leaf)

    def _leaf(self, a: Any) -> Any:
        return a.node if isinstance(a, Proxy) else a

    def to_bool(self, obj: Proxy) -> bool:
        """Raises TraceError: which branch is taken, values decide."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The parts of a proxy, where the caller unpacks a known number of them.

        Raises   TraceError: a loop over a proxy"""
        frame = sys._getframe(2)
        instructions = list(dis.get_instructions(frame.f_code))
        at = next((n for n, each in enumerate(instructions) if each.offset == frame.f_lasti), None)
        if at is not None and instructions[at].opname == "UNPACK_SEQUENCE":
            count = instructions[at].argval
            parts: Any = obj
            return iter([parts[place] for place in range(count)])
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument."
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy that is given as **proxy."""
        return Attribute(obj, "keys")()


class Proxy:
    """The result of a node."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if tracer is None:
            tracer = _GraphTracer(node.graph)
        self.tracer = tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys, where the value has some."""
        return self.tracer.keys(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def __index__(self) -> NoReturn:
        raise TraceError("symbolically traced variables cannot be used as an index")

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[Any, None] = {}
        map_aggregate(
            (args, kwargs),
            lambda a: tracers.update({a.tracer: None} if isinstance(a, Proxy) else {}),
        )
        tracer = next(iter(tracers))
        name = _method_name(orig_method)
        if name is not None:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _method_name(function: Any) -> str | None:
    """The name of a tensor's method; None for a function."""
    from flambeau.tensor import Tensor

    name = getattr(function, "__name__", None)
    return name if name is not None and vars(Tensor).get(name) is function else None


class Attribute(Proxy):
    """An attribute of a proxy: called, a call of its method; else a node of its own."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute, made when it is asked for."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class _GraphTracer(TracerBase):
    """Adds nodes to a graph that was made before."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _add_operators() -> None:
    """Python's operators of proxies, from both sides."""

    def forward(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Proxy, *args: Any) -> Any:
            return self.tracer.create_proxy("call_function", function, (self, *args), {})

        return call

    def backward(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Proxy, other: Any) -> Any:
            return self.tracer.create_proxy("call_function", function, (other, self), {})

        return call

    both = ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_",
            "or_", "xor", "matmul")  # fmt: skip
    one = ("eq", "ne", "lt", "gt", "le", "ge", "neg", "pos", "invert", "getitem", "abs")
    for name in (*both, *one):
        setattr(Proxy, f"__{name.strip('_')}__", forward(getattr(operator, name)))
    for name in both:
        setattr(Proxy, f"__r{name.strip('_')}__", backward(getattr(operator, name)))
    Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


_add_operators()

__getattr__ = module_getattr(__name__)
