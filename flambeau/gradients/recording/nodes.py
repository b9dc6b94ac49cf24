"""Making operator nodes of any shape: edges, layouts, saved values.

Keeps     values go through saved.save, so that the user's hooks see each of them.
Touches   graph, plan, saved, members, anomaly.
Not here  the fast lanes of common shapes (record.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.gradients import anomaly
from flambeau.gradients.graph import OperatorNode, next_sequence
from flambeau.gradients.members import history
from flambeau.gradients.recording.plan import WIDTHS, Plan
from flambeau.gradients.saved import OWN, SPECIAL, save

NUMBERS: Final = frozenset((float, int, bool, complex, type(None)))


def edges_of(plan: Plan, operands: Any) -> tuple[list[Any], list[Any], list[int]]:
    """Histories and layouts of the non-number operands, flattened, and how many each has."""
    edges: list[Any] = []
    layouts: list[Any] = []
    widths: list[int] = []
    for position in plan.positions:
        operand = operands[position]
        group = operand if plan.roles[position][1] == "tensors" else (operand,)
        widths.append(len(group))
        for each in group:
            if each.__class__ in NUMBERS:
                edges.append(None)
                layouts.append(None)
            else:
                edges.append(history(each))
                layouts.append(each._layout)
    return edges, layouts, widths


def make_node(
    plan: Plan, attributes: Any, edges: list[Any], layouts: list[Any], widths: list[int], site: Any
) -> OperatorNode:
    """A node without saved values yet."""
    node = OperatorNode()
    node.plan = plan
    node.attributes = {**attributes, WIDTHS: widths} if plan.has_sequences else attributes
    node.edges = tuple(edges)
    node.layouts = tuple(layouts)
    node.extras = None
    node.site = site
    node.sequence = next_sequence()
    if SPECIAL and anomaly.is_enabled():
        node.with_extras().trace = anomaly.forward_trace()
    return node


def save_slots(plan: Plan, node: OperatorNode, operands: Any, outputs: Any) -> None:
    """Save what the needed cotangents read, through the hooks of this thread."""
    flags = plan.saves_for(node.edges, node.attributes[WIDTHS] if plan.has_sequences else ())
    slots: list[Any] = []
    holds_tensor = False
    # Views of any number have no names to be saved by.
    values = (*operands, *outputs)[: plan.n_slots]
    edges = iter(node.edges)
    for slot, (value, wanted) in enumerate(zip(values, flags, strict=True)):
        is_operand = slot < len(operands)
        if value.__class__ in (list, tuple):
            histories = [next(edges) for _ in value]
            if wanted:
                holds_tensor = True
                value = [save(each, own) for each, own in zip(value, histories, strict=True)]
        else:
            # Of results that carry no gradient, such as indices, nothing leads back here.
            own: Any = OWN if is_operand or value._layout.dtype.category >= 2 else None
            if is_operand:
                own = next(edges) if plan.roles[slot][1] != "number" else None
            if wanted and value.__class__ not in NUMBERS:
                holds_tensor = True
                value = save(value, own)
            elif wanted and is_operand and plan.roles[slot][1] == "tensor":
                holds_tensor = holds_tensor or value is not None  # torch saves it as a tensor
        slots.append(value if wanted else None)
    node.saved = tuple(slots) if holds_tensor else slots
