"""Nodes of the graph and where a tensor stands in it.

Keeps     an edge points from a node to what made its operand: a Node (its only output), an Output
          (one of several) or an AccumulateGrad (a leaf). Edges lead to smaller sequence numbers
          only, so decreasing numbers are an order of execution. Nothing here holds a Tensor.
Touches   runtime, saved, names.
Not here  making nodes (record.py), running them (backward.py)."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from flambeau.base.errors import helped
from flambeau.engine.view import UNPLACED
from flambeau.gradients import names
from flambeau.gradients.runtime import RUNTIME
from flambeau.gradients.saved import FREED, value_of

# Key of the layouts of several outputs beside an operator's own attributes (no attribute's name
# has a space).
OUTPUT_LAYOUTS: Final = "output layouts"

# One counter for all threads: `next` on it is atomic.
next_sequence: Callable[[], int] = itertools.count(1).__next__


class Extras:
    """Hooks and notes of one node; most nodes have none.

    tensor_hooks   output index -> hooks on the tensor, run before the node (id -> function)
    retained       output index -> weak reference to the tensor whose .grad is to be set
    pre, post      hooks on the node: before it runs, after it ran
    accumulated    leaves: hooks after .grad was updated
    metadata       the user's dict       trace   the forward call's traceback (anomaly mode)
    """

    __slots__ = (
        "accumulated", "metadata", "post", "pre", "retained", "tensor_hooks", "trace"
    )  # fmt: skip

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, dict[int, Callable[..., Any]]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}
        self.metadata: dict[Any, Any] = {}
        self.trace: str | None = None


class Node:
    """One recorded operation of the graph; torch's `grad_fn`."""

    __slots__ = ("__weakref__", "edges", "extras", "layouts", "sequence", "site")

    output_index: ClassVar[int] = 0  # as the history of a tensor, a node is its output 0
    # Run even if no cotangent arrives (user Functions get zeros).
    always_runs: ClassVar[bool] = False

    edges: Sequence[Any]
    layouts: Sequence[Any]  # of the operands, in the order of edges (None: a number)
    extras: Extras | None
    sequence: int
    site: Any

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """Cotangents of the operands, one an edge, not yet conformed; None where there is none.

        `cotangent` is a tensor for a node that is its output's history itself, else a list with
        one cotangent or None an output.
        """
        raise NotImplementedError

    def conformed(self, cotangent: Any) -> list[Any]:
        """`apply`, with each cotangent in its operand's shape and dtype."""
        found: list[Any] = []
        for index, (edge, value, layout) in enumerate(
            zip(self.edges, self.apply(cotangent), self.layouts, strict=True)
        ):
            if edge is None:
                value = None
            elif value is not None and value._layout is not layout:
                value = conformed(value, layout, self, index)
            found.append(value)
        return found

    def release(self) -> None:
        """Drop what was saved; a later apply raises torch's second-backward error."""

    def no_cotangents(self) -> list[Any] | None:
        """An empty list for the cotangents of several outputs; None for a single-output node."""
        return None

    def node_name(self) -> str:
        """torch's name of the node, such as MulBackward0."""
        return type(self).__name__

    def with_extras(self) -> Extras:
        """The node's extras, made if missing."""
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    # ------------------------------------------------------------ what users of grad_fn see

    def name(self) -> str:
        """torch's name of the node."""
        return self.node_name()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output index) for each operand; (None, 0) where no gradient goes."""
        return tuple([(exposed(edge), 0 if edge is None else edge.output_index)
                      for edge in self.edges])  # fmt: skip

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        return self.with_extras().metadata

    @property
    def requires_grad(self) -> bool:
        """Always true: a node exists because something wants its gradient."""
        return True

    def _sequence_nr(self) -> int:
        return self.sequence

    def register_hook(self, function: Callable[..., Any]) -> Any:
        """Call function(grad_inputs, grad_outputs) after the node ran; may return new inputs."""
        from flambeau.gradients.hooks import NodeHandle

        return NodeHandle(self.with_extras().post, function)

    def register_prehook(self, function: Callable[..., Any]) -> Any:
        """Call function(grad_outputs) before the node runs; may return new ones."""
        from flambeau.gradients.hooks import NodeHandle

        return NodeHandle(self.with_extras().pre, function)

    def _register_hook_dict(self, tensor: Any) -> None:
        """torch's internal name; hooks live on the node already."""

    def __call__(self, *cotangents: Any) -> Any:
        """Apply the node to cotangents by hand, as torch allows."""
        found = tuple(self.apply(cotangents[0] if len(cotangents) == 1 else list(cotangents)))
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"<{self.node_name()} object at {id(self):#x}>"


