"""User-defined functions as nodes: what torch.autograd.Function does when applied.

Keeps     the context handed to forward and backward is the node itself, as in torch; saved tensors
          come back as the objects that were saved while those live, without being kept alive.
Touches   graph, inplace, members, modes, saved, runtime.
Not here  the class that users derive from (autograd/function.py)."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any

from flambeau.base.errors import helped
from flambeau.engine.stream import current
from flambeau.gradients import anomaly
from flambeau.gradients.graph import AccumulateGrad, Node, Output, next_sequence
from flambeau.gradients.members import history
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording.inplace import (
    FUNCTION,
    MULTIPLE,
    rewrite_history,
)
from flambeau.gradients.runtime import RUNTIME, users
from flambeau.gradients.saved import FREED, OWN, SPECIAL, bump, save, value_of


class SavedObject:
    """A value saved by a user: what a graph keeps, and the object itself while it lives."""

    __slots__ = ("index", "reference", "value")

    def __init__(self, tensor: Any, own: Any, index: int) -> None:
        self.value = save(tensor, own)
        self.index = index  # which output of the node it is; -1: none
        self.reference = weakref.ref(tensor)

    def unpack(self, node: Node) -> Any:
        """The tensor, checked to be as it was."""
        own = Output(node, self.index) if self.index >= 0 else node
        value = value_of(self.value, own)
        tensor = self.reference()
        if tensor is None or self.value.__class__ is not tuple:
            return value
        same = tensor._storage is value._storage and tensor._layout is value._layout
        if not same or tensor._offset != value._offset:
            return value
        mine = tensor._autograd
        is_own = mine.__class__ is Output and mine.node is node and mine.output_index == self.index
        return tensor if is_own or mine is value._autograd else value


class FunctionNode(Node):
    """Node of one application of a user's Function, and the `ctx` of its methods."""

    always_runs = True
    _forward_cls: Any = None

    def __init__(self) -> None:
        self.edges: Sequence[Any] = ()
        self.layouts: Sequence[Any] = ()
        self.extras = None
        self.site = None
        self.sequence = 0
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self._saved: list[SavedObject | None] | None = []
        self._is_tensor: tuple[bool, ...] = ()
        self._outputs: list[Any] = []  # layouts of tensors, None for other outputs

    # ------------------------------------------------------------ for the user's methods

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs for backward, checked against later in-place writes."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Accepted for torch's sake; there is no forward mode."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs forward changed in place; they must be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (default) or None where no gradient arrives."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept."""
        if self._saved is None:
            raise RuntimeError(FREED)
        return tuple([None if each is None else each.unpack(self) for each in self._saved])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """torch's old name of saved_tensors."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    # ------------------------------------------------------------ as a node

    def node_name(self) -> str:
        """NameBackward."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.node_name()} object at {id(self):#x}>"

    def no_cotangents(self) -> list[Any]:
        """One place an output."""
        return [None] * len(self._outputs)

    def release(self) -> None:
        """Drop what was saved."""
        if self._saved:
            self._saved = None

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """Call the user's backward (or vjp)."""
        grads = list(cotangent) if isinstance(cotangent, (list, tuple)) else [cotangent]
        if self.materialize_grads:
            for index, layout in enumerate(self._outputs):
                if grads[index] is None and layout is not None:
                    grads[index] = RUNTIME.functions.zeros(
                        layout.shape, dtype=layout.dtype, device=layout.device
                    )
        found = users(self._forward_cls._backward_function(), self, *grads)
        return self._checked(found if isinstance(found, tuple) else (found,))

    def _checked(self, found: tuple[Any, ...]) -> list[Any]:
        expected = len(self._is_tensor)
        if len(found) > expected and all(each is None for each in found[expected:]):
            found = found[:expected]
        if len(found) != expected:
            raise RuntimeError(
                helped(
                    f"function {self.node_name()} returned an incorrect number of gradients "
                    f"(expected {expected}, got {len(found)})",
                    fix="return one gradient, or None, for each argument of forward",
                )
            )
        kept: list[Any] = []
        for position, (value, is_tensor) in enumerate(zip(found, self._is_tensor, strict=True)):
            if not is_tensor:
                if value is not None:
                    raise RuntimeError(
                        f"function {self.node_name()} returned a gradient different than None at "
                        f"position {position + 1}, but the corresponding forward input was not a "
                        "Variable"
                    )
                continue
            if not (
                value is None
                or isinstance(value, RUNTIME.tensor)
                or getattr(value, "is_sparse", False)
            ):
                raise RuntimeError(f"expected Variable or None (got {type(value).__name__})")
            kept.append(value)
        return kept


class ErrorNode(Node):
    """Raises when the backward pass reaches it (once_differentiable)."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.edges = self.layouts = ()
        self.extras = None
        self.site = None
        self.sequence = next_sequence()
        self.message = message

    def node_name(self) -> str:
        """torch's name."""
        return "Error"

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """Raise the message."""
        raise RuntimeError(self.message)


def not_again(value: Any, message: str) -> Any:
    """A tensor's alias whose gradient is an error."""
    twin = RUNTIME.alias(value)
    twin._autograd = ErrorNode(message)
    return twin


