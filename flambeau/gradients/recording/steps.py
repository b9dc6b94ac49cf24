"""Steps that torch's graph has where one node of ours stands, for whoever walks the graph.

Keeps     made when somebody looks and kept as long as the node: `linear` shows the transpose
          between it and the weight, cross entropy the logarithms of softmax.
Touches   the graph only through the class of nodes it is given.
Not here  nodes that run (graph.py), the names of nodes themselves (names.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

Edge = tuple[Any, int]  # a node and which of its outputs
Make = Callable[[str, tuple[Edge, ...]], Any]

_KNOWN: WeakKeyDictionary[Any, tuple[Edge, ...]] = WeakKeyDictionary()


def with_steps(node: Any, operator: str, edges: tuple[Edge, ...], make: Make) -> tuple[Edge, ...]:
    """The edges of a node of this operator, with torch's steps in between.

    make    a node to be shown, of a name and edges
    """
    rule = _RULES.get(operator)
    if rule is None:
        return edges
    found = _KNOWN.get(node)
    if found is None:
        found = _KNOWN[node] = rule(node.layouts, node.attributes, edges, _Steps(make))
    return found


class _Steps:
    """Makes steps; nothing leads to what takes no gradient."""

    def __init__(self, make: Make) -> None:
        self.make = make

    def __call__(self, name: str, *edges: Edge) -> Edge:
        if all(node is None for node, _ in edges):
            return (None, 0)
        return self.make(f"{name}Backward0", edges), 0


def _linear(
    layouts: Sequence[Any], attributes: Any, edges: tuple[Edge, ...], step: _Steps
) -> tuple[Edge, ...]:
    """addmm(bias, input, weight.t()) or mm(input, weight.t()), input as a matrix."""
    *bias, input, weight = edges
    if len(layouts[1].shape) != 2:
        return edges
    rank = len(layouts[0].shape)
    turned = step("T", weight)
    if rank == 2:
        return (*bias, input, turned)
    if bias:
        return (step("Addmm", *bias, step("View", input), turned),)
    return (step("Mm", step("Unsqueeze" if rank == 1 else "View", input), turned),)


def _matmul(
    layouts: Sequence[Any], attributes: Any, edges: tuple[Edge, ...], step: _Steps
) -> tuple[Edge, ...]:
    """Operands of other than two dims as the matrices, or batches of them, that are multiplied."""
    left, right = edges
    ranks = tuple([len(each.shape) for each in layouts])
    if ranks == (1, 2):
        return (step("Mm", step("Unsqueeze", left), right),)
    if ranks[0] > 2 and ranks[1] == 2:
        return (step("Mm", step("View", left), right),)
    if min(ranks) > 2:
        batches = [step("View", step("Expand", each)) for each in edges]
        return (step("Bmm", *batches),)
    return edges


def _cross_entropy(
    layouts: Sequence[Any], attributes: Any, edges: tuple[Edge, ...], step: _Steps
) -> tuple[Edge, ...]:
    (scores,) = edges
    if layouts[1].dtype.is_floating_point or attributes.get("label_smoothing"):
        return edges
    logarithms = step("LogSoftmax", scores)
    return (step("View", logarithms) if len(layouts[0].shape) == 3 else logarithms,)


def _absolute_error(
    layouts: Sequence[Any], attributes: Any, edges: tuple[Edge, ...], step: _Steps
) -> tuple[Edge, ...]:
    difference = step("Sub", *edges)
    return (difference if attributes.get("reduction") == "none" else step("Abs", difference),)


_RULES: dict[str, Callable[..., tuple[Edge, ...]]] = {
    "linear": _linear, "matmul": _matmul, "cross_entropy": _cross_entropy,
    "l1_loss": _absolute_error,
}  # fmt: skip
