"""torch.accelerator on a machine without one.

Keeps     questions are answered; what needs an accelerator raises.
Touches   nothing.
Not here  CUDA's own names (cuda)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr


def is_available() -> bool:
    """Whether there is an accelerator: no.

    >>> is_available(), device_count()
    (False, 0)
    """
    return False


def device_count() -> int:
    """Number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The accelerator's device: None."""
    return None


def _no_accelerator(*arguments: Any, **named: Any) -> Any:
    raise RuntimeError(
        helped(
            "Cannot access accelerator device when none is available.",
            fix="ask torch.accelerator.is_available() first",
        )
    )


current_device_index = current_device_idx = set_device_index = set_device_idx = _no_accelerator
synchronize = current_stream = set_stream = _no_accelerator

__getattr__ = module_getattr(__name__)
