"""torch.random: the default generator's seed and state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from flambeau.base.devices import device
from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr
from flambeau.random.generator import Generator, default_generator, set_state_conversion

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: Any) -> Generator:
    """Start the default generator anew from int(seed); returns the generator.

    >>> manual_seed("3").initial_seed()
    3
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator anew from the operating system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Seed the default generator began with."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """State of the default generator: uint8, 5056 elements."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Continue the default generator from a state."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[object] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Put the default generator back, afterwards, to where it was before the block."""
    kind = device(device_type or "cuda").type
    if not enabled or kind == "meta":
        yield
        return
    if kind == "cpu":
        raise AttributeError(
            helped(
                "module 'torch.cpu' has no attribute 'get_rng_state'",
                given="fork_rng(device_type='cpu')",
                fix="fork_rng(): the CPU's generator is always among those put back",
            )
        )
    if devices is not None and list(devices):
        raise AssertionError(
            helped(
                f"Torch not compiled with {kind.upper()} enabled",
                given=f"fork_rng({_devices_kw}=...) for {kind}",
                fix=f"{_devices_kw}=[]: only the CPU draws here",
            )
        )
    saved = default_generator.state_bytes()
    try:
        yield
    finally:
        default_generator.set_state_bytes(saved)


def _state_tensor(data: bytes) -> Any:
    """A generator's state as torch shows it."""
    from flambeau.base import dtypes
    from flambeau.tensor import creation

    return creation.from_bytes(data, (len(data),), dtypes.uint8)


def _state_bytes(state: Any) -> bytes:
    """Bytes of a state tensor; torch's TypeErrors for anything else."""
    from flambeau.base import dtypes
    from flambeau.tensor import Tensor, conversion

    if isinstance(state, (bytes, bytearray)):
        return bytes(state)
    if not isinstance(state, Tensor):
        raise TypeError(helped(f"expected a torch.ByteTensor, but got {type(state).__name__}"))
    if state.dtype is not dtypes.uint8:
        raise TypeError(helped("RNG state must be a torch.ByteTensor", given=str(state.dtype)))
    return bytes(conversion.flat_values(state))


set_state_conversion(_state_tensor, _state_bytes)

__getattr__ = module_getattr(__name__)
