"""torch.__future__: how modules change parameters when they are converted and loaded.

Keeps     torch's defaults: parameters stay the objects they are.
Touches   nn.modules.conversions, which obeys.
Not here  any logic."""

from __future__ import annotations

from flambeau.nn.modules.conversions import FLAGS

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.double()` and the like make new parameters."""
    FLAGS["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether `module.double()` and the like make new parameters: False unless set."""
    return FLAGS["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and load_state_dict swap parameters (torch.utils.swap_tensors)."""
    FLAGS["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions and load_state_dict swap parameters: False unless set."""
    return FLAGS["swap"]
