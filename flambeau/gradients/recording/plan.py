"""What an operator's gradient needs, worked out once from the names of vjp's parameters.

Keeps     recording a node asks no question that the operator alone answers.
Touches   graph, saved, runtime; operators only through vjp, saved_for and returns.
Not here  making the node (record.py), walking the graph (backward.py).

Slots of a node's `saved`: one an operand in signature order, then one an output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

from flambeau.gradients.graph import OUTPUT_LAYOUTS, OperatorNode, Output
from flambeau.gradients.runtime import RUNTIME
from flambeau.gradients.saved import value_of

GRAD, SAVED, ATTRIBUTE, LAYOUT, NEEDS, GRADS, GRAD_OF, REST = range(8)

# torch's name of an operand or result, as in grad_fn._saved_self -> ours.
_ALIASES: Final = {"self": "input", "result": "out"}

_TAKES_MORE, _TAKES_REST = 0x04, 0x08  # CPython's CO_VARARGS and CO_VARKEYWORDS

Roles = tuple[tuple[str, str], ...]


class PlanProgram:
    """The slot native code reads: address of a plan's program, 0 where there is none."""

    __slots__ = ("program",)

    program: int


class Plan(PlanProgram):
    """How one operator takes part in graphs; make one with `plan_of`.

    roles      (name, "tensor" | "tensors" | "number") of each operand
    fetch      what vjp gets after `t`, in its order: (kind, slot or name)
    attach     attach(attributes, operands, out, site): record.py's function for this shape
    multiple   several outputs: `out` is a tuple and cotangents come as a list
    zero_target  in-place form: no cotangent for the target means zeros
    """

    def __init__(self, operator: Any, roles: Roles) -> None:
        self.operator = operator
        self.roles = roles
        self.returns: tuple[str, ...] = tuple(operator.returns)
        self.has_vjp = hasattr(operator, "vjp")
        self.vjp: Callable[..., Any] = operator.vjp if self.has_vjp else _none
        self.parameters = parameters_after_t(self.vjp)
        # Views such as unbind have any number of outputs, without names.
        self.multiple = bool(self.returns) or "grads" in self.parameters
        self.zero_target = False
        self.conjugates = False
        self.is_holomorphic = bool(getattr(operator, "holomorphic", False))
        self.program = 0
        self.positions = tuple(
            [position for position, (_, role) in enumerate(roles) if role != "number"]
        )
        self.has_sequences = any(role == "tensors" for _, role in roles)
        self.slots = {name: slot for slot, (name, _) in enumerate(roles)}
        outputs = self.returns or ("out",)
        for index, name in enumerate(outputs):
            self.slots.setdefault(name, len(roles) + index)
        self.slots.setdefault("out", len(roles))
        self.n_slots = len(roles) + len(outputs)
        self.fetch = self._fetch()
        # cat, stack and their kin: one sequence, of which the gradient reads the layouts alone.
        self.joins = (
            [role for _, role in roles] == ["tensors"]
            and not self.multiple
            and self.has_vjp
            and all(kind in (GRAD, ATTRIBUTE, LAYOUT, NEEDS) for kind, _ in self.fetch)
        )
        self.saved_names = [key for kind, key in self.fetch if kind == SAVED]
        self._saves: dict[tuple[bool, ...], tuple[bool, ...]] = {}
        # differentiate(node, cotangent, saved): one cotangent an edge, not yet conformed.
        self.differentiate: Callable[..., Sequence[Any]] = _short(self) or self._differentiate
        self.attach: Callable[..., None]

    def _fetch(self) -> list[tuple[int, Any]]:
        fetch: list[tuple[int, Any]] = []
        layouts = {f"{name}_layout": position for position, (name, _) in enumerate(self.roles)}
        cotangents = {f"grad_{name}": index for index, name in enumerate(self.returns)}
        for parameter in self.parameters:
            name = parameter.removeprefix("**")
            if name != parameter:
                fetch.append((REST, frozenset([e.removeprefix("**") for e in self.parameters])))
            elif name == "grad":
                fetch.append((GRAD, 0))
            elif name == "grads":
                fetch.append((GRADS, 0))
            elif name == "needs":
                fetch.append((NEEDS, 0))
            elif name in cotangents:
                fetch.append((GRAD_OF, cotangents[name]))
            elif name in self.slots:
                fetch.append((SAVED, self.slots[name]))
            elif name in layouts:
                fetch.append((LAYOUT, layouts[name]))
            else:
                fetch.append((ATTRIBUTE, name))
        return fetch

    def slot_of(self, name: str) -> int | None:
        """Slot of an operand or output, by flambeau's name or torch's."""
        return self.slots.get(name, self.slots.get(_ALIASES.get(name, ""), None))

    def saves(self, needs: tuple[bool, ...]) -> tuple[bool, ...]:
        """Slot by slot: does any operand's cotangent that is needed read it?"""
        found = self._saves.get(needs)
        if found is None:
            read = {slot for kind, slot in self.fetch if kind == SAVED}
            wanted: set[int] = set()
            for position, needed in zip(self.positions, needs, strict=True):
                if needed:
                    named = self.operator.saved_for.get(self.roles[position][0])
                    wanted |= read if named is None else {self.slots[name] for name in named
                                                          if name in self.slots} & read  # fmt: skip
            found = tuple([
                slot in wanted or (slot in read and self._is_number(slot))
                for slot in range(self.n_slots)
            ])  # fmt: skip
            self._saves[needs] = found
        return found

    def saves_for(self, edges: Sequence[Any], widths: Sequence[int]) -> tuple[bool, ...]:
        """`saves` for these edges; widths: edges an operand where there are sequences."""
        if not self.has_sequences:
            return self.saves(tuple([edge is not None for edge in edges]))
        needs = []
        start = 0
        for width in widths:
            needs.append(any(edge is not None for edge in edges[start : start + width]))
            start += width
        return self.saves(tuple(needs))

    def _is_number(self, slot: int) -> bool:
        return slot < len(self.roles) and self.roles[slot][1] == "number"

    # ------------------------------------------------------------ the backward pass

    def _differentiate(
        self, node: OperatorNode, cotangent: Any, saved: Sequence[Any]
    ) -> Sequence[Any]:
        """The general form: gather what vjp wants, call it, flatten what it returns."""
        arguments = []
        named: dict[str, Any] = {}
        for kind, key in self.fetch:
            if kind == GRAD:
                value = self._first(cotangent, node) if self.multiple else cotangent
            elif kind == SAVED:
                value = saved[key]
                if value.__class__ is tuple or value.__class__ not in _PLAIN:
                    own = Output(node, key - len(self.roles)) if self.multiple else node
                    value = value_of(value, own)
                if self.conjugates:
                    value = _conjugate(value)
            elif kind == ATTRIBUTE:
                value = node.attributes[key]
            elif kind == LAYOUT:
                value = self._layout(node, key)
            elif kind == NEEDS:
                value = self.needs(node.edges, node)
            elif kind == GRADS:
                value = tuple(cotangent) if self.multiple else (cotangent,)
            elif kind == GRAD_OF:
                value = cotangent[key]
            else:
                named = {name: each for name, each in node.attributes.items() if name not in key}
                continue
            arguments.append(value)
        found = self.vjp(RUNTIME.functions, *arguments, **named)
        if not self.has_vjp:
            found = (None,) * len(self.positions)
        if found.__class__ is not tuple:
            found = tuple(found) if found.__class__ is list else (found,)
        if len(found) != len(self.positions):
            raise self.wrong_count(found)
        if self.has_sequences:
            found = self._flat(found, node)
        if self.zero_target and found[0] is None and node.edges[0] is not None:
            layout = node.layouts[0]
            zeros = RUNTIME.functions.zeros(layout.shape, dtype=layout.dtype, device=layout.device)
            found = (zeros, *found[1:])
        return found

    def as_edges(self, found: Any, node: Any = None) -> Sequence[Any]:
        """What a vjp returned, as one cotangent an operand."""
        if self.joins:
            (parts,) = found
            return (None,) * len(node.edges) if parts is None else tuple(parts)
        values = tuple(found) if found.__class__ is list else (found,)
        if found.__class__ is tuple or len(values) != len(self.positions):
            raise self.wrong_count(found if found.__class__ is tuple else values)
        return values

    def wrong_count(self, found: Sequence[Any]) -> RuntimeError:
        """The error for a vjp that returns too many or too few."""
        return RuntimeError(
            f"vjp of {self.operator.name} returned {len(found)} cotangents for "
            f"{len(self.positions)} operands"
        )

    def _first(self, cotangents: list[Any], node: OperatorNode) -> Any:
        first = cotangents[0]
        if first is None:
            layout = node.attributes[OUTPUT_LAYOUTS][0]
            first = RUNTIME.functions.zeros(layout.shape, dtype=layout.dtype, device=layout.device)
        return first

    def _span(self, position: int, node: OperatorNode) -> tuple[int, int]:
        """Where an operand's edges lie among the node's edges."""
        if not self.has_sequences:
            start = self.positions.index(position)
            return start, start + 1
        widths = node.attributes[WIDTHS]
        before = self.positions.index(position)
        start = sum(widths[:before])
        return start, start + widths[before]

    def _layout(self, node: OperatorNode, position: int) -> Any:
        start, stop = self._span(position, node)
        if self.roles[position][1] == "tensors":
            return tuple(node.layouts[start:stop])
        return node.layouts[start]

    def needs(self, edges: Sequence[Any], node: OperatorNode) -> tuple[Any, ...]:
        """Which cotangents are wanted, as vjp sees it."""
        if not self.has_sequences:
            return tuple([edge is not None for edge in edges])
        found: list[Any] = []
        for position in self.positions:
            start, stop = self._span(position, node)
            flags = tuple([edge is not None for edge in edges[start:stop]])
            found.append(flags if self.roles[position][1] == "tensors" else flags[0])
        return tuple(found)

    def _flat(self, found: tuple[Any, ...], node: OperatorNode) -> tuple[Any, ...]:
        flat: list[Any] = []
        for position, value in zip(self.positions, found, strict=True):
            start, stop = self._span(position, node)
            if self.roles[position][1] != "tensors":
                flat.append(value)
            elif value is None:
                flat.extend([None] * (stop - start))
            else:
                flat.extend(value)
        return tuple(flat)

    @cached_property
    def inplace_form(self) -> Plan:
        """The same plan for name_(): a missing cotangent of the target means zeros."""
        form = Plan(self.operator, self.roles)
        form.zero_target = True
        form.multiple = False
        form.differentiate = form._differentiate
        return form

    def form_for(self, layout: Any) -> Plan:
        """The plan for results of this layout."""
        return self.complex_form if self.is_holomorphic and layout.dtype.is_complex else self

    @cached_property
    def complex_form(self) -> Plan:
        """The same plan for complex results. torch's cotangent of a complex number is multiplied
        by the conjugate of the derivative, which is the derivative at the conjugates."""
        form = Plan(self.operator, self.roles)
        form.zero_target = self.zero_target
        form.multiple = self.multiple
        form.conjugates = True
        form.differentiate = form._differentiate
        return form


