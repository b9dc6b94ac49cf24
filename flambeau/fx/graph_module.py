"""A graph as a module: its forward is the graph's text, compiled.

Keeps     the parameters and modules that the graph names, and no others; setting `graph`, or
          recompile(), makes forward anew.
Touches   nn.Module; linecache, so that tracebacks show the text.
Not here  the text (graph.py)."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any, Final

from flambeau.base.missing import module_getattr
from flambeau.fx.graph import Graph, PythonCode
from flambeau.nn.modules.module import Module
from flambeau.tensor import Tensor

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY: Final = "_user_preserved_attributes"
_COUNT: Final = itertools.count()


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give a module what another has under a dotted name; what is between is made."""
    *prefix, field = target.split(".")
    for name in prefix:
        from_module, inner = getattr(from_module, name), getattr(to_module, name, None)
        if from_module is inner:
            return
        if inner is None:
            inner = Module()
            setattr(to_module, name, inner)
        to_module = inner
    value = getattr(from_module, field)
    if isinstance(value, Tensor) and field not in getattr(from_module, "_parameters", {}):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Set what a module has under a dotted name; what is between is made."""
    *prefix, field = target.split(".")
    for name in prefix:
        inner = getattr(to_module, name, None)
        if inner is None:
            inner = Module()
            setattr(to_module, name, inner)
        to_module = inner
    if isinstance(from_obj, Tensor) and not hasattr(to_module, field):
        to_module.register_buffer(field, from_obj)
    else:
        setattr(to_module, field, from_obj)


class _CodeOnlyModule(Module):
    """A module with the attributes of another and nothing else."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module whose forward is a graph.

    root         the module that the graph names parts of, or a dict of them by name
    class_name   the name of its class, as it is printed
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, whose forward is its own text.
        base = next(each for each in cls.__mro__ if "_is_for_one" not in vars(each))
        return super().__new__(type("GraphModuleImpl", (base,), {"_is_for_one": True}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        names = [str(each.target) for each in graph.nodes if each.op in ("get_attr", "call_module")]
        for name in names:
            if isinstance(root, dict):
                if name not in root:
                    raise RuntimeError(f"Node referenced target {name} but that target was not "
                                       "provided in `root`!")  # fmt: skip
                _assign_attr(root[name], self, name)
            else:
                _copy_attr(root, self, name)
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; changed in place, recompile() is wanted."""
        found: Graph = self.__dict__["_graph"]
        return found

    @graph.setter
    def graph(self, given: Graph) -> None:
        if not isinstance(given, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(given)}")
        self.__dict__["_graph"] = given
        given.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        found: str = self.__dict__["_code"]
        return found

    def recompile(self) -> PythonCode:
        """Make forward of the graph as it is now."""
        written = self.graph.python_code("self")
        self.__dict__["_code"] = written.src
        file = f"<eval_with_key>.{next(_COUNT)}"
        lines = written.src.splitlines(keepends=True)
        linecache.cache[file] = (len(written.src), None, lines, file)
        names = dict(written.globals)
        exec(compile(written.src, file, "exec"), names)
        kind: Any = type(self)
        kind.forward = names["forward"]
        return written

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a dotted name; whether it could be."""
        *prefix, field = target.split(".")
        place: Any = self
        for name in prefix:
            if not hasattr(place, name):
                place.add_module(name, Module())
            place = getattr(place, name)
            if not isinstance(place, Module):
                return False
        place.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take out the module at a dotted name; whether there was one."""
        *prefix, field = target.split(".")
        place: Any = self
        for name in prefix:
            place = getattr(place, name, None)
            if not isinstance(place, Module):
                return False
        if not isinstance(getattr(place, field, None), Module):
            return False
        delattr(place, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out all modules that the graph does not name."""
        used: set[str] = set()
        for each in self.graph.nodes:
            if each.op in ("call_module", "get_attr"):
                parts = str(each.target).split(".")
                used.update(".".join(parts[: n + 1]) for n in range(len(parts)))
                if each.op == "call_module":
                    inner = self.get_submodule(str(each.target))
                    used.update(
                        f"{each.target}.{name}" for name, _ in inner.named_modules() if name
                    )
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **named: Any) -> str:
        """The text of forward as a class; printed unless it is not to be."""
        body = "".join(f"    {line}\n" if line else "\n" for line in self.code.strip().split("\n"))
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: Any) -> GraphModule:
        parts = _CodeOnlyModule(
            {k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()
             if k not in ("_graph", "_code")}
        )  # fmt: skip
        base = next(each for each in type(self).__mro__ if "_is_for_one" not in vars(each))
        made: GraphModule = GraphModule.__new__(base)
        GraphModule.__init__(made, parts, copy.deepcopy(self.graph, memo), type(self).__name__)
        made.meta = dict(self.meta)
        made.train(self.training)
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, self.graph, type(self).__name__)

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _of_graph, (state, _plain(self.graph), type(self).__name__)

    def __str__(self) -> str:
        more = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__repr__()}\n{self.code}\n{more}"


def _plain(graph: Graph) -> Graph:
    """The graph without its module, which is pickled beside it."""
    return copy.deepcopy(graph)


def _of_graph(state: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    return GraphModule(_CodeOnlyModule(state), graph, name)


__getattr__ = module_getattr(__name__)