class Output:
    """One of several outputs of a node, as the history of a tensor."""

    __slots__ = ("node", "output_index")

    def __init__(self, node: Node, output_index: int) -> None:
        self.node = node
        self.output_index = output_index

    def node_name(self) -> str:
        """Name of the node."""
        return self.node.node_name()


class OperatorNode(Node):
    """A recorded operator: its plan, what its gradient reads, and the layouts of its operands.

    saved      by the plan's slots; a tuple holds tensors and is dropped by release, a list holds
               none and stays; None once dropped
    """

    __slots__ = ("attributes", "plan", "saved")

    plan: Any
    attributes: dict[str, Any]
    saved: Sequence[Any] | None

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """The operator's vjp on what was saved."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        return self.plan.differentiate(self, cotangent, saved)  # type: ignore[no-any-return]

    def release(self) -> None:
        """Drop saved tensors; a node that saved none can run again."""
        if self.saved.__class__ is tuple:
            self.saved = None

    def no_cotangents(self) -> list[Any] | None:
        """One place an output where there are several."""
        return [None] * len(self.attributes[OUTPUT_LAYOUTS]) if self.plan.multiple else None

    def node_name(self) -> str:
        """torch's class name, from the operator and the form it was called in."""
        if self.__class__ is not OperatorNode:
            return type(self).__name__
        plan = self.plan
        return names.node_name(
            plan.operator.name, self.layouts, self.attributes, in_place=plan.zero_target
        )

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output index) for each operand that torch's overload has an edge for."""
        from flambeau.gradients.recording import steps

        edges = super().next_functions
        operator = self.plan.operator.name
        shown = tuple([edges[i] for i in names.shown_edges(operator, self.layouts)])
        return steps.with_steps(self, operator, shown, step)

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_result` and the like, by torch's or flambeau's names."""
        if name.startswith("_saved_"):
            wanted = name.removeprefix("_saved_")
            slot = self.plan.slot_of(wanted)
            if slot is not None:
                if self.saved is None:
                    raise RuntimeError(FREED)
                return value_of(self.saved[slot], self)
            if wanted in self.attributes:
                return self.attributes[wanted]
        raise AttributeError(f"'{self.node_name()}' object has no attribute '{name}'")


class Step(Node):
    """A node that is only shown: what it stands for is run by the node it was reached from."""

    __slots__ = ("shown",)

    def __init__(self, shown: tuple[tuple[Any, int], ...]) -> None:
        self.edges = self.layouts = ()
        self.extras = None
        self.site = None
        self.sequence = 0
        self.shown = shown

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """What torch's node of this name leads to."""
        return self.shown


_STEPS: dict[str, type[Step]] = {}


def step(name: str, shown: tuple[tuple[Any, int], ...]) -> Step:
    """A node to be shown, of a class called `name`."""
    made = _STEPS.get(name)
    if made is None:
        made = _STEPS.setdefault(name, type(name, (Step,), {"__slots__": ()}))
    return made(shown)


# Slots of a node of one or two operands that saved none of them nor its result.
NOTHING: Final[list[Any]] = [None, None, None]


class AccumulateGrad(Node):
    """The leaf of a graph: adds what arrives to its tensor's .grad.

    Knows the tensor weakly (the tensor holds this node); where the tensor has gone but the graph
    has not, `variable` makes another on the same memory.
    """

    __slots__ = ("layout", "offset", "owner", "storage", "versions")

    def __init__(self, tensor: Any) -> None:
        self.edges = self.layouts = ()
        self.extras = None
        self.sequence = next_sequence()
        self.site = None
        self.owner = weakref.ref(tensor)
        self.layout = tensor._layout
        self.storage = tensor._storage
        self.offset = tensor._offset
        self.versions = tensor._versions

    @property
    def variable(self) -> Any:
        """The leaf tensor."""
        tensor = self.owner()
        if tensor is None:
            tensor = RUNTIME.new(RUNTIME.tensor)
            tensor._storage, tensor._layout, tensor._offset = (
                self.storage, self.layout, self.offset
            )  # fmt: skip
            tensor._place = UNPLACED
            tensor._base = None
            tensor._autograd = self
            if self.versions is not None:
                tensor._versions = self.versions
            self.owner = weakref.ref(tensor)
        return tensor

    def name(self) -> str:
        """torch's qualified name."""
        return "torch::autograd::AccumulateGrad"


def exposed(history: Any) -> Any:
    """The node behind a history as users see it: of a class with torch's name."""
    node = history.node if history.__class__ is Output else history
    if node.__class__ is OperatorNode:
        node.__class__ = named_class(node.node_name())
    return node


_NAMED: dict[str, type[OperatorNode]] = {}


def named_class(name: str) -> type[OperatorNode]:
    """Class of the operator nodes called `name`, so that type(grad_fn).__name__ is torch's."""
    found = _NAMED.get(name)
    if found is None:
        found = _NAMED.setdefault(name, type(name, (OperatorNode,), {"__slots__": ()}))
    return found


# ---------------------------------------------------------------- conforming cotangents


def conformed(cotangent: Any, layout: Any, node: Node, index: int) -> Any:
    """A cotangent in the shape and dtype of the operand: summed over what was broadcast."""
    have = cotangent._layout
    if have.shape != layout.shape:
        cotangent = summed_to(cotangent, layout.shape, node, index)
        have = cotangent._layout
    if have.dtype is not layout.dtype:
        if have.dtype.is_complex and not layout.dtype.is_complex:
            cotangent = RUNTIME.functions.real(cotangent)
        if cotangent._layout.dtype is not layout.dtype:
            cotangent = cotangent.to(layout.dtype)
    return cotangent


def summed_to(cotangent: Any, shape: tuple[int, ...], node: Node, index: int) -> Any:
    """Sum over the dims that broadcasting added or stretched."""
    have = cotangent._layout.shape
    dims, keeps, reshapes = _SUMS.get((have, shape)) or _learn_sum(have, shape, node, index)
    if dims:
        cotangent = RUNTIME.functions.sum(cotangent, dims, keepdim=keeps)
    return cotangent.reshape(shape) if reshapes else cotangent


MAX_SUMS: Final = 4096
# (shape, wanted shape) -> dims to sum over, whether they are kept, whether a reshape follows.
_SUMS: Final[dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], bool, bool]]] = {}


def _learn_sum(
    have: tuple[int, ...], shape: tuple[int, ...], node: Node, index: int
) -> tuple[tuple[int, ...], bool, bool]:
    lead = len(have) - len(shape)
    fits = lead >= 0 and all(
        want in (1, size) for want, size in zip(shape, have[lead:], strict=True)
    )
    if not fits:
        raise RuntimeError(
            helped(
                f"Function {node.node_name()} returned an invalid gradient at index {index} - got "
                f"{list(have)} but expected shape compatible with {list(shape)}",
                fix="return a gradient of the operand's shape, or one it broadcasts to",
            )
        )
    stretched = [
        lead + dim for dim, want in enumerate(shape) if want == 1 and have[lead + dim] != 1
    ]
    if lead or stretched:
        stretched += _ones_behind(have, (*range(lead), *stretched), lead)
    dims = (*range(lead), *stretched)
    found = dims, bool(stretched), bool(lead and (stretched or not dims))
    if len(_SUMS) >= MAX_SUMS:
        _SUMS.clear()
    _SUMS[have, shape] = found
    return found


def _ones_behind(have: tuple[int, ...], dims: tuple[int, ...], lead: int) -> list[int]:
    """Dims of one element behind the last longer one, where that is summed over: with them it is a
    sum over last dims, which is quicker than one over dims before others."""
    last = len(have)
    while last and have[last - 1] == 1:
        last -= 1
    return list(range(max(last, lead), len(have))) if last - 1 in dims else []
