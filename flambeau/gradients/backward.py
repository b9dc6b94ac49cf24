"""Reverse pass: runs nodes from outputs to leaves and sums cotangents.

Keeps     a node runs once, after all its consumers, the youngest first (torch's order); leaves add
          as soon as their last consumer ran. No recursion. Saved values go node by node.
Touches   graph, hooks, accumulate, anomaly; records new operators and never launches a kernel.
Not here  argument checks of backward() and grad() (entry.py).
Source    Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 3."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from flambeau.engine.stream import Stream, current
from flambeau.gradients import anomaly, hooks
from flambeau.gradients.accumulate import accumulate
from flambeau.gradients.graph import AccumulateGrad, Node, Output, conformed
from flambeau.gradients.modes import set_mode
from flambeau.gradients.runtime import RUNTIME

_sequence: Final = attrgetter("sequence")
_NO_COTANGENTS: Final = ()


class _Running(threading.local):
    def __init__(self) -> None:
        self.passes: list[Pass] = []


_RUNNING: Final = _Running()


def current_pass() -> Pass:
    """The innermost pass running on this thread, for hooks that ask."""
    return _RUNNING.passes[-1]


class Targets:
    """Places where a pass ends: their cotangents are captured, not passed on or accumulated.

    by_node    node -> {output index: [positions in `found`]}
    """

    def __init__(self, histories: Sequence[Any]) -> None:
        self.found: list[Any] = [None] * len(histories)
        self.by_node: dict[Any, dict[int, list[int]]] = {}
        for position, history in enumerate(histories):
            node = history.node if history.__class__ is Output else history
            places = self.by_node.setdefault(node, {})
            places.setdefault(history.output_index, []).append(position)

    def capture(self, node: Any, cotangents: Sequence[Any]) -> None:
        """Keep a node's cotangents where they were asked for."""
        for index, positions in self.by_node[node].items():
            for position in positions:
                self.found[position] = cotangents[index]


