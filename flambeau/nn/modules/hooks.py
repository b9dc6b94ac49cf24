"""Hooks of modules: before and after forward, before and after backward.

Keeps     a module without hooks pays one test per call (Module.__call__); hooks run in the order of
          registration, `prepend` first; removing a handle twice is harmless.
Touches   gradients through autograd.Function for backward hooks.
Not here  hooks of all modules (global_hooks.py), of tensors (gradients.hooks)."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from flambeau.nn.modules import global_hooks
from flambeau.tensor import Tensor
from flambeau.utils.hooks import RemovableHandle, registered


def register_forward_hook(
    self: Any, hook: Any, *, prepend: bool = False, with_kwargs: bool = False,
    always_call: bool = False,
) -> RemovableHandle:  # fmt: skip
    """Call hook(module, inputs, output) after forward; what it returns replaces the output."""
    return registered(
        self._forward_hooks, hook, prepend, (self._forward_hooks_with_kwargs, with_kwargs),
        (self._forward_hooks_always_called, always_call),
    )  # fmt: skip


def register_forward_pre_hook(
    self: Any, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
) -> RemovableHandle:
    """Call hook(module, inputs) before forward; what it returns replaces the inputs."""
    return registered(
        self._forward_pre_hooks, hook, prepend, (self._forward_pre_hooks_with_kwargs, with_kwargs)
    )


def _say_which(module: Any, is_full: bool) -> None:
    """Note which kind of backward hooks a module has; two kinds are refused."""
    if module._is_full_backward_hook is (not is_full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks on a single Module. "
            "Please use only one of them."
        )
    module._is_full_backward_hook = is_full


def register_backward_hook(self: Any, hook: Any) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) of the node that made the output."""
    _say_which(self, is_full=False)
    return registered(self._backward_hooks, hook)


def register_full_backward_hook(self: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) when gradients of the inputs are known."""
    _say_which(self, is_full=True)
    return registered(self._backward_hooks, hook, prepend)


def register_full_backward_pre_hook(self: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Call hook(module, grad_output) before gradients flow through the module."""
    return registered(self._backward_pre_hooks, hook, prepend)


def call(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """forward with all hooks around it."""
    result: Any = None
    called: set[int] = set()
    try:
        arguments, named = _before(module, arguments, named)
        full, of_nodes = (global_hooks.backward_hooks(module, kind) for kind in (True, False))
        before = [*global_hooks.BACKWARD_PRE.values(), *module._backward_pre_hooks.values()]
        watch = _BackwardWatch(module, before, full) if before or full else None
        if watch is not None:
            arguments = watch.inputs(arguments)
        result = module.forward(*arguments, **named)
        for number, hook in [*global_hooks.FORWARD.items(), *module._forward_hooks.items()]:
            called.add(number)
            result = _after(module, number, hook, arguments, named, result)
        if watch is not None:
            result = watch.outputs(result)
        if of_nodes:
            _hook_node(module, of_nodes, arguments, result)
        return result
    except Exception:
        always = {**global_hooks.FORWARD_ALWAYS_CALLED, **module._forward_hooks_always_called}
        for number, hook in [*global_hooks.FORWARD.items(), *module._forward_hooks.items()]:
            if number in always and number not in called:
                _after_an_error(module, number, hook, arguments, named, result)
        raise


def _before(
    module: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for number, hook in [*global_hooks.FORWARD_PRE.items(), *module._forward_pre_hooks.items()]:
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
    if number in module._forward_hooks_with_kwargs or number in global_hooks.FORWARD_WITH_KWARGS:
        found = hook(module, arguments, named, result)
    else:
        found = hook(module, arguments, result)
    return result if found is None else found


def _after_an_error(module: Any, number: int, hook: Any, *values: Any) -> None:
    """A hook that is called though forward failed: what it raises does not hide that."""
    try:
        _after(module, number, hook, *values)
    except Exception as error:
        kind = "global module" if number in global_hooks.FORWARD else "module"
        warnings.warn(
            f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced "
            f"as another error was raised in forward: {error}",
            stacklevel=4,
        )


def _hook_node(module: Any, hooks: list[Any], arguments: tuple[Any, ...], result: Any) -> None:
    """Give the backward hooks to the node of the first tensor that forward returned."""
    while not isinstance(result, Tensor):
        if not isinstance(result, (dict, list, tuple)) or not result:
            return
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    node = result.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(partial(hook, module))
    given = {id(a.grad_fn) for a in arguments if isinstance(a, Tensor) and a.grad_fn is not None}
    if given != {id(one) for one, _ in node.next_functions}:
        warnings.warn(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
            "deprecated and will be removed in future versions. This hook will be missing some "
            "grad_input. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )


class _BackwardWatch:
    """Identity functions around a forward that see the gradients on both sides."""

    def __init__(self, module: Any, before: list[Any], full: list[Any]) -> None:
        self.module = module
        self.before = before  # hooks that see the gradients of the outputs first
        self.full = full  # hooks that see those of the inputs, too
        self.grad_outputs: Any = None
        self.n_inputs = 0
        self.sees_inputs = False

    def inputs(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Inputs whose gradients the backward hooks get, and may replace."""
        positions = [
            n for n, a in enumerate(arguments) if isinstance(a, Tensor) and a.requires_grad
        ]
        self.n_inputs, self.sees_inputs = len(arguments), bool(positions)
        if not positions:
            return arguments

        def finished(grads: tuple[Any, ...]) -> Any:
            full = _spread(grads, positions, len(arguments))
            changed = _changed(self.full, self.module, full, self.grad_outputs)
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
            full = _spread(grads, positions, len(flat))
            changed = _changed(self.before, self.module, full)
            self.grad_outputs = changed
            if not self.sees_inputs and self.full:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to "
                    "module outputs since no inputs require gradients. See https://docs.pytorch."
                    "org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                    "register_full_backward_hook for more details.",
                    stacklevel=5,
                )
                nothing = (None,) * self.n_inputs
                made = _changed(self.full, self.module, nothing, changed)
                if made != nothing:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
            return tuple(changed[p] for p in positions)

        watched = _identity(arrived, [flat[p] for p in positions])
        for position, tensor in zip(positions, watched, strict=True):
            flat[position] = tensor
        return flat[0] if is_single else tuple(flat)


def _spread(grads: tuple[Any, ...], positions: list[int], count: int) -> tuple[Any, ...]:
    """Gradients at the places they are of, None elsewhere."""
    found = dict(zip(positions, grads, strict=True))
    return tuple(map(found.get, range(count)))


def _changed(hooks: list[Any], module: Any, grads: tuple[Any, ...], *more: Any) -> tuple[Any, ...]:
    """Gradients as hooks, one after the other, leave them."""
    for hook in hooks:
        found = hook(module, grads, *more)
        if found is not None:
            if len(found) != len(grads):
                kind, what = ("", "input") if more else (" pre", "output")
                raise RuntimeError(
                    f"Backward{kind} hook returned an invalid number of grad_{what}, got "
                    f"{len(found)}, but expected {len(grads)}"
                )
            grads = found if isinstance(found, tuple) else (found,)
    return grads


def _identity(see: Any, tensors: list[Any]) -> tuple[Any, ...]:
    from flambeau.autograd.function import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            ctx.set_materialize_grads(False)
            return tuple(value.view_as(value) for value in values)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return see(grads)

    return BackwardHookFunction.apply(*tensors)
