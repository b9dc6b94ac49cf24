"""From operators to callables: signatures found by a dictionary, one record appended.

Keeps     every error inference can raise is raised before anything is recorded; numbers that change
          from call to call never make a new signature.
Touches   arguments.parameters, engine (record, storage), gradients.recording.record.
Not here  how a call is taken apart (arguments/parameters.py), which names the callables get
          (functions.py, methods.py), closures for hot shapes of operators (closures.py), in-place
          and out= forms (inplace.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base.devices import META
from flambeau.base.dtypes import EIGHT_BITS
from flambeau.base.layout import Layout
from flambeau.base.promotion import SCALARS
from flambeau.devices.cpu import memory
from flambeau.engine import callsite, run, stream
from flambeau.engine.signature import Signature, number_formats
from flambeau.engine.storage import new_storage
from flambeau.engine.view import UNPLACED, View
from flambeau.gradients import modes
from flambeau.gradients.recording import record as gradient_record
from flambeau.ops.define import REGISTRY, Inferred, Operator
from flambeau.ops.define import View as ViewOperator
from flambeau.tensor.arguments.parameters import (
    ABSENT,
    Call,
    Parameters,
    hashable,
    role_of,
    told_apart,
)
from flambeau.tensor.number_rules import FILLS, check_numbers, is_special
from flambeau.tensor.tensor import Tensor, new_tensor, result_tuple

# In all tables together; each is 2 to 4 KB with what it was lowered to.
MAX_SIGNATURES: Final = 20_000
# Bounds of calls that an operator remembers.
MAX_BOUNDS: Final = 100

_TABLES: Final[list[dict[Any, Signature]]] = []
_remembered: Final = [0]


def new_table() -> dict[Any, Signature]:
    """A table of signatures by keys of calls, under the bound of all."""
    made: dict[Any, Signature] = {}
    _TABLES.append(made)
    return made


def remember(table: dict[Any, Signature], key: Any, signature: Signature) -> None:
    """Put a signature into a table; where there are too many in all, they begin anew."""
    if _remembered[0] >= MAX_SIGNATURES:
        for each in _TABLES:
            each.clear()
        _remembered[0] = 0
    table[key] = signature
    _remembered[0] += 1


class Binding(Parameters):
    """The callable of one operator. `signatures` maps call keys to signatures."""

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        self.signatures: dict[Any, Signature] = new_table()
        self.hot: dict[Any, Signature] = new_table()  # of the closures of functions and methods
        self.is_view = isinstance(operator, ViewOperator)
        bounded = type(operator).bounds is not Operator.bounds
        self.has_bounds = bounded and not operator.bounds_need
        self._bounds_need = operator.bounds_need
        self._bounds: dict[Any, tuple[list[Any], int | None]] = {}
        self._plan: Any = None

    @property
    def gradient_plan(self) -> Any:
        """gradients.recording.record.plan_of this operator, made once."""
        if self._plan is None:
            roles = tuple(
                (p.name, role_of(p.kind)) for p in self.parameters if p.kind != "attribute"
            )
            self._plan = gradient_record.plan_of(self.operator, roles)
        return self._plan

    def renew_plan(self, program: Callable[[Any], int]) -> None:
        """Tell the plan, if it is made, what the native walk knows of it now."""
        if self._plan is not None:
            self._plan.program = program(self._plan)

    # Signatures --------------------------------------------------------------------

    def inferred(self, values: list[Any]) -> Inferred:
        """What the operator's inference says of these values."""
        seen: dict[str, Any] = {}
        attributes: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind == "attribute":
                seen[parameter.name] = attributes[parameter.name] = hashable(value)
            elif parameter.kind == "Tensors":
                seen[parameter.name] = tuple(each._layout for each in value)
            elif isinstance(value, Tensor):
                seen[parameter.name] = value._layout
            else:
                seen[parameter.name] = value if value is None else SCALARS[type(value)]
        for value in seen.values():
            if hasattr(value, "dtype") and value.dtype in EIGHT_BITS:
                from flambeau.ops.eight_bits import refuse

                refuse(self.name, seen.values())
        outcome = self.operator.infer(**seen)
        if isinstance(outcome, Inferred):
            return outcome
        outputs = outcome if isinstance(outcome, tuple) else (outcome,)
        return Inferred(outputs, attributes)

    def lowering_parameters(self, values: list[Any]) -> tuple[dict[str, Any], int]:
        """How each operand reaches lower, and how many tensors there are."""
        parameters: dict[str, Any] = {}
        n_tensors = n_numbers = 0
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind == "attribute":
                continue
            if parameter.kind == "Tensors":
                count = len(value)
                parameters[parameter.name] = ("tensors", tuple(range(n_tensors, n_tensors + count)))
                n_tensors += count
            elif isinstance(value, Tensor):
                parameters[parameter.name] = ("tensor", n_tensors)
                n_tensors += 1
            elif value is None or is_special(value, parameter.specials):
                parameters[parameter.name] = ("plain", value)
            else:
                parameters[parameter.name] = ("number", n_numbers, type(value))
                n_numbers += 2 if type(value) is complex else 1
        return parameters, n_tensors

    def signature(self, call: Call) -> Signature:
        """The signature of a call, inferred at first sight. Raises the operator's errors."""
        found = self.signatures.get(call.key)
        if found is not None:
            return found
        outcome = self.inferred(call.values)
        parameters, _ = self.lowering_parameters(call.values)
        layouts = tuple([tensor._layout for tensor in call.tensors])
        made = Signature(
            self.operator, layouts, parameters, outcome.attributes, outcome.outputs,
            self._targets(call), number_formats([type(n) for n in call.numbers]),
        )  # fmt: skip
        for layout in outcome.outputs:
            check_size(layout)
        remember(self.signatures, call.key, made)
        return made

    def _targets(self, call: Call) -> tuple[int, ...]:
        if not self.operator.updates:
            return ()
        positions: list[int] = []
        parameters, _ = self.lowering_parameters(call.values)
        for name in self.operator.updates:
            where = parameters[name]
            positions.extend(where[1] if where[0] == "tensors" else (where[1],))
        return tuple(positions)

    # Calling -------------------------------------------------------------------------

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the operator: the general path."""
        out = named.pop("out", None) if named else None
        if out is not None:
            from flambeau.tensor import inplace

            return inplace.call_out(self, arguments, named, out)
        if self.is_view:
            return self.call_view(arguments, named)
        call = self.taken_apart(self.arranged(arguments, named))
        signature = self.signature(call)
        if self.name in FILLS:
            numbers = call.values if self.name == "pow" else call.numbers
            check_numbers(self.name, numbers, signature.out_layout.dtype)
        if self.operator.updates:
            from flambeau.tensor import inplace

            return inplace.call_update(self, call, signature)
        return self.recorded(call, signature)

    def recorded(self, call: Call, signature: Signature) -> Any:
        """Record a call whose outputs are fresh, with its gradient."""
        current = stream.LOCAL.stream
        site = current.site or callsite.site()
        tensors = call.tensors
        if self.is_bounded(call):
            self.check_bounds(call)
        if signature.fresh_outputs and signature.fresh_outputs[0].device is META:
            storages = [new_storage(layout) for layout in signature.fresh_outputs]
        else:
            storages = stream.record(current, signature, tensors, tuple(call.numbers), site)
        outputs = [
            new_tensor(storage, layout)
            for storage, layout in zip(storages, signature.fresh_outputs, strict=True)
        ]
        result = outputs[0] if len(outputs) == 1 and not self.operator.returns else tuple(outputs)
        if current.grad_enabled and self.operator.differentiable:
            for tensor in tensors:
                if tensor._autograd is not None or tensor._base is not None:
                    self.attach(call, signature, result, site)
                    break
        if current.inference:
            self.mark_inference(result)
        if len(outputs) == 1 and signature.out_layout.dtype.category == 1:
            self._follow_bounds(call, outputs[0])
        if type(result) is tuple and self.operator.returns and self.operator.shows_names:
            return result_tuple(self.name, self.operator.returns, result)
        return result

    def mark_inference(self, result: Any) -> None:
        """Mark what was made in inference mode."""
        modes.mark_inference(result)

    def _follow_bounds(self, call: Call, result: Tensor) -> None:
        """Let the bounds of an integer result follow from its operands'."""
        from flambeau.tensor import index_bounds

        names = [parameter.name for parameter in self.parameters]
        index_bounds.follow(self.name, dict(zip(names, call.values, strict=True)), result)

    def is_bounded(self, call: Call) -> bool:
        """Whether values of a call's operands have to be looked at."""
        if not self._bounds_need:
            return self.has_bounds
        return call.values[self.positions[self._bounds_need]] is not None

    def bounds_of(self, call: Call) -> tuple[list[Any], int | None]:
        """Where index values of calls with these layouts and attributes have to lie, and the one
        that is ignored."""
        found = self._bounds.get(call.key) if not call.numbers else None
        if found is not None:
            return found
        seen: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, call.values, strict=True):
            name = parameter.name
            if parameter.kind == "attribute":
                seen[name] = hashable(value)
            elif parameter.kind == "Tensors":
                seen[name] = tuple([each._layout for each in value])
            else:
                seen[name] = value._layout if isinstance(value, Tensor) else value
        found = self.operator.bounds(**seen), seen.get("ignore_index")
        if not call.numbers:  # of which one may be out of bounds itself
            if len(self._bounds) >= MAX_BOUNDS:
                self._bounds.clear()
            self._bounds[call.key] = found
        return found

    def check_bounds(self, call: Call) -> None:
        """Raise the operator's error for index values outside their range, at this line."""
        from flambeau.tensor import index_bounds

        tensors: dict[str, Tensor] = {}
        for parameter, value in zip(self.parameters, call.values, strict=True):
            if parameter.kind == "Tensors":
                tensors.update({f"{parameter.name}.{n}": each for n, each in enumerate(value)})
            elif isinstance(value, Tensor):
                tensors[parameter.name] = value
        bounds, ignored = self.bounds_of(call)
        for name, low, high, error in bounds:
            index = tensors.get(name)
            if index is not None:
                found = index_bounds.first_outside(index, low, high, ignored)
                if found is not None:
                    raise error(found)

    def attach(self, call: Call, signature: Signature, result: Any, site: Any) -> None:
        """Give the result its history."""
        operands = tuple(
            [
                value
                for parameter, value in zip(self.parameters, call.values, strict=True)
                if parameter.kind != "attribute"
            ]
        )
        self.gradient_plan.attach(signature.attributes, operands, result, site)

    def call_view(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a view operator: nothing is recorded but history."""
        values = self.arranged(arguments, named)
        source = values[0]
        if not isinstance(source, Tensor):
            raise self.wrong_operand(0, values)
        attributes = tuple([hashable(value) for value in values[1:]])
        given = source._layout
        memo = given.memo
        key = (self.operator, told_apart(attributes))
        found = memo.get(key)
        if found is None:
            names = {p.name: a for p, a in zip(self.parameters[1:], attributes, strict=True)}
            found = self.operator.view(given, **names)  # type: ignore[attr-defined]
            if found is None:  # its memory cannot be seen so (reshape, flatten): a copy's can
                copied = binding("contiguous_copy")(source)
                return self.call_view((copied, *values[1:]), {})
            if len(memo) > 4096:
                memo.clear()
            memo[key] = found
        return self.view_result(source, found, attributes)

    def view_result(self, source: Tensor, found: Any, attributes: tuple[Any, ...]) -> Any:
        """Tensors over the source's memory, with their base and history."""
        if not found:  # a dim of size 0 has no places
            return ()
        if isinstance(found[0], Layout):
            layout, offset = found
            if layout.itemsize != source._layout.itemsize:  # offsets count elements
                from flambeau.base.view_rules import recounted  # few programs need it

                offset += recounted(source._offset, source._layout, layout) - source._offset
            result: Any = view_of(source, layout, offset)
        else:
            result = tuple([view_of(source, layout, offset) for layout, offset in found])
        if source._autograd is not None or source._base is not None:
            names = {p.name: a for p, a in zip(self.parameters[1:], attributes, strict=True)}
            gradient_record.attach_view(self.gradient_plan, names, source, result, callsite.site())
        return result


def view_of(source: Tensor, layout: Layout, offset: int) -> Tensor:
    """A view of a tensor's memory; `offset` elements on from the source's first."""
    made = new_tensor(source._storage, layout)
    made._offset = offset = source._offset + offset
    if offset:
        made._place = UNPLACED
    base = source._base
    made._base = source if base is None else base
    if source._versions is not None:
        made._versions = source._versions
    return made


def check_size(layout: Layout) -> None:
    """Refuse what no machine could hold, at the line that asks for it."""
    if layout.n_bytes > memory.machine_bytes() and layout.device is not META:
        if layout.n_bytes >= 1 << 63:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes={list(layout.shape)}"
            )
        raise run.out_of_memory(layout.n_bytes)


BINDINGS: Final[dict[str, Binding]] = {}


def binding(name: str) -> Binding:
    """The binding of a registered operator."""
    found = BINDINGS.get(name)
    if found is None:
        found = BINDINGS[name] = Binding(REGISTRY[name])
    return found


Function = Callable[..., Any]
__all__ = ["ABSENT", "BINDINGS", "Binding", "Call", "View", "binding", "check_size", "view_of"]
