"""Hooks on tensors and nodes, and retain_grad.

Keeps     a tensor's hooks sit on the node that made it (or on the leaf), so they keep neither the
          tensor nor the graph alive. torch's order: the tensor's hooks, the kept .grad, the node's
          pre-hooks, the node, its post-hooks.
Touches   graph, members.
Not here  when the backward pass calls them (backward.py), hooks of modules (nn.modules.hooks)."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Self

from flambeau.base.errors import helped
from flambeau.gradients.graph import AccumulateGrad, Extras, Node
from flambeau.gradients.members import history
from flambeau.gradients.runtime import RUNTIME, users

_next_id = itertools.count().__next__
_NO_GRADIENT = "cannot register a hook on a tensor that doesn't require gradient"


class RemovableHandle:
    """Takes a hook away again: `remove()`, or leaving a `with` block."""

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = _next_id()
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = extra_dict if isinstance(extra_dict, (list, tuple)) else (
            () if extra_dict is None else (extra_dict,)
        )  # fmt: skip
        self.extra_dict_ref = tuple(weakref.ref(each) for each in extra)

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None and self.id in table:
                del table[self.id]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(each() for each in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        global _next_id
        self.hooks_dict_ref = weakref.ref(OrderedDict() if state[0] is None else state[0])
        self.id = state[1]
        extra = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(each) for each in extra if each is not None)
        _next_id = itertools.count(max(self.id, _next_id()) + 1).__next__


RemovableHandle.__module__ = "flambeau.utils.hooks"


class NodeHandle(RemovableHandle):
    """Of a hook on a node, whose table is a plain dict and lives as long as the handle."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], function: Callable[..., Any]) -> None:
        self.id = _next_id()
        self._hooks = hooks
        hooks[self.id] = function

    def remove(self) -> None:
        """Remove the hook; a second time does nothing."""
        self._hooks.pop(self.id, None)


NodeHandle.__name__ = NodeHandle.__qualname__ = "RemovableHandle"
NodeHandle.__module__ = "flambeau.utils.hooks"


def register_hook(tensor: Any, function: Callable[..., Any]) -> RemovableHandle:
    """Call function(grad) when the tensor's gradient is known; it may return another."""
    own = history(tensor)
    if own is None:
        raise RuntimeError(helped(_NO_GRADIENT, fix="set requires_grad=True first"))
    extras = getattr(own, "node", own).with_extras()
    return NodeHandle(extras.tensor_hooks.setdefault(own.output_index, {}), function)


def register_post_accumulate_grad_hook(
    tensor: Any, function: Callable[..., Any]
) -> RemovableHandle:
    """Call function(leaf) after its .grad was updated."""
    own = history(tensor)
    if own is None:
        raise RuntimeError(helped(_NO_GRADIENT, fix="set requires_grad=True first"))
    if own.__class__ is not AccumulateGrad:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return NodeHandle(own.with_extras().accumulated, function)


def retain_grad(tensor: Any) -> None:
    """Keep the gradient of a non-leaf in its .grad."""
    own = history(tensor)
    if own is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if own.__class__ is not AccumulateGrad:
        extras = getattr(own, "node", own).with_extras()
        extras.retained[own.output_index] = weakref.ref(tensor)


# ---------------------------------------------------------------- called by the backward pass


def checked(value: Any, before: Any, hook: Callable[..., Any]) -> Any:
    """What a hook returned in place of a gradient, held to its shape and dtype."""
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(value, RUNTIME.tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(value).__name__}'")
    if before is None:
        return value
    if value._layout.dtype is not before._layout.dtype:
        was, got = RUNTIME.type_name(before._layout), RUNTIME.type_name(value._layout)
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {was} got {got})")
    if value._layout.shape != before._layout.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return value


def run_tensor_hooks(extras: Extras, cotangents: list[Any]) -> None:
    """Hooks of the tensors that the node made, on its cotangents, in place."""
    for index, hooks in extras.tensor_hooks.items():
        for hook in list(hooks.values()):
            cotangent = cotangents[index]
            if cotangent is None:
                break
            changed = users(hook, cotangent)
            if changed is not None:
                cotangents[index] = checked(changed, cotangent, hook)


def keep_retained(extras: Extras, cotangents: list[Any]) -> None:
    """Set or add to the .grad of tensors that asked to retain it."""
    for index, reference in list(extras.retained.items()):
        tensor = reference()
        cotangent = cotangents[index]
        if tensor is None or cotangent is None:
            continue
        before = tensor._grad
        if before is None:
            # A later in-place change of what arrives must not show in .grad.
            tensor._grad = cotangent.clone()
        else:
            tensor._grad = before + cotangent


def run_pre_hooks(extras: Extras, cotangents: list[Any]) -> list[Any]:
    """The node's pre-hooks on all its cotangents."""
    for hook in list(extras.pre.values()):
        changed = users(hook, tuple(cotangents))
        if changed is not None:
            cotangents = _replaced(changed, cotangents, hook)
    return cotangents


def run_post_hooks(extras: Extras, found: list[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The node's hooks on (cotangents of the operands, cotangents of the outputs)."""
    for hook in list(extras.post.values()):
        changed = users(hook, tuple(found), tuple(cotangents))
        if changed is not None:
            found = _replaced(changed, found, hook)
    return found


def _replaced(changed: Any, before: list[Any], hook: Callable[..., Any]) -> list[Any]:
    if not isinstance(changed, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(changed).__name__}'")
    if len(changed) != len(before):
        name = getattr(hook, "__name__", type(hook).__name__)
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(changed)}, but "
            f"expected {len(before)})"
        )
    return [None if new is None else checked(new, old, hook)
            for new, old in zip(changed, before, strict=True)]  # fmt: skip


def run_leaf_hooks(leaf: Node, tensor: Any) -> None:
    """post_accumulate_grad hooks."""
    if leaf.extras is not None:
        for hook in list(leaf.extras.accumulated.values()):
            users(hook, tensor)