# ---------------------------------------------------------------- applying a Function


def apply_function(function: Any, node: FunctionNode, arguments: tuple[Any, ...]) -> Any:
    """Run forward without recording gradients, then give its outputs their history."""
    tensor_type = RUNTIME.tensor
    node._is_tensor = tuple([isinstance(each, tensor_type) for each in arguments])
    inputs = [each for each in arguments if isinstance(each, tensor_type)]
    histories = [history(each) for each in inputs]
    node.needs_input_grad = tuple(
        [isinstance(each, tensor_type) and each._autograd is not None for each in arguments]
    )
    records = is_grad_enabled() and any(own is not None for own in histories)
    recorder = current()
    before = recorder.grad_enabled
    try:
        recorder.grad_enabled = False
        if function._has_setup_context():
            result = function.forward(*arguments)
            function.setup_context(node, arguments, result)
        else:
            result = function.forward(node, *arguments)
    finally:
        recorder.grad_enabled = before  # no call, nothing comes between
    outputs = result if isinstance(result, tuple) else (result,)
    _check_dirty(node, outputs)
    if records:
        node.edges = histories
        node.layouts = [each._layout for each in inputs]
        node.sequence = next_sequence()
        if SPECIAL and anomaly.is_enabled():
            node.with_extras().trace = anomaly.forward_trace()
    node._outputs = [each._layout if isinstance(each, tensor_type) else None for each in outputs]
    wrapped = tuple([
        _wrapped(each, index, node, inputs, records) if isinstance(each, tensor_type) else each
        for index, each in enumerate(outputs)
    ])  # fmt: skip
    if records:
        _save(node, inputs, histories, outputs, wrapped)
    node.to_save = node.dirty_tensors = node.non_differentiable = ()
    return wrapped if isinstance(result, tuple) else wrapped[0]


def _has(tensors: Sequence[Any], tensor: Any) -> bool:
    return any(each is tensor for each in tensors)


def _check_dirty(node: FunctionNode, outputs: tuple[Any, ...]) -> None:
    for each in node.dirty_tensors:
        if not _has(outputs, each):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )


def _wrapped(tensor: Any, index: int, node: FunctionNode, inputs: list[Any], records: bool) -> Any:
    """An output with its history; aliases where torch makes them."""
    is_input = _has(inputs, tensor)
    dirty = _has(node.dirty_tensors, tensor)
    differentiable = (
        records and tensor._layout.dtype.category >= 2
        and not _has(node.non_differentiable, tensor)
    )  # fmt: skip
    if dirty:
        bump(tensor, node.site)  # forward may have written where no counter saw it
        if differentiable:
            _rewrite(tensor, index, node)
        return tensor
    if is_input:
        alias = RUNTIME.alias(tensor)
        alias._base = tensor if tensor._base is None else tensor._base
        tensor = alias
    if not differentiable:
        if is_input:
            tensor._base = None  # through which it would require gradients
        if tensor._base is None:
            tensor._autograd = None
        return tensor
    tensor._autograd = Output(node, index)
    if tensor._base is not None:
        tensor._rebased = tensor._base._rebased
        several = sum(layout is not None for layout in node._outputs) > 1
        tensor._creation = MULTIPLE if several else FUNCTION
    return tensor


def _rewrite(tensor: Any, index: int, node: FunctionNode) -> None:
    base = tensor._base
    if history(tensor).__class__ is AccumulateGrad:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )
    if base is not None and base._autograd.__class__ is AccumulateGrad:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )
    if base is not None and len(node._outputs) > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your "
            "Function cannot return more than one Tensor. This is not supported by the current "
            "autograd engine. You should either make sure the input is not a view (using .clone() "
            "for example) or make your Function only return one Tensor (potentially splitting it "
            "into two Functions: one doing the inplace that returns a single Tensor and a second "
            "one that does the other operations). You can ask on the forum "
            "https://discuss.pytorch.org/ if you need help to do this change."
        )
    rewrite_history(tensor, node, tensor._autograd, Output(node, index))


def _save(
    node: FunctionNode, inputs: list[Any], histories: list[Any], outputs: tuple[Any, ...],
    wrapped: tuple[Any, ...],
) -> None:  # fmt: skip
    kept: list[SavedObject | None] = []
    for position, tensor in enumerate(node.to_save):
        if tensor is None:
            kept.append(None)
            continue
        if not isinstance(tensor, RUNTIME.tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {position} is of type "
                f"{type(tensor).__name__}"
            )
        index = next((n for n, each in enumerate(outputs) if each is tensor), -1)
        if index >= 0 and not (_has(inputs, tensor) and not _has(node.dirty_tensors, tensor)):
            made = wrapped[index]
            own = OWN if made._autograd is not None else None
            kept.append(SavedObject(made, own, index))
            continue
        own = next((own for each, own in zip(inputs, histories, strict=True) if each is tensor),
                   tensor._autograd)  # fmt: skip
        kept.append(SavedObject(tensor, own, -1))
    node._saved = kept
