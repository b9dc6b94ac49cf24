"""Writes into tensors that exist: name_(), out=, and operators that update their operands.

Keeps     everything is checked before anything is recorded; a write is one record whose target is a
          view slot, ordered with everything else that touches the storage.
Touches   binding, engine, gradients.recording.record.
Not here  the closures of fresh results (closures.py), x[...] = y (indexing)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from flambeau.base.devices import META
from flambeau.base.errors import helped, present
from flambeau.base.layout import Layout, contiguous
from flambeau.base.promotion import SCALAR_TYPE_NAMES, SCALARS, can_cast, promote
from flambeau.base.shapes import like_strides
from flambeau.engine import callsite, external, stream
from flambeau.engine.signature import Signature, number_formats
from flambeau.gradients.recording import record as gradient_record
from flambeau.ops.define import Elementwise, Inferred, Operator, c_type_name, type_name
from flambeau.tensor.binding import Binding, Call, remember
from flambeau.tensor.number_rules import FILLS, check_numbers
from flambeau.tensor.tensor import Tensor, result_tuple

OVERLAP_INTERNAL = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
OVERLAP_PARTIAL = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def call_inplace(binding: Binding, arguments: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """name_(): the operator's result written into its first operand, which is returned."""
    try:
        call = binding.taken_apart(binding.arranged(arguments, named))
    except TypeError as error:
        raise _of_method(error, binding.name) from None
    target = call.tensors[0]
    if target is not call.values[0]:
        raise TypeError(f"{binding.name}_(): the first argument must be a Tensor")
    key = ("inplace", *call.key)
    signature = binding.signatures.get(key)
    if signature is None:
        signature = inplace_signature(binding, call, target._layout)
        remember(binding.signatures, key, signature)
    if binding.name in FILLS:
        numbers = call.values if binding.name == "pow" else call.numbers
        check_numbers(binding.name, numbers, target._layout.dtype)
    check_overlap(target, call.tensors[1:], binding.name)
    if binding.is_bounded(call):
        binding.check_bounds(call)
    operands = operands_of(binding, call)
    saved = gradient_record.prepare_inplace(binding.gradient_plan, operands, target)
    site = stream.LOCAL.stream.site or callsite.site()
    write(signature, call.tensors, tuple(call.numbers), site, (target,))
    gradient_record.bump(target, site)
    if saved is not None:
        gradient_record.attach_inplace(
            binding.gradient_plan, signature.attributes, saved, target, site
        )
    return target


def _of_method(error: TypeError, name: str) -> TypeError:
    """A refused call in the words of name_(), which counts its arguments from the tensor on."""
    words = str(error)
    if not words.startswith(f"{name}("):
        return error
    counted = re.sub(r"\(position (\d+)\)", lambda m: f"(position {int(m[1]) - 1})", words, count=1)
    return TypeError(f"{name}_{counted.removeprefix(name)}")


def operands_of(binding: Binding, call: Call) -> tuple[Any, ...]:
    """Operands of a call as gradients want them: attributes left out."""
    return tuple(
        [
            value
            for parameter, value in zip(binding.parameters, call.values, strict=True)
            if parameter.kind != "attribute"
        ]
    )


def inplace_signature(binding: Binding, call: Call, target: Layout) -> Signature:
    outcome = _inferred(binding, call, (target,))
    (result,) = outcome.outputs
    if result.shape != target.shape:
        if binding.name in ("addmm", "addmv", "baddbmm"):
            raise RuntimeError(
                f"Bad in-place call: input tensor size {list(target.shape)} and output tensor size "
                f"{list(result.shape)} should match"
            )
        raise RuntimeError(
            helped(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}",
                fix=f"write into a tensor of shape {tuple(result.shape)}, or use "
                f"{binding.name}() for a new one",
            )
        )
    if target.dtype.is_complex and getattr(binding.operator, "gives_real", False):
        raise RuntimeError(f"In-place {binding.name} is not supported for complex tensors.")
    check_castable(result, target)
    is_one_number = len(call.tensors) == 1 and binding.name in ("fill", "zero")
    if not is_one_number:  # which may be written several times to one place
        check_writable(target)
    parameters, _ = binding.lowering_parameters(call.values)
    layouts = tuple([tensor._layout for tensor in call.tensors])
    return Signature(
        binding.operator, layouts, parameters, outcome.attributes, (), (0,),
        number_formats([type(n) for n in call.numbers]),
    )  # fmt: skip


