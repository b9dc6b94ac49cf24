"""In-place writes and views: torch's refusals, and histories after a write.

Keeps     a write that gradients forbid is refused before it is recorded; the old value of the
          target is cloned where the gradient reads it.
Touches   graph, members, plan, rebase, saved, modes.
Not here  the write itself and its version (binding calls saved.bump)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.gradients.graph import AccumulateGrad
from flambeau.gradients.members import history, move_retained
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording.nodes import edges_of, make_node, save_slots
from flambeau.gradients.recording.plan import Plan
from flambeau.gradients.recording.rebase import CopySlices

NO_GRAD: Final = "no_grad"
MULTIPLE: Final = "multiple"
FUNCTION: Final = "function"

_MADE_IN_NO_GRAD: Final = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
_REFUSED: Final = {
    MULTIPLE: "This view is the output of a function that returns multiple views. Such functions "
    "do not allow the output views to be modified inplace. You should replace the inplace "
    "operation by an out-of-place one.",
    FUNCTION: "This view was created inside a custom Function (or because an input was returned "
    "as-is) and the autograd logic to handle view+inplace would override the custom backward "
    "associated with the custom Function, leading to incorrect gradients. This behavior is "
    "forbidden. You can fix this by cloning the output of the custom Function.",
}


class Prepared:
    """What an in-place write's node is made of, gathered before the write."""

    __slots__ = ("before", "edges", "layouts", "operands", "widths")

    def __init__(self, edges: list[Any], layouts: list[Any], widths: list[int]) -> None:
        self.edges = edges
        self.layouts = layouts
        self.widths = widths
        self.operands: tuple[Any, ...] = ()
        self.before: Any = None


def check_writable(target: Any) -> None:
    """Refuse in-place on leaves, views of leaves, and views that torch forbids to write."""
    base = target._base
    if base is not None:
        if target._creation == NO_GRAD:
            raise RuntimeError(_MADE_IN_NO_GRAD)
        if target._creation is not None:
            own = history(target)
            name = "None" if own is None else own.node_name().rstrip("0123456789")
            index = 0 if own is None else own.output_index
            raise RuntimeError(
                f"Output {index} of {name.removesuffix('Backward')} is a view and is being "
                f"modified inplace. {_REFUSED[target._creation]}"
            )
        own = history(target)
        made = base._autograd
        if own is not None and (made is None or made.__class__ is AccumulateGrad):
            raise RuntimeError(_leaf_message("a view of a leaf"))
    if history(target).__class__ is AccumulateGrad:
        raise RuntimeError(_leaf_message("a leaf"))


def _leaf_message(what: str) -> str:
    return helped(
        f"{what} Variable that requires grad is being used in an in-place operation.",
        fix="write under torch.no_grad(), or write to a copy: x = x.clone()",
    )


def prepare_inplace(plan: Plan, operands: tuple[Any, ...], target: Any) -> Prepared | None:
    """Before a write: torch's refusals; None where no history comes of it."""
    if not is_grad_enabled():
        return None
    edges, layouts, widths = edges_of(plan, operands)
    if all(edge is None for edge in edges) or target._layout.dtype.category < 2:
        return None
    check_writable(target)
    prepared = Prepared(edges, layouts, widths)
    prepared.before = target._autograd
    flags = plan.inplace_form.saves_for(edges, widths)
    old = None
    kept: list[Any] = []
    for slot, operand in enumerate(operands):
        if operand is target and flags[slot]:
            if old is None:
                old = target.clone()
            kept.append(old)
        else:
            kept.append(operand)
    prepared.operands = tuple(kept)
    return prepared


def attach_inplace(
    plan: Plan, attributes: Any, prepared: Prepared, target: Any, site: Any = None
) -> None:
    """After the write: the target's new history and, for a view, its base's."""
    form = plan.inplace_form.form_for(target._layout)
    node = make_node(form, attributes, prepared.edges, prepared.layouts, prepared.widths, site)
    save_slots(form, node, prepared.operands, (target,))
    rewrite_history(target, node, prepared.before)


def rewrite_history(target: Any, node: Any, before: Any, own: Any = None) -> None:
    """Make `node` (as `own` where it has several outputs) the last writer of the target.

    Views made before find out by the number in `_rebased`.
    """
    base = target._base
    if base is None:
        target._autograd = node if own is None else own
        target._rebased = node.sequence
        move_retained(before, target)
        return
    slices = CopySlices(base, target, node)
    base._autograd = slices
    base._rebased = slices.sequence
    history(target)


def attach_view(plan: Plan, attributes: Any, input: Any, out: Any, site: Any = None) -> None:
    """History of a view, or of a tuple of views; call after `_base` of the views is set."""
    several = out.__class__ in (tuple, list)
    views = out if several else (out,)
    if not is_grad_enabled():
        if input._autograd is not None:
            for view in views:
                view._creation = NO_GRAD
        return
    history(input)  # brings a stale view up to date, so that its stamp below is right
    stamp = views[0]._base._rebased if views and views[0]._base is not None else None
    creation = MULTIPLE if several else input._creation
    if stamp is not None or creation is not None:
        for view in views:
            view._rebased = stamp
            if creation is not None:
                view._creation = creation
    plan.attach(attributes, (input,), out, site)


def mark_function_view(view: Any) -> None:
    """A view that came out of a user's Function: never to be written in place."""
    view._creation = FUNCTION


__all__ = [
    "attach_inplace", "attach_view", "check_writable", "mark_function_view", "prepare_inplace",
    "rewrite_history",
]  # fmt: skip
