"""Recording: gives results their history when an operand has one.

Keeps     the common call (one output, one or two tensors) is straight-line code; a node holds no
          Tensor. Results whose dtype cannot carry a gradient get no history.
Touches   graph, plan, saved, members.
Not here  in-place writes and views (inplace.py), the derivatives (ops/)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.errors import helped
from flambeau.gradients.graph import (
    NOTHING,
    OUTPUT_LAYOUTS,
    OperatorNode,
    Output,
    next_sequence,
)
from flambeau.gradients.members import history
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording.inplace import attach_inplace, attach_view, prepare_inplace
from flambeau.gradients.recording.nodes import NUMBERS, edges_of, make_node, save_slots
from flambeau.gradients.recording.plan import WIDTHS, Plan, Roles
from flambeau.gradients.runtime import RUNTIME
from flambeau.gradients.saved import OWN, SPECIAL, bump

__all__ = [
    "Plan", "attach_inplace", "attach_view", "bump", "check_out", "plan_of", "prepare_inplace"
]  # fmt: skip

Attach = Callable[..., None]


def plan_of(operator: Any, roles: Roles) -> Plan:
    """The plan of an operator whose operands have these names and roles; make it once."""
    plan = Plan(operator, roles)
    kinds = [role for _, role in roles]
    n_tensors = len(plan.positions)
    simple = not plan.multiple and kinds[:n_tensors] == ["tensor"] * n_tensors
    if not operator.differentiable or not hasattr(operator, "vjp"):
        plan.attach = _nothing
    elif simple and n_tensors == 1:
        plan.attach = _unary(plan)
    elif simple and n_tensors == 2:
        plan.attach = _binary(plan)
    elif plan.joins:
        plan.attach = _joined(plan)
    elif plan.multiple and kinds == ["tensor"] and not plan.saved_names:
        plan.attach = _parted(plan)
    else:
        plan.attach = _general(plan)
    plan.program = RUNTIME.native_program(plan)
    return plan


def _nothing(attributes: Any, operands: Any, out: Any, site: Any = None) -> None:
    """Operators without a gradient: results stand outside every graph."""


def _unary(plan: Plan) -> Attach:
    """attach for operators of one tensor (and numbers)."""
    flags = plan.saves((True,))
    save_input, save_out = flags[0], flags[-1]
    has_numbers = len(plan.roles) > 1
    general = _general(plan)

    def attach(attributes: Any, operands: Any, out: Any, site: Any = None) -> None:
        tensor = operands[0]
        if SPECIAL or tensor.__class__ in NUMBERS:
            return general(attributes, operands, out, site)
        edge = tensor._autograd if tensor._base is None else history(tensor)
        layout = out._layout
        if edge is None or layout.dtype.category != 2:
            return None if edge is None else general(attributes, operands, out, site)
        node = OperatorNode()
        if save_input or save_out:
            first = result = None
            if save_input:
                versions = tensor._versions
                storage = tensor._storage
                counter = storage if versions is None else versions
                first = (storage, tensor._layout, tensor._offset, edge, counter, counter.version)
            if save_out:
                storage = out._storage
                result = (storage, layout, out._offset, OWN, storage, storage.version)
            node.saved = (first, *operands[1:], result) if has_numbers else (first, result)
        else:
            node.saved = [None, *operands[1:], None] if has_numbers else NOTHING
        node.plan = plan
        node.attributes = attributes
        node.edges = (edge,)
        node.layouts = (tensor._layout,)
        node.extras = None
        node.site = site
        node.sequence = next_sequence()
        out._autograd = node
        return None

    return attach


def _binary(plan: Plan) -> Attach:
    """attach for operators of two tensors, of which either may be a number (and numbers)."""
    # By (left needs, right needs) as a number: which of left, right, out to save.
    saves = [None, *[_ends(plan.saves(needs)) for needs in
                     ((True, False), (False, True), (True, True))]]  # fmt: skip
    has_numbers = len(plan.roles) > 2
    general = _general(plan)

    def attach(attributes: Any, operands: Any, out: Any, site: Any = None) -> None:
        if SPECIAL:
            return general(attributes, operands, out, site)
        left, right = operands if not has_numbers else operands[:2]
        edge_left = edge_right = layout_left = layout_right = None
        case = 0
        if left.__class__ not in NUMBERS:
            layout_left = left._layout
            edge_left = left._autograd if left._base is None else history(left)
            if edge_left is not None:
                case = 1
        if right.__class__ not in NUMBERS:
            layout_right = right._layout
            edge_right = right._autograd if right._base is None else history(right)
            if edge_right is not None:
                case += 2
        layout = out._layout
        if case == 0 or layout.dtype.category != 2:
            return None if case == 0 else general(attributes, operands, out, site)
        save_left, save_right, save_out = saves[case]  # type: ignore[misc]
        node = OperatorNode()
        if save_left or save_right or save_out:
            if not save_left:
                left = None
            elif layout_left is not None:
                versions = left._versions
                storage = left._storage
                counter = storage if versions is None else versions
                left = (storage, layout_left, left._offset, edge_left, counter, counter.version)
            if not save_right:
                right = None
            elif layout_right is not None:
                versions = right._versions
                storage = right._storage
                counter = storage if versions is None else versions
                right = (storage, layout_right, right._offset, edge_right, counter, counter.version)
            result = None
            if save_out:
                storage = out._storage
                result = (storage, layout, out._offset, OWN, storage, storage.version)
            node.saved = (left, right, *operands[2:], result)
        else:
            node.saved = [None, None, *operands[2:], None] if has_numbers else NOTHING
        node.plan = plan
        node.attributes = attributes
        node.edges = (edge_left, edge_right)
        node.layouts = (layout_left, layout_right)
        node.extras = None
        node.site = site
        node.sequence = next_sequence()
        out._autograd = node
        return None

    return attach


def _ends(flags: tuple[bool, ...]) -> tuple[bool, bool, bool]:
    """Flags of the first two slots and of the output."""
    return flags[0], flags[1], flags[-1]


def _joined(plan: Plan) -> Attach:
    """attach for one sequence of tensors, none of which is saved."""
    general = _general(plan)

    def attach(attributes: Any, operands: Any, out: Any, site: Any = None) -> None:
        if SPECIAL:
            return general(attributes, operands, out, site)
        (tensors,) = operands
        edges = tuple([each._autograd if each._base is None else history(each) for each in tensors])
        if out._layout.dtype.category < 2 or edges.count(None) == len(edges):
            return None
        node = OperatorNode()
        node.saved = NOTHING
        node.plan = plan
        node.attributes = {**attributes, WIDTHS: [len(edges)]}
        node.edges = edges
        node.layouts = tuple([each._layout for each in tensors])
        node.extras = None
        node.site = site
        node.sequence = next_sequence()
        out._autograd = node
        return None

    return attach


def _parted(plan: Plan) -> Attach:
    """attach for several outputs of one tensor, of which nothing is saved."""
    general = _general(plan)

    def attach(attributes: Any, operands: Any, out: Any, site: Any = None) -> None:
        if SPECIAL or not out:
            return general(attributes, operands, out, site)
        tensor = operands[0]
        edge = tensor._autograd if tensor._base is None else history(tensor)
        layouts = [each._layout for each in out]
        if edge is None or not any(layout.dtype.category >= 2 for layout in layouts):
            return None
        node = OperatorNode()
        node.saved = NOTHING
        node.plan = plan.form_for(layouts[0])
        node.attributes = {**attributes, OUTPUT_LAYOUTS: layouts}
        node.edges = (edge,)
        node.layouts = (tensor._layout,)
        node.extras = None
        node.site = site
        node.sequence = next_sequence()
        for index, each in enumerate(out):
            if layouts[index].dtype.category >= 2:
                each._autograd = Output(node, index)
        return None

    return attach


def _general(plan: Plan) -> Attach:
    """attach for any number of tensors, sequences, numbers and outputs."""

    def attach(attributes: Any, operands: Any, out: Any, site: Any = None) -> None:
        edges, layouts, widths = edges_of(plan, operands)
        if not any(edge is not None for edge in edges):
            return
        outputs = out if plan.multiple else (out,)
        if not any(each._layout.dtype.category >= 2 for each in outputs):
            return
        form = plan.form_for(outputs[0]._layout)
        node = make_node(form, attributes, edges, layouts, widths, site)
        if plan.multiple:
            histories = [Output(node, index) for index in range(len(outputs))]
            node.attributes = {**node.attributes, OUTPUT_LAYOUTS: [x._layout for x in outputs]}
        else:
            histories = [node]  # type: ignore[list-item]
        for tensor, own in zip(outputs, histories, strict=True):
            if tensor._layout.dtype.category >= 2:
                tensor._autograd = own
        save_slots(plan, node, operands, outputs)

    return attach


def check_out(name: str, operands: Any, out: Any) -> None:
    """Refuse out= while gradients are recorded for an operand or for it."""
    if not is_grad_enabled():
        return
    for each in (*operands, out):
        tensors = each if isinstance(each, (list, tuple)) else (each,)
        for tensor in tensors:
            if tensor.__class__ not in NUMBERS and history(tensor) is not None:
                raise RuntimeError(
                    helped(
                        f"{name}(): functions with out=... arguments don't support automatic "
                        "differentiation, but one of the arguments requires grad.",
                        fix="drop out=, or call it under torch.no_grad()",
                    )
                )
