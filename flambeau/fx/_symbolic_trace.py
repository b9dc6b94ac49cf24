"""A module or function run with proxies: its steps become the nodes of a graph.

Keeps     while a trace runs, modules' calls and attributes are looked at; afterwards they are what
          they were.
Touches   nn.Module, the globals of functions that are marked by wrap.
Not here  what a proxy does (proxy.py), the module that a graph becomes (graph_module.py)."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Argument
from flambeau.fx.proxy import Proxy, TracerBase
from flambeau.nn.modules.container import Sequential
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

__all__ = ["Tracer", "symbolic_trace", "wrap"]

# (globals, name) of functions that are not looked into, as marked by wrap.
_WRAPPED: dict[tuple[int, str], tuple[dict[str, Any], str]] = {}


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Marks a function of the module that a tracer is not to look into: returned as it is.

    >>> wrap("len")
    'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    if isinstance(fn_or_name, str):
        space = sys._getframe(1).f_globals
    else:
        space = getattr(fn_or_name, "__globals__", sys._getframe(1).f_globals)
    _WRAPPED[(id(space), name)] = (space, name)
    return fn_or_name


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls with proxies become nodes."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        found = _first_proxy((args, kwargs))
        if found is None:
            return function(*args, **kwargs)
        return found.tracer.create_proxy("call_function", function, args, kwargs)

    return called


def _first_proxy(values: Any) -> Proxy | None:
    if isinstance(values, Proxy):
        return values
    parts = values.values() if isinstance(values, dict) else values
    if isinstance(values, (tuple, list, dict)):
        return next((p for p in map(_first_proxy, parts) if p is not None), None)
    return None


class Tracer(TracerBase):
    """Traces modules and functions; subclasses say which modules are single steps.

    autowrap_modules     modules of Python whose functions are single steps
    autowrap_functions   functions that are single steps
    """

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        self._single = {
            id(value): value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(each): each for each in autowrap_functions}
        self.root: Any = None
        self.tensor_attrs: dict[int, str] = {}
        self._paths: dict[int, str] = {}
        self._parameters: dict[int, Proxy] = {}

    # ------------------------------------------------------------- for subclasses to say

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a module is one step: torch's own are, but for Sequential."""
        own = m.__module__.startswith(("flambeau.nn", "flambeau.ao.nn", "torch.nn"))
        return own and not isinstance(m, Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The name of a module in the root.

        Raises   NameError: it is not there"""
        found = self._paths.get(id(mod))
        if found is None:
            found = next((n for n, each in self.root.named_modules() if each is mod), None)
        if found is None:
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(
        self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A module's call: one step, or traced through."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[Any, Any]) -> Any:
        """An attribute of a module: a parameter or buffer is a step that reads it."""
        if isinstance(attr_val, Tensor):
            for items in (self.root.named_parameters, self.root.named_buffers):
                for name, each in items():
                    if each is attr_val:
                        if name not in parameter_proxy_cache:
                            parameter_proxy_cache[name] = self.create_proxy(
                                "get_attr", name, (), {}
                            )
                        return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Any) -> Argument:
        """An argument as a graph has it: tensors and modules of the root by name."""
        return super().create_arg(a)

    def _leaf(self, a: Any) -> Any:
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Parameter):
            for name, each in self.root.named_parameters():
                if each is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            name = self.tensor_attrs.get(id(a))
            if name is None:
                number = 0
                while hasattr(self.root, f"_tensor_constant{number}"):
                    number += 1
                name = f"_tensor_constant{number}"
                self.tensor_attrs[id(a)] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return a

    # ------------------------------------------------------------------------- the trace

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module's forward, or of a function.

        concrete_args   values of arguments that are no inputs of the graph
        """
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
            first: tuple[Any, ...] = (root,)
        else:
            self.root, function, first = Module(), root, ()
        self._paths = {id(each): name for name, each in self.root.named_modules()}
        self.tensor_attrs = {
            id(value): f"{path}.{name}" if path else name
            for path, module in self.root.named_modules()
            for name, value in [*vars(module).items(), *module._buffers.items()]
            if isinstance(value, Tensor)
        }
        self._parameters = {}
        self.graph = Graph(tracer_cls=type(self))
        args, kwargs = self._inputs(function, bool(first), concrete_args or {})
        with self._looked_at(getattr(function, "__globals__", {})):
            result = function(*first, *args, **kwargs)
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=None)
        return self.graph

    def _inputs(
        self, function: Callable[..., Any], is_method: bool, concrete: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Proxies for the arguments, and the values of those that are given."""
        parameters = list(inspect.signature(inspect.unwrap(function)).parameters.values())
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for each in parameters[is_method:]:
            name = each.name
            if name in concrete:
                value = concrete[name]
            else:
                many = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}
                stars = many.get(each.kind, "")  # type: ignore[call-overload]
                default = () if each.default is each.empty or stars else (each.default,)
                kind = None if each.annotation is each.empty else each.annotation
                value = self.create_proxy(
                    "placeholder", stars + name, default, {}, name=name,
                    type_expr=None if isinstance(kind, str) else kind,
                )  # fmt: skip
            if each.kind is each.KEYWORD_ONLY:
                kwargs[name] = value
            elif each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                args.append(value)
            else:
                args += [value] if each.kind is each.VAR_POSITIONAL and value != () else []
        return args, kwargs

    @contextmanager
    def _looked_at(self, space: dict[str, Any]) -> Iterator[None]:
        """Modules' calls and attributes, and marked functions, as a trace wants them."""
        tracer, old_call, old_getattr = self, Module.__call__, Module.__getattr__

        def call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            tracer._wrap_names(getattr(type(mod).forward, "__globals__", {}), undo)

            def forward(*given: Any, **named: Any) -> Any:
                return old_call(mod, *given, **named)

            return tracer.call_module(mod, forward, args, kwargs)

        def attribute(mod: Any, name: str) -> Any:
            return tracer.getattr(name, old_getattr(mod, name), tracer._parameters)

        undo: list[tuple[dict[str, Any], str, Any, bool]] = []
        wrapped: Any = Module
        wrapped.__call__, wrapped.__getattr__ = call, attribute
        try:
            self._wrap_names(space, undo)
            for scope, name in list(_WRAPPED.values()):
                old = scope.get(name, getattr(builtins, name, None))
                undo.append((scope, name, old, name in scope))
                scope[name] = _recording(old)  # type: ignore[arg-type]
            yield
        finally:
            wrapped.__call__, wrapped.__getattr__ = old_call, old_getattr
            for scope, name, old, was_there in reversed(undo):
                if was_there:
                    scope[name] = old
                else:
                    scope.pop(name, None)

    def _wrap_names(self, space: dict[str, Any], undo: list[Any]) -> None:
        """Let the names of single functions among a module's globals record."""
        for name, value in list(space.items()):
            if not name.startswith("_") and id(value) in self._single:
                undo.append((space, name, value, True))
                space[name] = _recording(value)


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A module or function as a graph that can be looked at and changed.

    >>> import flambeau as torch
    >>> traced = symbolic_trace(lambda x: (x + 1).relu())
    >>> [each.op for each in traced.graph.nodes], traced(torch.tensor([-3.0, 1.0]))
    (['placeholder', 'call_function', 'call_method', 'output'], tensor([0., 2.]))
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "lambda")
    return GraphModule(tracer.root, graph, name)


__getattr__ = module_getattr(__name__)