def _conjugate(value: Any) -> Any:
    """Conjugates of what was saved: tensors, sequences of them, numbers."""
    if value.__class__ in _PLAIN:
        return value.conjugate() if value.__class__ is complex else value
    if value.__class__ in (list, tuple):
        return type(value)([_conjugate(each) for each in value])
    return RUNTIME.functions.conj(value) if value._layout.dtype.is_complex else value


# Key of how many edges each operand has, beside the operator's own attributes.
WIDTHS: Final = "operand widths"

_PLAIN: Final = frozenset((int, float, bool, complex, type(None)))


def _short(plan: Plan) -> Callable[..., Sequence[Any]] | None:
    """Straight-line forms of differentiate for the commonest shapes of vjp."""
    if plan.multiple or plan.has_sequences or not plan.has_vjp:
        return None
    kinds = [kind for kind, _ in plan.fetch]
    keys = [key for _, key in plan.fetch]
    n_found = len(plan.positions)
    vjp = plan.vjp
    as_edges = plan.as_edges

    if kinds == [GRAD]:

        def differentiate(node: Any, grad: Any, saved: Any) -> Sequence[Any]:
            found = vjp(RUNTIME.functions, grad)
            if found.__class__ is tuple and len(found) == n_found:
                return found
            return as_edges(found)

    elif kinds == [GRAD, SAVED]:
        (slot,) = keys[1:]

        def differentiate(node: Any, grad: Any, saved: Any) -> Sequence[Any]:
            value = saved[slot]
            if value.__class__ not in _PLAIN:
                value = value_of(value, node)
            found = vjp(RUNTIME.functions, grad, value)
            if found.__class__ is tuple and len(found) == n_found:
                return found
            return as_edges(found)

    elif kinds == [GRAD, SAVED, SAVED, NEEDS] and n_found == 2:
        slot, other_slot = keys[1:3]

        def differentiate(node: Any, grad: Any, saved: Any) -> Sequence[Any]:
            value = saved[slot]
            if value.__class__ not in _PLAIN:
                value = value_of(value, node)
            other = saved[other_slot]
            if other.__class__ not in _PLAIN:
                other = value_of(other, node)
            left, right = node.edges
            needs = (left is not None, right is not None)
            found = vjp(RUNTIME.functions, grad, value, other, needs)
            if found.__class__ is tuple and len(found) == n_found:
                return found
            return as_edges(found)

    else:
        return None
    return differentiate


def parameters_after_t(vjp: Callable[..., Any]) -> list[str]:
    """Names of what a vjp asks for, `**rest` with its stars; inspect.signature says the same but
    brings a dozen modules into every process."""
    function = getattr(vjp, "__func__", vjp)
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[function is not vjp : count])
    if code.co_flags & _TAKES_REST:
        names.append("**" + code.co_varnames[count + bool(code.co_flags & _TAKES_MORE)])
    return names[1:]


def _none(t: Any) -> None:
    """vjp of an operator without one; never called."""
