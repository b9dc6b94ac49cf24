"""Modules around modules that keep their inputs only, and compute the rest again for gradients.

Keeps     names of parameters and of state dicts are those of the module inside.
Touches   utils.checkpoint.
Not here  checkpointing of a function (utils/checkpoint.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from flambeau.base.missing import module_getattr
from flambeau.nn.modules.module import Module
from flambeau.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE: Final = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX: Final = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which of utils.checkpoint's two ways is taken."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another, unseen in names and state dicts."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_CHECKPOINT_WRAPPED_MODULE), name)

    def __getitem__(self, key: Any) -> Any:
        inner: Any = self._checkpoint_wrapped_module
        return inner[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Parameters by the names they have without the wrapper."""
        for name, each in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), each


def _without_prefix(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> dict[str, Any]:
    inner = prefix + _CHECKPOINT_PREFIX
    for name in [each for each in state if each.startswith(inner)]:
        state[prefix + name[len(inner) :]] = state.pop(name)
    return state


def _with_prefix(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    inner = prefix + _CHECKPOINT_PREFIX
    names = [n for n in state if n.startswith(prefix) and not n.startswith(inner)]
    for name in names:
        state[inner + name[len(prefix) :]] = state.pop(name)


class CheckpointWrapper(ActivationWrapper):
    """A module around another, whose inner values are computed again for its gradient."""

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None, **named: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        again = checkpoint_impl is CheckpointImpl.REENTRANT
        settings = named if checkpoint_fn else {"use_reentrant": again, **named}
        self.checkpoint_fn = partial(checkpoint_fn or checkpoint, **settings)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None, **named: Any,
) -> Module:  # fmt: skip
    """The module in a CheckpointWrapper.

    >>> import flambeau as torch
    >>> wrapped = checkpoint_wrapper(torch.nn.Linear(2, 1))
    >>> list(wrapped.state_dict()), wrapped.in_features
    (['weight', 'bias'], 2)
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **named)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Put the modules in a model for which check_fn is true into wrappers, the innermost first."""
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))


__getattr__ = module_getattr(__name__)
