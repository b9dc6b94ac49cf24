"""torch.Generator for CPUs: mt19937 with one cached normal, and the default one.

Keeps     seeding is lazy and costs no native code; a draw is the generator's only change between
          seeds and states. One lock a generator: draws from two threads never mix their words.
Touches   state.py, base.devices, the operating system's entropy.
Not here  the draws (fills.py and its neighbours), torch.random's functions (__init__.py)."""

from __future__ import annotations

import ctypes
import operator
import os
import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn

from flambeau.base.devices import Device, device
from flambeau.base.errors import helped
from flambeau.devices.forks import at_fork
from flambeau.random import state as states
from flambeau.random.native.layout import N_BYTES

_ALIGNMENT: Final = 64


def _same(data: bytes) -> Any:
    return data


# How get_state and set_state speak to the user: bytes here, uint8 tensors once the tensor room
# has called `set_state_conversion`.
_to_user: Callable[[bytes], Any] = _same
_from_user: Callable[[Any], bytes] | None = None


def set_state_conversion(
    to_user: Callable[[bytes], Any], from_user: Callable[[Any], bytes]
) -> None:
    """Make states tensors: `from_user` raises torch's TypeErrors for anything but uint8 tensors."""
    global _to_user, _from_user
    _to_user, _from_user = to_user, from_user


class Generator:
    """A stream of random numbers on the CPU.

    >>> Generator().initial_seed()
    67280421310721
    >>> Generator().manual_seed(-1).initial_seed() == 2**64 - 1
    True
    """

    __slots__ = ("__weakref__", "_buffer", "_native", "address", "lock")

    def __init__(self, device: object = "cpu") -> None:
        _check_device(device)
        # Held by every draw; a handler that draws on the same thread may come in between.
        self.lock: Final = threading.RLock()
        self._buffer = ctypes.create_string_buffer(N_BYTES + _ALIGNMENT)
        start = -ctypes.addressof(self._buffer) % _ALIGNMENT
        self.address: Final = ctypes.addressof(self._buffer) + start
        self._native = memoryview(self._buffer).cast("B")[start : start + N_BYTES]
        states.seed_native(self._native, states.DEFAULT_SEED)

    @property
    def device(self) -> Device:
        return device("cpu")

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from a seed of -2^63 to 2^64 - 1; negative ones count as seed + 2^64."""
        if type(seed) is not int:
            seed = _seed_from(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(
                helped(
                    "Overflow when unpacking long long",
                    given=f"seed {seed}",
                    expected="-2**63 <= seed < 2**64",
                )
            )
        with self.lock:
            states.seed_native(self._native, seed % 2**64)
        return self

    def seed(self) -> int:
        """Start anew from the operating system's entropy; returns the seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        return states.seed_of(self._native)

    def state_bytes(self) -> bytes:
        """torch's 5056 bytes."""
        with self.lock:
            return states.to_bytes(self._native)

    def set_state_bytes(self, data: bytes) -> None:
        """Continue from torch's 5056 bytes."""
        with self.lock:
            states.from_bytes(self._native, data)

    def get_state(self) -> Any:
        """The state as a uint8 tensor of 5056 elements."""
        return _to_user(self.state_bytes())

    def set_state(self, new_state: Any) -> Generator:
        """Continue from what get_state gave."""
        if _from_user is not None:
            new_state = _from_user(new_state)
        elif not isinstance(new_state, (bytes, bytearray)):
            name = type(new_state).__name__
            raise TypeError(f"expected a torch.ByteTensor, but got {name}")
        self.set_state_bytes(bytes(new_state))
        return self

    def clone_state(self) -> Generator:
        """A new generator that goes on from the same place, the cached normal included."""
        clone = Generator()
        with self.lock:
            clone._native[:] = self._native
        return clone

    def get_offset(self) -> NoReturn:
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> NoReturn:
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> NoReturn:
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> NoReturn:
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple[object, ...]:
        return Generator, (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, saved: tuple[int, int | None, Any]) -> None:
        seed, _, state = saved
        self.manual_seed(seed)
        self.set_state(state)


def _check_device(given: object) -> None:
    """Only the CPU has generators here; other devices raise as torch without them does."""
    wanted = device("cpu" if given is None else given)
    if wanted.type == "cpu":
        return
    if isinstance(given, int):
        first = "Cannot access accelerator device when none is available."
    elif wanted.type == "cuda":
        first = "Cannot get CUDA generator without ATen_cuda library."
    else:
        first = f"{wanted.type.upper()} device type not an accelerator."
    raise RuntimeError(
        helped(first, given=f"Generator({given!r})", expected="a CPU device", fix="Generator()")
    )


def _seed_from(seed: object) -> int:
    """An integer that is not a plain int: NumPy's are welcome, bool and float are not."""
    name = type(seed).__name__
    if not isinstance(seed, bool) and name != "bool_":
        try:
            return operator.index(seed)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise RuntimeError(
        helped(
            f"manual_seed expected a long, but got {name}",
            given=f"manual_seed({seed!r})",
            expected="an integer",
            fix="manual_seed(int(seed))",
        )
    )


default_generator: Final = Generator()
default_generator.seed()

# A child must not inherit a lock, or half a twist, of a thread that it does not have.
at_fork(
    before=default_generator.lock.acquire,
    after_in_parent=default_generator.lock.release,
    after_in_child=default_generator.lock.release,
)