class Pass:
    """One walk over the graph below some roots."""

    def __init__(
        self, keep_graph: bool, create_graph: bool, targets: Targets | None, adds: bool
    ) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.targets = targets
        self.adds = adds  # captured leaves accumulate into .grad instead (backward(inputs=...))
        # Cotangents that have arrived: a tensor, or a list for nodes of several outputs.
        self.arrived: dict[Any, Any] = {}
        self.waiting: dict[AccumulateGrad, int] = {}
        self.members: set[Any] = set()  # the nodes that may run
        self.missed: list[AccumulateGrad] = []  # leaves at which nothing arrived

    # ------------------------------------------------------------ what is to be run

    def seed(self, history: Any, cotangent: Any) -> None:
        """Start with this cotangent of a root."""
        self._add(history, cotangent)

    def _discover(self, natively: Callable[..., None] | None) -> list[Node]:
        """Every node below the roots, youngest first; counts the consumers of leaves."""
        waiting = self.waiting
        order: list[Node] = []
        seen = {node for node in self.arrived if node.__class__ is not AccumulateGrad}
        stack = list(seen)
        if natively is not None:
            natively(stack, seen, waiting, order)
        while stack:
            node = stack.pop()
            order.append(node)
            for edge in node.edges:
                if edge is None:
                    continue
                if edge.__class__ is AccumulateGrad:
                    waiting[edge] = waiting.get(edge, 0) + 1
                    continue
                if edge.__class__ is Output:
                    edge = edge.node
                if edge not in seen:
                    seen.add(edge)
                    stack.append(edge)
        order.sort(key=_sequence, reverse=True)
        self.members = seen
        return order

    def count_of(self, histories: Iterable[Any]) -> int:
        """How many of these places this pass computes a gradient for."""
        nodes = [each.node if each.__class__ is Output else each for each in histories]
        return sum(node in self.members or node in self.waiting for node in nodes)

    def _needed(self, order: list[Node], targets: Targets) -> set[Any]:
        """Nodes on a way to a target; leaves count only those consumers."""
        wanted = targets.by_node
        needed: set[Any] = set()
        self.waiting.clear()
        for node in reversed(order):
            on_the_way = False
            for edge in node.edges:
                below = edge.node if edge.__class__ is Output else edge
                if below in wanted or below in needed:
                    on_the_way = True
                    break
            if on_the_way:
                needed.add(node)
                for edge in node.edges:
                    if edge.__class__ is AccumulateGrad:
                        self.waiting[edge] = self.waiting.get(edge, 0) + 1
        return needed

    # ------------------------------------------------------------ running

    def run(self) -> None:
        """Walk from the seeded roots."""
        recorder = current()
        mode_before, site_before = recorder.grad_enabled, recorder.site
        passes = _RUNNING.passes
        depth = len(passes)
        takers = RUNTIME.takers
        arguments_before, modes_before = takers.arguments, takers.modes
        outer_before, takers.outer = takers.outer, (arguments_before, modes_before)
        takers.arguments = takers.modes = recorder.asks = False
        try:
            set_mode(self.create_graph)
            discover, walk = RUNTIME.native_walk() or (None, None)
            order = self._discover(discover)
            targets = self.targets
            needed = None if targets is None else self._needed(order, targets)
            ends_within = False  # at a node, whose cotangents Python captures
            if targets is not None and needed is not None:
                ends_within = not targets.by_node.keys().isdisjoint(self.members)
                self.members = needed | set(targets.by_node)
                if not ends_within:
                    order = [each for each in order if each in needed]
            passes.append(self)
            for leaf in [each for each in self.arrived if each.__class__ is AccumulateGrad]:
                if leaf not in self.waiting:
                    self._finish_leaf(leaf)
            order.reverse()
            while order:
                if walk is not None and not ends_within and not anomaly.is_enabled():
                    self._walk(walk, order, recorder)
                    if not order:
                        break
                self._visit(order.pop(), needed, recorder)
        finally:
            # No call: an exception from a signal handler finds no place to come between.
            recorder.grad_enabled = mode_before
            recorder.site = site_before
            takers.arguments, takers.modes = arguments_before, modes_before
            takers.outer = outer_before
            recorder.asks = arguments_before
            del passes[depth:]

    def _walk(self, walk: Callable[..., bool], order: list[Node], recorder: Stream) -> None:
        """Run the ordinary nodes at the end of `order` natively."""
        failed: list[Node] = []
        try:
            walk(
                order, self.arrived, self.waiting, self.keep_graph, recorder, self._add,
                self._finish_leaf, failed,
            )  # fmt: skip
        except Exception as error:
            if failed:
                _annotate(error, failed[0])
            raise

    def _visit(self, node: Node, needed: set[Any] | None, recorder: Stream) -> None:
        """Run one node, with its hooks, where it is on the way to a target."""
        targets = self.targets
        runs = needed is None or node in needed
        captured = targets is not None and node in targets.by_node
        if not runs and not captured:  # as in torch, not even its hooks run
            self.arrived.pop(node, None)
            return
        if node.extras is not None or captured:
            cotangent = self._through_hooks(node, captured, runs)
            if cotangent is not None:
                self.arrived[node] = cotangent
                cotangent = None
        if runs:
            recorder.site = node.site  # what the gradient records is the forward line's
            # No name here may hold the cotangent: see accumulate.
            self._step(node, self.arrived.pop(node, None))
        else:
            self.arrived.pop(node, None)

    def _step(self, node: Node, cotangent: Any) -> None:
        """Run one node and hand its cotangents on."""
        if cotangent is None and not node.always_runs:
            found: Sequence[Any] = [None] * len(node.edges)
        else:
            if cotangent is None:
                cotangent = node.no_cotangents()
            try:
                found = node.apply(cotangent)
                if node.extras is not None or anomaly.is_enabled():
                    found = self._after(node, found, cotangent)
            except Exception as error:
                _annotate(error, node)
                raise
        if not self.keep_graph:
            node.release()
        arrived = self.arrived
        ready: list[AccumulateGrad] | None = None
        layouts = node.layouts
        cotangent = None
        for index, edge in enumerate(node.edges):
            if edge is None:
                continue
            value = found[index]
            if value is not None:
                if value._layout is not layouts[index]:
                    value = conformed(value, layouts[index], node, index)
                if edge.__class__ is Output:
                    self._add(edge, value)
                else:
                    earlier = arrived.get(edge)
                    arrived[edge] = value if earlier is None else earlier + value
            if edge.__class__ is AccumulateGrad:
                left = self.waiting[edge] - 1
                self.waiting[edge] = left
                if left == 0:
                    if ready is None:
                        ready = []
                    ready.append(edge)
        if ready is not None:
            # Nothing but `arrived` holds the cotangents now: a leaf may take one without a copy.
            found = _NO_COTANGENTS
            value = earlier = None
            for leaf in ready:
                self._finish_leaf(leaf)

    def _add(self, edge: Any, value: Any) -> None:
        """Add a cotangent to what has arrived at an edge."""
        arrived = self.arrived
        if edge.__class__ is Output:
            places: Any = arrived.get(edge.node)
            if places is None:
                places = arrived[edge.node] = edge.node.no_cotangents()
            earlier = places[edge.output_index]
            places[edge.output_index] = value if earlier is None else earlier + value
        else:
            earlier = arrived.get(edge)
            arrived[edge] = value if earlier is None else earlier + value

    def _after(self, node: Node, found: Sequence[Any], cotangent: Any) -> Sequence[Any]:
        """Hooks and checks on what a node returned; most nodes have none."""
        extras = node.extras
        if extras is not None and extras.post:
            shown = [
                value if value is None or edge is None or value._layout is layout
                else conformed(value, layout, node, index)
                for index, (value, edge, layout) in enumerate(
                    zip(found, node.edges, node.layouts, strict=True)
                )
            ]  # fmt: skip
            given = cotangent if cotangent.__class__ is list else (cotangent,)
            shown = [value if edge is not None else None
                     for value, edge in zip(shown, node.edges, strict=True)]  # fmt: skip
            found = hooks.run_post_hooks(extras, shown, given)
        if anomaly.is_enabled() and anomaly.is_check_nan_enabled():
            anomaly.check(node, found)
        return found

    def _through_hooks(self, node: Node, captured: bool, runs: bool) -> Any:
        """Cotangents of a node after its tensors' hooks; captures them where asked."""
        cotangent = self.arrived.pop(node, None)
        several = cotangent.__class__ is list
        cotangents = cotangent if several else [cotangent]
        if cotangent is None:
            cotangents = node.no_cotangents() or [None]
        extras = node.extras
        if captured and runs and self.targets is not None:
            # As in torch, hooks show in what is captured only where the pass ends here.
            self.targets.capture(node, list(cotangents))
        if extras is not None:
            hooks.run_tensor_hooks(extras, cotangents)
            if extras.retained:
                hooks.keep_retained(extras, cotangents)
        if captured and not runs and self.targets is not None:
            self.targets.capture(node, cotangents)
        if extras is not None and extras.pre and runs and cotangent is not None:
            cotangents = hooks.run_pre_hooks(extras, cotangents)
        if cotangent is None:
            return None
        return cotangents if several else cotangents[0]

    def _finish_leaf(self, leaf: AccumulateGrad) -> None:
        """All consumers of a leaf have run: capture or accumulate."""
        targets = self.targets
        captured = targets is not None and leaf in targets.by_node
        if targets is not None and not captured:
            self.arrived.pop(leaf, None)
            return
        if leaf not in self.arrived:
            self.missed.append(leaf)
            return
        if targets is not None and not self.adds:
            cotangents = [self.arrived.pop(leaf)]
            if leaf.extras is not None:
                hooks.run_tensor_hooks(leaf.extras, cotangents)
            targets.capture(leaf, cotangents)
            return
        accumulate(leaf, self.arrived, self.create_graph)


