"""State dicts of models whose parameters may be divided among ranks: of one rank, all.

Keeps     the state dict is the module's own.
Touches   nn.Module.
Not here  files (io)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.nn.modules.module import Module

__all__ = ["StateDictOptions", "get_model_state_dict", "set_model_state_dict"]


@dataclass
class StateDictOptions:
    """What of a state is wanted: with one rank, `ignore_frozen_params` and `strict` matter."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The model's state dict, without parameters that need no gradient where that is wanted.

    >>> import flambeau as torch
    >>> list(get_model_state_dict(torch.nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    state = dict(model.state_dict())
    if options is not None and options.ignore_frozen_params:
        for name, each in model.named_parameters():
            if not each.requires_grad:
                state.pop(name, None)
    return state


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a state dict into the model; returns what was missing and what unexpected."""
    strict = options.strict if options is not None else True
    return model.load_state_dict(model_state_dict, strict=strict)


__getattr__ = module_getattr(__name__)
