"""The hot shapes of operators, spelled out: one operand, two operands, operand and number.

Keeps     does what Binding.recorded does, with nothing left to decide but a dictionary lookup; any
          surprise goes to the general path.
Touches   binding, engine (stream, segment, storage), gradients through the binding's plan.
Not here  everything else about a call (binding.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from flambeau.base.devices import META
from flambeau.engine import callsite, run
from flambeau.engine.signature import Signature
from flambeau.engine.storage import Storage
from flambeau.engine.stream import HEAVY_BYTES, LOCAL
from flambeau.gradients import autocast
from flambeau.tensor.arguments import refusing, taken_over
from flambeau.tensor.arguments.python_data import is_array
from flambeau.tensor.binding import ABSENT, Binding, new_table, remember
from flambeau.tensor.native import callables
from flambeau.tensor.number_rules import is_number, is_special, may_overflow
from flambeau.tensor.tensor import Tensor, empty_tensor

_getframe: Final = sys._getframe
_internal: Final = callsite.INTERNAL
_site: Final = callsite.site
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1
_LATE: Final = "recorded while another thread flushed"


def _plain(binding: Binding, arguments: tuple[Any, ...]) -> Signature | None:
    """The signature of a call the closures may serve, or None."""
    from flambeau.tensor.index_bounds import PASSED_ON

    values = binding.arranged(arguments, {})
    call = binding.taken_apart(values)
    signature = binding.signature(call)
    outputs = signature.fresh_outputs
    if len(outputs) != 1 or outputs[0].device is META or binding.operator.returns:
        return None
    if binding.has_bounds or (outputs[0].dtype.category == 1 and binding.name in PASSED_ON):
        return None
    return signature if signature.out_bytes <= HEAVY_BYTES else None


def unary(binding: Binding, is_method: bool = False) -> Callable[..., Any]:
    """Function of one tensor; further arguments take the general path."""
    signatures = binding.hot
    differentiable = binding.operator.differentiable

    def function(input: Any = ABSENT, *rest: Any, **named: Any) -> Any:
        if rest or named:
            return binding(*(() if input is ABSENT else (input,)), *rest, **named)
        signature: Signature | None
        try:
            signature = signatures[input._layout]
        except (KeyError, AttributeError):
            signature = None  # errors are raised below, so that no KeyError is shown before them
        if signature is None:
            signature = _plain(binding, (input,))
            if signature is None or signature.number_format:
                return binding(input)
            remember(signatures, input._layout, signature)
        local = LOCAL.stream
        segment = local.segment
        records = segment.records
        if signature is segment.armed or len(records) >= segment.limit:
            segment = local.cut(signature)
            records = segment.records
        place = input._place
        slot_in = place.slot if place.segment is segment else segment.touch(input)
        site = local.site
        if site is None:
            frame = _getframe(1)
            code = frame.f_code
            site = _site() if _internal.get(code, True) else (code, frame.f_lasti)
        storage = Storage()
        storage.layout = layout = signature.out_layout
        storage.version = 0
        slot = segment.add(storage)
        out = empty_tensor()
        out._storage = out._place = storage
        out._layout = layout
        out._offset = 0
        out._autograd = out._base = None
        records.append(((signature, slot_in, slot), (), site))
        if segment.closed:
            run.flush(segment, _LATE)
        if local.grad_enabled:
            if differentiable and (input._autograd is not None or input._base is not None):
                binding.gradient_plan.attach(signature.attributes, (input,), out, site)
        elif local.inference:
            binding.mark_inference(out)
        return out

    made = refusing(autocast.casting(binding.name, function), binding.name, is_method)
    return callables.unary(binding, made, signatures)


def binary(binding: Binding, is_method: bool = False) -> Callable[..., Any]:
    """Function of a tensor and a tensor or number; other calls take the general path."""
    signatures = binding.hot
    operator = _two_operands(binding, signatures, is_operator=False)

    def function(*arguments: Any, **named: Any) -> Any:
        if named or len(arguments) != 2:
            return binding(*arguments, **named)
        return operator(*arguments)

    made = refusing(autocast.casting(binding.name, function), binding.name, is_method)
    return callables.binary(binding, made, signatures, _extra(binding))


def binary_operator(binding: Binding, member: str) -> Callable[[Any, Any], Any]:
    """One of Python's operators: returns NotImplemented for what it does not know. `member` of
    Tensor is what a __torch_function__ is shown for it."""
    signatures = new_table()
    operator = _two_operands(binding, signatures, is_operator=True)
    function = taken_over.operator(member, autocast.casting(binding.name, operator))
    return callables.binary(binding, function, signatures, _extra(binding))


def _extra(binding: Binding) -> tuple[Any, ...]:
    """Operands that keep their defaults; those that are run-time numbers take the general path."""
    return tuple([p.default for p in binding.parameters[2:] if p.kind != "attribute"])


def _equal_to_array(binding: Binding, input: Tensor, other: Any) -> Any:
    """tensor == array: torch knows arrays in this comparison alone."""
    if binding.name != "eq" or not is_array(other):
        return NotImplemented
    from flambeau.tensor import creation

    return binding(input, creation.as_tensor(other))


def _two_operands(
    binding: Binding, signatures: dict[Any, Signature], *, is_operator: bool
) -> Callable[[Any, Any], Any]:
    """Function of exactly a tensor and a tensor or number."""
    differentiable = binding.operator.differentiable
    specials = binding.parameters[1].specials
    extra = _extra(binding)
    takes_numbers = binding.parameters[1].kind != "Tensor"

    def learn(input: Any, other: Any, key: Any) -> Signature | None:
        signature = _plain(binding, (input, other))
        is_plain = type(other) in (int, float, complex)
        n_numbers = 2 if type(other) is complex else is_plain
        if signature is None or key is None or len(signature.number_format) > n_numbers:
            return None
        if is_plain and may_overflow(binding.name, signature.out_layout.dtype):
            return None
        remember(signatures, key, signature)
        return signature

    def surprise(input: Any, other: Any, key: Any) -> Any:
        """The signature to record, or the result of the general path."""
        if is_operator and not isinstance(other, Tensor):
            if not takes_numbers:
                return NotImplemented
            if not is_number(other):
                return _equal_to_array(binding, input, other)
        signature = learn(input, other, key)
        return binding(input, other) if signature is None else signature

    def function(input: Any, other: Any) -> Any:
        kind = type(other)
        key: Any = None
        is_plain = False
        try:
            if kind is float or kind is int:
                is_plain = True
                if specials and is_special(other, specials):
                    key = (input._layout, kind, other)
                elif kind is float or _SMALLEST <= other <= _LARGEST:
                    key = (input._layout, kind)
            elif kind is complex:
                is_plain = True
                key = None if specials else (input._layout, kind)
            else:
                key = (input._layout, other._layout)
            signature: Any = signatures[key]
        except (KeyError, AttributeError):
            signature = None  # as above
        if signature is None:
            signature = surprise(input, other, key)
            if type(signature) is not Signature:
                return signature
        local = LOCAL.stream
        segment = local.segment
        records = segment.records
        if signature is segment.armed or len(records) >= segment.limit:
            segment = local.cut(signature)
            records = segment.records
        place = input._place
        slot_in = place.slot if place.segment is segment else segment.touch(input)
        site = local.site
        if site is None:
            frame = _getframe(1)
            code = frame.f_code
            site = _site() if _internal.get(code, True) else (code, frame.f_lasti)
        storage = Storage()
        storage.layout = layout = signature.out_layout
        storage.version = 0
        if is_plain:
            slot = segment.add(storage)
            numbers: Any = (other,) if signature.number_format else ()
            if kind is complex:
                numbers = (other.real, other.imag)
            record: Any = ((signature, slot_in, slot), numbers, site)
        else:
            place = other._place
            slot_other = place.slot if place.segment is segment else segment.touch(other)
            slot = segment.add(storage)
            record = ((signature, slot_in, slot_other, slot), (), site)
        out = empty_tensor()
        out._storage = out._place = storage
        out._layout = layout
        out._offset = 0
        out._autograd = out._base = None
        records.append(record)
        if segment.closed:
            run.flush(segment, _LATE)
        if local.grad_enabled:
            if (
                input._autograd is not None
                or input._base is not None
                or (not is_plain and (other._autograd is not None or other._base is not None))
            ) and differentiable:
                binding.gradient_plan.attach(
                    signature.attributes, (input, other, *extra), out, site
                )
        elif local.inference:
            binding.mark_inference(out)
        return out

    return function


def general(binding: Binding, is_method: bool = False) -> Callable[..., Any]:
    """Function that takes the general path."""

    def function(*arguments: Any, **named: Any) -> Any:
        return binding(*arguments, **named)

    name = binding.name
    if binding.is_view:
        return callables.view(binding, refusing(function, name, is_method))
    return callables.general(binding, refusing(autocast.casting(name, function), name, is_method))


def function_of(binding: Binding, is_method: bool = False) -> Callable[..., Any]:
    """The public callable of an operator. A method's differs in what its refusals count."""
    parameters = binding.parameters
    operands = [p for p in parameters if p.kind != "attribute"]
    required = [p for p in parameters if p.default is ABSENT]
    operator = binding.operator
    special = binding.is_view or operator.updates or operator.returns or binding.has_bounds
    made: Callable[..., Any]
    if special or required != list(parameters[: len(required)]):
        made = general(binding, is_method)
    elif len(required) == 1 and len(operands) == 1 and operands[0].kind == "Tensor":
        made = unary(binding, is_method)
    elif len(required) == 2 and all(p.kind in ("Tensor", "Operand") for p in required):
        made = binary(binding, is_method)
    else:
        made = general(binding, is_method)
    made.__name__ = made.__qualname__ = binding.name
    made.__doc__ = type(binding.operator).__doc__
    return made
