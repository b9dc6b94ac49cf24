"""torch.fx: programs as graphs of their steps, to look at and to change.

Keeps     a traced module computes what the module computes, by the same functions; fusion needs no
          trace.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_FILES: dict[str, tuple[str, ...]] = {
    "_symbolic_trace": ("Tracer", "symbolic_trace", "wrap"),
    "graph": ("CodeGen", "Graph"),
    "graph_module": ("GraphModule",),
    "interpreter": ("Interpreter", "Transformer"),
    "node": ("Node", "map_arg"),
    "proxy": ("Proxy",),
}
_WHERE = {name: file for file, names in _FILES.items() for name in names}

__getattr__, __dir__ = lazy_names(__name__, _WHERE, (*_FILES, "experimental"))