def _inferred(binding: Binding, call: Call, targets: Sequence[Layout]) -> Inferred:
    """What the operator's inference says; that a result does not go into its target is said before
    that there is no kernel, as torch does."""
    try:
        return binding.inferred(call.values)
    except NotImplementedError:
        operator = binding.operator
        if isinstance(operator, Elementwise) and len(targets) == 1:
            operands = [
                value._layout if isinstance(value, Tensor) else SCALARS[type(value)]
                for parameter, value in zip(binding.parameters, call.values, strict=True)
                if parameter.kind in ("Tensor", "Operand")
            ]
            _, result = promote(operator.promote, tuple(operands))
            target = targets[0]
            check_castable(contiguous(target.shape, result, target.device), target, binding.name)
        raise


def _dtype_given(binding: Binding, call: Call) -> Any:
    """The dtype that the call itself asks for."""
    position = binding.positions.get("dtype")
    return None if position is None else call.values[position]


def check_same_dtype(operator: Operator, result: Layout, given: Layout) -> None:
    """Refuse an out= tensor of another dtype with the operator's message."""
    if operator.takes_out(result.dtype, given.dtype):
        return
    refusal = operator.out_refusal or present(Operator.out_refusal, "the general message")
    raise RuntimeError(
        helped(
            refusal.format(
                name=operator.name, result=type_name(result), given=type_name(given),
                c_result=c_type_name(result), c_given=c_type_name(given),
            ),
            fix=f"an out= tensor of {result.dtype}, or the result's .to({given.dtype})",
        )
    )  # fmt: skip


# Joins say it in their own words, and with another class.
_JOINS: Final = frozenset(("cat", "hstack", "stack", "vstack"))


def check_castable(result: Layout, target: Layout, name: str = "") -> None:
    """Refuse results of a higher category than the target's."""
    if not can_cast(result.dtype, target.dtype) and name not in ("cumprod", "cumsum"):
        given, wanted = (SCALAR_TYPE_NAMES[each.dtype.name] for each in (result, target))
        if name in _JOINS:
            raise TypeError(
                f"torch.cat(): input types can't be cast to the desired output type {wanted}"
            )
        raise RuntimeError(
            helped(
                f"result type {given} can't be cast to the desired output type {wanted}",
                fix=f"convert the target first: .to(torch.{result.dtype.name})",
            )
        )


def check_writable(target: Layout) -> None:
    """Refuse targets several of whose elements are one place in memory."""
    if not target.n_elements:
        return
    for size, stride in zip(target.shape, target.strides, strict=True):
        if size > 1 and stride == 0:
            raise RuntimeError(OVERLAP_INTERNAL)


# These write elsewhere than they read: not even the very same memory will do.
_APART: Final = frozenset(
    ("cat", "gather", "hstack", "index_add", "index_copy", "index_put", "index_reduce",
     "index_select", "kthvalue", "masked_select", "put", "scatter", "scatter_add", "scatter_reduce",
     "stack", "take", "vstack")
)  # fmt: skip
# The value of these is one number, read before anything is written.
_OF_NUMBERS: Final = frozenset(("fill", "index_fill", "masked_fill"))


def check_overlap(target: Tensor, sources: Any, name: str = "copy") -> None:
    """Refuse sources that share part of the target's memory (torch's rule: not all, not none)."""
    storage = target._storage
    is_apart = name in _APART
    for source in sources:
        if source._storage is not storage or (source is target and not is_apart):
            continue
        if name in _OF_NUMBERS and not source._layout.shape:
            continue
        mine, other = target._layout, source._layout
        if mine is other and target._offset == source._offset and not is_apart:
            continue
        if not (mine.is_dense and other.is_dense):
            continue
        low = (target._offset + mine.low) * mine.itemsize
        high = low + mine.span * mine.itemsize
        other_low = (source._offset + other.low) * other.itemsize
        other_high = other_low + other.span * other.itemsize
        if low < other_high and other_low < high and mine.n_elements and other.n_elements:
            is_same = (low, high) == (other_low, other_high) and mine.strides == other.strides
            if is_same and not is_apart:
                continue
            raise RuntimeError(OVERLAP_PARTIAL)


def write(
    signature: Signature,
    tensors: Any,
    numbers: tuple[Any, ...],
    site: Any,
    targets: tuple[Tensor, ...],
) -> None:
    """Record a signature that writes into operands; at once where Python outside may look."""
    current = stream.LOCAL.stream
    if targets and targets[0]._layout.device is META:
        return
    shared = [target for target in targets if target._storage.external is not None]
    if not shared:
        stream.record(current, signature, tensors, numbers, site)
        return
    external.write_at_once(current, signature, tensors, numbers, site, shared)


