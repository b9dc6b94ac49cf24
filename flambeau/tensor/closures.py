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
from flambeau.engine.stream import LOCAL, RECURRENCE_RECORDS
from flambeau.tensor.binding import ABSENT, Binding
from flambeau.tensor.tensor import Tensor

_new: Final = object.__new__
_getframe: Final = sys._getframe
_internal: Final = callsite._INTERNAL
_site: Final = callsite.site
_MISSING: Final = object()
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1


def _plain(binding: Binding, arguments: tuple[Any, ...]) -> Signature | None:
    """The signature of a call the closures may serve, or None."""
    values = binding.arranged(arguments, {})
    call = binding.taken_apart(values)
    signature = binding.signature(call)
    outputs = signature.fresh_outputs
    if len(outputs) != 1 or outputs[0].device is META or binding.operator.returns:
        return None
    return signature


def unary(binding: Binding) -> Callable[..., Any]:
    """Function of one tensor; further arguments take the general path."""
    signatures: dict[Any, Signature] = {}
    differentiable = binding.operator.differentiable

    def function(input: Any, *rest: Any, **named: Any) -> Any:
        if rest or named:
            return binding(input, *rest, **named)
        try:
            signature = signatures[input._layout]
        except (KeyError, AttributeError):
            found = _plain(binding, (input,))
            if found is None:
                return binding(input)
            signature = signatures[input._layout] = found
        local = LOCAL.stream
        segment = local.segment
        records = segment.records
        segment.room = room = segment.room - signature.weight
        if room < 0 or (signature is segment.head and len(records) >= RECURRENCE_RECORDS):
            segment = local.cut(signature)
            records = segment.records
        slot_in = input._slot if input._segment is segment.token else segment.touch(input)
        frame = _getframe(1)
        code = frame.f_code
        site = _site() if _internal.get(code, True) else (code, frame.f_lasti)
        storages = segment.storages
        views = segment.views
        storage = _new(Storage)
        storage.layout = layout = signature.out_layout
        storage.n_bytes = signature.out_bytes
        storage.block = storage.external = storage.write_site = None
        storage.version = 0
        storage.segment = segment
        storage.number = number = len(storages)
        storage.slot = slot = len(views)
        storages.append(storage)
        views.append(number * 2 + 1)
        segment.offsets.append(0)
        out = _new(Tensor)
        out._storage = storage
        out._layout = layout
        out._offset = 0
        out._segment = segment.token
        out._slot = slot
        out._autograd = out._base = None
        if segment.head is None:
            segment.head = signature
        records.append(((signature, slot_in, slot), (), site))
        if segment.closed:
            run.flush(segment, "recorded while another thread flushed")
        if local.grad_enabled:
            if differentiable and (input._autograd is not None or input._base is not None):
                binding.gradient_plan.attach(signature.attributes, (input,), out, site)
        elif local.inference:
            binding.mark_inference(out)
        return out

    return function