def place(own: Any) -> tuple[int, int]:
    """What tells a history from others."""
    return id(getattr(own, "node", own)), own.output_index


def reached(roots: Iterable[tuple[Any, Any]]) -> set[tuple[int, int]]:
    """Places that the graph leads to by operators alone. One that hands nothing to an operand has
    a derivative of zero there (relu's, of the second order); a user's function or hook means it."""
    waiting = [own for own, _ in roots]
    seen: set[tuple[int, int]] = set()
    while waiting:
        own = waiting.pop()
        if own is None or place(own) in seen:
            continue
        seen.add(place(own))
        node = getattr(own, "node", own)
        if not node.always_runs and not (node.extras is not None and node.extras.post):
            waiting += getattr(node, "edges", ())
    return seen


def _zeros_at(leaves: list[AccumulateGrad], roots: list[tuple[Any, Any]], walk: Pass) -> None:
    """Accumulate zeros in leaves at which nothing arrived, where operators lead to them."""
    places = reached(roots)
    for leaf in leaves:
        if place(leaf) in places:
            layout = leaf.layout
            walk.arrived[leaf] = RUNTIME.functions.zeros(
                layout.shape, dtype=layout.dtype, device=layout.device
            )
            accumulate(leaf, walk.arrived, walk.create_graph)


def _annotate(error: Exception, node: Node) -> None:
    """Say which forward call an error in a backward belongs to."""
    if anomaly.is_enabled():
        anomaly.explain(node)
    where = RUNTIME.describe(node.site)
    if where:
        error.add_note(f"in the gradient of {node.node_name()}, recorded at {where}")


_HERE = threading.local()


def goes_to_leaves() -> bool:
    """Whether the passes that run in this thread add to .grad of all leaves."""
    found: bool = getattr(_HERE, "leaves", True)
    return found


def run_backward(
    roots: Iterable[tuple[Any, Any]],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    adds: bool = True,
) -> list[Any]:
    """Run a pass from (history, cotangent) roots; what arrived at `inputs` (histories)."""
    targets = None if inputs is None else Targets(inputs)
    walk = Pass(keep_graph, create_graph, targets, adds)
    roots = list(roots)
    for history, cotangent in roots:
        walk.seed(history, cotangent)
    before = goes_to_leaves()
    _HERE.leaves = before and inputs is None
    try:
        walk.run()
    finally:
        _HERE.leaves = before
    if walk.missed and adds:
        _zeros_at(walk.missed, roots, walk)
    return [] if targets is None else targets.found