def call_update(binding: Binding, call: Call, signature: Signature) -> None:
    """An operator that only updates what it is given."""
    site = stream.LOCAL.stream.site or callsite.site()
    targets = tuple([call.tensors[position] for position in signature.targets])
    write(signature, call.tensors, tuple(call.numbers), site, targets)
    for target in targets:
        gradient_record.bump(target, site)


def call_out(binding: Binding, arguments: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
    """out=: results written into given tensors, resized where they have another shape."""
    values = binding.arranged(arguments, named)
    if binding.operator.follows_out and isinstance(out, Tensor):
        position = binding.positions["dtype"]
        values[position] = values[position] or out._layout.dtype
    call = binding.taken_apart(values)
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    for each in outs:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"{binding.name}(): argument 'out' must be Tensor, not {type(each).__name__}"
            )
    if binding.operator.differentiable:
        gradient_record.check_out(binding.name, operands_of(binding, call), out)
    outcome = _inferred(binding, call, [each._layout for each in outs])
    if len(outs) != len(outcome.outputs):
        raise TypeError(
            f"{binding.name}(): expected {len(outcome.outputs)} tensors in 'out', got {len(outs)}"
        )
    is_free = binding.operator.out_refusal is None and _dtype_given(binding, call) is None
    for each, layout in zip(outs, outcome.outputs, strict=True):
        if not is_free:
            check_same_dtype(binding.operator, layout, each._layout)
        check_castable(layout, each._layout, binding.name)
        check_writable(each._layout)
        if each._layout.shape != layout.shape:
            resize_for_out(each, layout)
    parameters, count = binding.lowering_parameters(call.values)
    layouts = tuple([tensor._layout for tensor in (*call.tensors, *outs)])
    signature = Signature(
        binding.operator, layouts, parameters, outcome.attributes, (),
        tuple(range(count, count + len(outs))), number_formats([type(n) for n in call.numbers]),
    )  # fmt: skip
    key = ("out", *call.key, *[each._layout for each in outs])
    known = binding.signatures.get(key)
    if known is None:
        remember(binding.signatures, key, signature)
    else:
        signature = known
    for each in outs:
        check_overlap(each, call.tensors, binding.name)
    if binding.is_bounded(call):
        binding.check_bounds(call)
    site = stream.LOCAL.stream.site or callsite.site()
    write(signature, (*call.tensors, *outs), tuple(call.numbers), site, outs)
    for each in outs:
        gradient_record.bump(each, site)
    names = binding.operator.returns
    return result_tuple(f"{binding.name}_out", names, outs) if names else out


def resize_for_out(target: Tensor, result: Layout) -> None:
    """Give an out= tensor the shape and strides of the result; torch warns unless it was empty."""
    if target._layout.n_elements:
        import warnings

        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(target._layout.shape)}, which does not match the required output shape "
            f"{list(result.shape)}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements. You can explicitly reuse "
            "an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            stacklevel=5,
        )
    from flambeau.tensor import creation

    given = target._layout
    strides = like_strides(result)
    creation.resize(target, creation.make_layout(result.shape, strides, given.dtype, given.device))


def stored(
    found: Any, out: Any, refusal: str | None = Operator.out_refusal, name: str = "out"
) -> Any:
    """The results of the function `name`, put into out= where it is given: for functions that are
    written over operators. `refusal` as Operator.out_refusal."""
    if out is None:
        return found
    if isinstance(found, (tuple, list)):
        if len(out) != len(found):
            raise TypeError(f"expected {len(found)} tensors in 'out', got {len(out)}")
        for value, target in zip(found, out, strict=True):
            stored(value, target, refusal, name)
        if type(found) is tuple or type(found) is list:
            return out
        kind: Any = type(found)
        return result_tuple(kind.__name__ + "_out", kind._fields, tuple(out))
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    result, given = found._layout, out._layout
    if refusal is not None and result.dtype is not given.dtype:
        raise RuntimeError(
            refusal.format(
                result=type_name(result),
                given=type_name(given),
                c_result=c_type_name(result),
                c_given=c_type_name(given),
            )
        )
    check_castable(result, given)
    gradient_record.check_out(name, (found,), out)
    if given.shape != result.shape:
        resize_for_out(out, result)
    return out.copy_(found)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes_out(function: _Function) -> _Function:
    """The function with out=, which takes its results."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, out: Any = None, **named: Any) -> Any:
        return stored(function(*arguments, **named), out, name=function.__name__)

    return wrapper  # type: ignore[return-value]


__all__ = ["call_inplace", "call_out", "call_update", "stored", "takes_out", "write"]
