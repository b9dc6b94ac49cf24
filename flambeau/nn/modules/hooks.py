"""Hooks of modules: before and after forward, before and after backward.

Keeps     a module without hooks pays one test per call (Module.__call__); hooks run in the order of
          registration, `prepend` first; removing a handle twice is harmless.
Touches   gradients through autograd.Function for backward hooks.
Not here  hooks of tensors (gradients.hooks)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from flambeau.tensor import Tensor
from flambeau.utils.hooks import RemovableHandle


class _Global:
    """Hooks of every module."""

    def __init__(self) -> None:
        self.forward: OrderedDict[int, Any] = OrderedDict()
        self.forward_pre: OrderedDict[int, Any] = OrderedDict()


GLOBAL: Final = _Global()
GLOBAL_FORWARD: Final = GLOBAL.forward
GLOBAL_FORWARD_PRE: Final = GLOBAL.forward_pre


def register_module_forward_hook(hook: Any, *, always_call: bool = False) -> RemovableHandle:
    """A forward hook of every module."""
    handle = RemovableHandle(GLOBAL.forward)
    GLOBAL.forward[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook: Any) -> RemovableHandle:
    """A forward pre-hook of every module."""
    handle = RemovableHandle(GLOBAL.forward_pre)
    GLOBAL.forward_pre[handle.id] = hook
    return handle


def register_forward_hook(
    self: Any, hook: Any, *, prepend: bool = False, with_kwargs: bool = False,
    always_call: bool = False,
) -> RemovableHandle:  # fmt: skip
    """Call hook(module, inputs, output) after forward; what it returns replaces the output."""
    handle = RemovableHandle(
        self._forward_hooks,
        extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
    )
    self._forward_hooks[handle.id] = hook
    if with_kwargs:
        self._forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        self._forward_hooks_always_called[handle.id] = True
    if prepend:
        self._forward_hooks.move_to_end(handle.id, last=False)
    return handle


def register_forward_pre_hook(
    self: Any, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
) -> RemovableHandle:
    """Call hook(module, inputs) before forward; what it returns replaces the inputs."""
    handle = RemovableHandle(
        self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs
    )
    self._forward_pre_hooks[handle.id] = hook
    if with_kwargs:
        self._forward_pre_hooks_with_kwargs[handle.id] = True
    if prepend:
        self._forward_pre_hooks.move_to_end(handle.id, last=False)
    return handle


def register_full_backward_hook(self: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) when gradients of the inputs are known."""
    handle = RemovableHandle(self._backward_hooks)
    self._backward_hooks[handle.id] = hook
    if prepend:
        self._backward_hooks.move_to_end(handle.id, last=False)
    return handle


def register_full_backward_pre_hook(self: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Call hook(module, grad_output) before gradients flow through the module."""
    handle = RemovableHandle(self._backward_pre_hooks)
    self._backward_pre_hooks[handle.id] = hook
    if prepend:
        self._backward_pre_hooks.move_to_end(handle.id, last=False)
    return handle


def call(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """forward with all hooks around it."""
    result: Any = None
    done = False
    try:
        arguments, named = _before(module, arguments, named)
        watch = (
            _BackwardWatch(module) if module._backward_hooks or module._backward_pre_hooks else None
        )
        if watch is not None:
            arguments = watch.inputs(arguments)
        result = module.forward(*arguments, **named)
        done = True
        for number, hook in [*GLOBAL.forward.items(), *module._forward_hooks.items()]:
            result = _after(module, number, hook, arguments, named, result)
        return watch.outputs(result) if watch is not None else result
    except Exception:
        if not done:
            for number in list(module._forward_hooks_always_called):
                hook = module._forward_hooks[number]
                _after(module, number, hook, arguments, named, result)
        raise


def _before(
    module: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for number, hook in [*GLOBAL.forward_pre.items(), *module._forward_pre_hooks.items()]:
        if number in module._forward_pre_hooks_with_kwargs:
            found = hook(module, arguments, named)
            if found is None:
                continue
            if not (isinstance(found, tuple) and len(found) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but "
                    f"got {found}."
                )
            arguments, named = found
        else:
            found = hook(module, arguments)
            if found is not None:
                arguments = found if isinstance(found, tuple) else (found,)
    return arguments, named


def _after(module: Any, number: int, hook: Any, arguments: Any, named: Any, result: Any) -> Any:
    if number in module._forward_hooks_with_kwargs:
        found = hook(module, arguments, named, result)
    else:
        found = hook(module, arguments, result)
    return result if found is None else found


class _BackwardWatch:
    """Identity functions around a forward that see the gradients on both sides."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_outputs: Any = None

    def inputs(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Inputs whose gradients the backward hooks get, and may replace."""
        positions = [
            n for n, a in enumerate(arguments) if isinstance(a, Tensor) and a.requires_grad
        ]
        if not positions:
            return arguments

        def finished(grads: tuple[Any, ...]) -> Any:
            full = [None] * len(arguments)
            for position, grad in zip(positions, grads, strict=True):
                full[position] = grad
            changed = tuple(full)
            for hook in list(self.module._backward_hooks.values()):
                found = hook(self.module, changed, self.grad_outputs)
                if found is not None:
                    changed = found if isinstance(found, tuple) else (found,)
            return tuple(changed[p] for p in positions)

        watched = _identity(finished, [arguments[p] for p in positions])
        made = list(arguments)
        for position, tensor in zip(positions, watched, strict=True):
            made[position] = tensor
        return tuple(made)

    def outputs(self, result: Any) -> Any:
        """Outputs whose gradients are noted, after the backward pre-hooks have seen them."""
        is_single = isinstance(result, Tensor)
        flat = [result] if is_single else list(result) if isinstance(result, tuple) else []
        positions = [n for n, a in enumerate(flat) if isinstance(a, Tensor) and a.requires_grad]
        if not positions:
            return result

        def arrived(grads: tuple[Any, ...]) -> Any:
            full: list[Any] = [None] * len(flat)
            for position, grad in zip(positions, grads, strict=True):
                full[position] = grad
            changed = tuple(full)
            for hook in list(self.module._backward_pre_hooks.values()):
                found = hook(self.module, changed)
                if found is not None:
                    changed = found if isinstance(found, tuple) else (found,)
            self.grad_outputs = changed
            return tuple(changed[p] for p in positions)

        watched = _identity(arrived, [flat[p] for p in positions])
        for position, tensor in zip(positions, watched, strict=True):
            flat[position] = tensor
        return flat[0] if is_single else tuple(flat)


def _identity(see: Any, tensors: list[Any]) -> tuple[Any, ...]:
    from flambeau.autograd.function import Function

    class BackwardHook(Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            ctx.set_materialize_grads(False)
            return tuple(value.view_as(value) for value in values)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return see(grads)

    return BackwardHook.apply(*tensors)  # type: ignore[no-any-return]
