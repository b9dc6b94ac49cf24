"""torch.cuda on a machine without one: queries answer no, the rest raises torch's error.

Keeps     what a CPU-only PyTorch lets a program do with CUDA's names works.
Touches   random (seeds are the CPU's own), base.missing.
Not here  a CUDA device."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.base.errors import NO_CUDA
from flambeau.base.errors import OutOfMemoryError as OutOfMemoryError
from flambeau.base.missing import module_getattr


def is_available() -> bool:
    """Whether a CUDA device can be used: no.

    >>> is_available()
    False
    """
    return False


def device_count() -> int:
    """Number of CUDA devices: 0."""
    return 0


def is_initialized() -> bool:
    """Whether CUDA has been started: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether CUDA devices compute in bfloat16: there are none."""
    return False


def manual_seed(seed: int) -> None:
    """Seeds of CUDA generators: ignored without a device, as in torch."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds of all CUDA generators: ignored without a device, as in torch."""
    int(seed)


def seed() -> None:
    """A random seed for CUDA: nothing to do."""


def seed_all() -> None:
    """Random seeds for all CUDA devices: nothing to do."""


def empty_cache() -> None:
    """Give cached CUDA memory back: there is none."""


def ipc_collect() -> None:
    """Collect CUDA memory shared between processes: there is none."""


def _not_compiled(*arguments: Any, **named: Any) -> Any:
    raise AssertionError(NO_CUDA)


current_device = get_device_name = get_device_properties = get_device_capability = _not_compiled
synchronize = current_stream = default_stream = init = get_rng_state = initial_seed = _not_compiled
mem_get_info = set_per_process_memory_fraction = _not_compiled

_initialized = False
default_generators: tuple[Any, ...] = ()


def set_device(device: Any) -> None:
    """Make a CUDA device current; without one, only a negative number passes."""
    if not (isinstance(device, int) and device < 0):
        _not_compiled()


def get_rng_state_all() -> list[Any]:
    """States of all CUDA generators: there are none."""
    return []


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Continue a CUDA generator from a state: kept for when there is one, as in torch."""


def set_rng_state_all(new_states: Any) -> None:
    """Continue all CUDA generators from their states: there are none."""
    for state in new_states:
        set_rng_state(state)


def get_arch_list() -> list[str]:
    """Architectures that kernels were built for: none."""
    return []


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Counts of CUDA's allocator: none."""
    return OrderedDict()


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on a CUDA device: 0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_cached(device: Any = None) -> int:
    """memory_reserved by its old name."""
    message = "`torch.cuda.memory_cached` has been renamed to `torch.cuda.memory_reserved`"
    warnings.warn(message, FutureWarning, stacklevel=2)
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """max_memory_reserved by its old name."""
    message = "`torch.cuda.max_memory_cached` has been renamed to `torch.cuda.max_memory_reserved`"
    warnings.warn(message, FutureWarning, stacklevel=2)
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the peak of CUDA memory: there is none."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


class Stream:
    """A CUDA stream; torch's error where there is no CUDA."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """A CUDA event; torch's error where there is no CUDA."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Event")


class StreamContext:
    """A block whose work goes to a stream: with none, the block as it is."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class CUDAGraph:
    """A recorded run of CUDA kernels; torch's error where there is no CUDA."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")


def graph_pool_handle() -> Any:
    """Memory that recorded runs share; torch's error where there is no CUDA."""
    raise RuntimeError("Tried to instantiate dummy base class _graph_pool_handle")


class graph:  # noqa: N801 - torch's name
    """A block whose kernels are recorded; torch's error where there is no CUDA."""

    def __init__(self, cuda_graph: Any, *arguments: Any, **named: Any) -> None:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


@contextmanager
def device(device: Any) -> Iterator[None]:
    """Makes a CUDA device current; without one, only negative or None devices pass."""
    if device is not None and not (isinstance(device, int) and device < 0):
        _not_compiled()
    yield


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Makes a CUDA stream current; without CUDA there is only None, which changes nothing."""
    yield


_missing = module_getattr(__name__, ("amp", "FloatTensor", "LongTensor"))


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("flambeau.cuda.amp")
    if name.endswith("Tensor"):
        from flambeau.tensor.public.typed import legacy

        if name in legacy.ON_CUDA:
            return legacy.ON_CUDA[name]
    return _missing(name)