def binary(binding: Binding, is_operator: bool = False) -> Callable[..., Any]:
    """Function of a tensor and a tensor or number; other calls take the general path.

    is_operator   serves one of Python's operators: returns NotImplemented for other operands
    """
    signatures: dict[Any, Signature] = {}
    differentiable = binding.operator.differentiable
    parameters = binding.parameters
    specials = parameters[1].specials
    n_extra = sum(p.kind != "attribute" for p in parameters) - 2
    extra = tuple([p.default for p in parameters[2:] if p.kind != "attribute"])

    def learn(input: Any, other: Any, key: Any) -> Signature | None:
        signature = _plain(binding, (input, other))
        # Defaults that are run-time numbers would have to be passed along.
        if signature is None or len(signature.number_format) > 1 or key is None:
            return None
        signatures[key] = signature
        return signature

    def function(input: Any, other: Any = _MISSING, *rest: Any, **named: Any) -> Any:
        if rest or named or other is _MISSING:
            arguments = (input,) if other is _MISSING else (input, other, *rest)
            return binding(*arguments, **named)
        kind = type(other)
        key: Any = None
        numbers: tuple[Any, ...] = ()
        try:
            if kind is float or kind is int:
                if specials and other in specials:
                    key = (input._layout, kind, other)
                else:
                    key = (input._layout, kind)
                    numbers = (other,)
                    if kind is int and not _SMALLEST <= other <= _LARGEST:
                        return binding(input, other)
            else:
                key = (input._layout, other._layout)
            signature: Any = signatures[key]
        except (KeyError, AttributeError):
            if is_operator and not isinstance(other, (Tensor, int, float)):
                if not (hasattr(other, "item") and getattr(other, "ndim", 1) == 0):
                    return NotImplemented
            signature = learn(input, other, key)
            if signature is None:
                return binding(input, other)
        local = LOCAL.stream
        segment = local.segment
        records = segment.records
        segment.room = room = segment.room - signature.weight
        if room < 0 or (signature is segment.head and len(records) >= RECURRENCE_RECORDS):
            segment = local.cut(signature)
            records = segment.records
        token = segment.token
        slot_in = input._slot if input._segment is token else segment.touch(input)
        frame = _getframe(1)
        code = frame.f_code
        site = _site() if _internal.get(code, True) else (code, frame.f_lasti)
        storages = segment.storages
        views = segment.views
        storage = _new(Storage)
        storage.layout = layout = signature.out_layout
        storage.n_bytes = signature.out_bytes
        storage.block = storage.external = storage.write_site = None
        storage.version = 0
        if kind is float or kind is int:
            storage.segment = segment
            storage.number = number = len(storages)
            storage.slot = slot = len(views)
            made = (signature, slot_in, slot)
        else:
            slot_other = other._slot if other._segment is token else segment.touch(other)
            storage.segment = segment
            storage.number = number = len(storages)
            storage.slot = slot = len(views)
            made = (signature, slot_in, slot_other, slot)
        storages.append(storage)
        views.append(number * 2 + 1)
        segment.offsets.append(0)
        out = _new(Tensor)
        out._storage = storage
        out._layout = layout
        out._offset = 0
        out._segment = token
        out._slot = slot
        out._autograd = out._base = None
        if segment.head is None:
            segment.head = signature
        records.append((made, numbers, site))
        if segment.closed:
            run.flush(segment, "recorded while another thread flushed")
        if local.grad_enabled:
            if differentiable:
                if input._autograd is not None or input._base is not None:
                    binding.gradient_plan.attach(
                        signature.attributes, (input, other, *extra), out, site
                    )
                elif kind is not float and kind is not int:
                    if other._autograd is not None or other._base is not None:
                        binding.gradient_plan.attach(
                            signature.attributes, (input, other, *extra), out, site
                        )
        elif local.inference:
            binding.mark_inference(out)
        return out

    if n_extra != len(extra):
        raise TypeError(f"{binding.name}: operands after the second need defaults")
    return function


def general(binding: Binding) -> Callable[..., Any]:
    """Function that takes the general path."""

    def function(*arguments: Any, **named: Any) -> Any:
        return binding(*arguments, **named)

    return function


def function_of(binding: Binding) -> Callable[..., Any]:
    """The public callable of an operator, for functions and methods alike."""
    operands = [p for p in binding.parameters if p.kind != "attribute"]
    required = [p for p in binding.parameters if p.default is ABSENT]
    made: Callable[..., Any]
    if binding.is_view or binding.operator.updates or binding.operator.returns:
        made = general(binding)
    elif len(required) == 1 and required == binding.parameters[:1] == tuple(operands[:1]):
        made = unary(binding) if operands[0].kind == "Tensor" else general(binding)
    elif _is_binary(binding, required):
        made = binary(binding)
    else:
        made = general(binding)
    made.__name__ = made.__qualname__ = binding.name
    made.__doc__ = type(binding.operator).__doc__
    return made


def _is_binary(binding: Binding, required: list[Any]) -> bool:
    parameters = binding.parameters
    if len(required) != 2 or tuple(required) != parameters[:2]:
        return False
    kinds = [p.kind for p in parameters[:2]]
    return all(kind in ("Tensor", "Operand") for kind in kinds)

