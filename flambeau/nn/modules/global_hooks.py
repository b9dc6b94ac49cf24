"""Hooks of all modules: around forward and backward, and where members are registered.

Keeps     they run before a module's own hooks; a program without any pays one test per call.
Touches   utils.hooks.
Not here  hooks of one module, and when all of them are called (hooks.py)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from flambeau.utils.hooks import RemovableHandle, registered

__all__ = [
    "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

FORWARD: Final[OrderedDict[int, Any]] = OrderedDict()
FORWARD_WITH_KWARGS: Final[OrderedDict[int, Any]] = OrderedDict()
FORWARD_ALWAYS_CALLED: Final[OrderedDict[int, Any]] = OrderedDict()
FORWARD_PRE: Final[OrderedDict[int, Any]] = OrderedDict()
BACKWARD: Final[OrderedDict[int, Any]] = OrderedDict()
BACKWARD_PRE: Final[OrderedDict[int, Any]] = OrderedDict()
BUFFERS: Final[OrderedDict[int, Any]] = OrderedDict()
MODULES: Final[OrderedDict[int, Any]] = OrderedDict()
PARAMETERS: Final[OrderedDict[int, Any]] = OrderedDict()


class _Kind:
    """Whether the backward hooks of all modules are full ones; None before the first."""

    is_full: bool | None = None


def backward_hooks(module: Any, is_full: bool) -> list[Any]:
    """The full backward hooks that concern a module, or those of nodes; those of all first."""
    of_all = [*BACKWARD.values()] if _Kind.is_full is is_full else []
    own = [*module._backward_hooks.values()] if module._is_full_backward_hook is is_full else []
    return of_all + own


def through(table: OrderedDict[int, Any], module: Any, name: str, value: Any) -> Any:
    """What the hooks of a table make of a member about to be registered."""
    for hook in table.values():
        found = hook(module, name, value)
        if found is not None:
            value = found
    return value


def register_module_forward_hook(
    hook: Any, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call hook(module, inputs, output) after the forward of every module; what it returns
    replaces the output.

    >>> import flambeau as torch
    >>> names = []
    >>> handle = register_module_forward_hook(lambda m, i, o: names.append(type(m).__name__))
    >>> _ = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(torch.ones(1))
    >>> handle.remove()
    >>> names
    ['ReLU', 'Tanh', 'Sequential']
    """
    return registered(
        FORWARD, hook, False, (FORWARD_WITH_KWARGS, with_kwargs),
        (FORWARD_ALWAYS_CALLED, always_call),
    )  # fmt: skip


def register_module_forward_pre_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, inputs) before the forward of every module; what it returns replaces the
    inputs."""
    return registered(FORWARD_PRE, hook)


def _of_kind(is_full: bool) -> None:
    if _Kind.is_full is (not is_full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _Kind.is_full = is_full


def register_module_backward_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) of the node that made a module's output, for
    every module.

    Raises   RuntimeError: there are full backward hooks of all modules already."""
    _of_kind(False)
    return registered(BACKWARD, hook)


def register_module_full_backward_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) when gradients of the inputs are known, for every
    module; what it returns replaces grad_input.

    Raises   RuntimeError: there are backward hooks of all modules' nodes already."""
    _of_kind(True)
    return registered(BACKWARD, hook)


def register_module_full_backward_pre_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, grad_output) before gradients flow through every module; what it returns
    replaces grad_output."""
    return registered(BACKWARD_PRE, hook)


def register_module_buffer_registration_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, name, buffer) where any module registers a buffer; what it returns is
    registered instead."""
    return registered(BUFFERS, hook)


def register_module_module_registration_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, name, submodule) where any module registers another; what it returns is
    registered instead."""
    return registered(MODULES, hook)


def register_module_parameter_registration_hook(hook: Any) -> RemovableHandle:
    """Call hook(module, name, parameter) where any module registers a parameter; what it returns
    is registered instead."""
    return registered(PARAMETERS, hook)
