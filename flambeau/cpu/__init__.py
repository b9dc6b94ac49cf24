"""torch.cpu: the CPU asked in the way that other devices are.

Keeps     one device, always there; nothing waits for anything.
Touches   base.missing.
Not here  a CPU's work (devices/cpu)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flambeau.base.missing import module_getattr


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def is_initialized() -> bool:
    """Whether the CPU has been started."""
    return True


def device_count() -> int:
    """Number of CPU devices: 1."""
    return 1


def current_device() -> str:
    """Name of the CPU device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Choose a CPU device: there is one."""


def synchronize(device: Any = None) -> None:
    """Wait for the work handed to the CPU: operators look as if they were done."""


def stream(stream: Any) -> AbstractContextManager[None]:
    """A block of work in a stream of the CPU's, of which there is one."""
    return nullcontext()


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("flambeau.cpu.amp")
    return _missing(name)


_missing = module_getattr(__name__)
