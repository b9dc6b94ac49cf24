"""LAPACK from the scipy-openblas32 package: loaded at first use, one thread, by ctypes.

Keeps     a routine gets addresses of column-major memory; what it says by `info` is returned,
          never ignored. No text of ours is compiled.
Touches   the package scipy-openblas32, base.errors, tensor.creation.
Not here  what the factors mean (factors.py, spectra.py)."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.tensor import creation

_PREFIXES: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# Routines whose names say what the matrices are: orthogonal or unitary, symmetric or Hermitian.
_COMPLEX_NAMES: Final = {"orgqr": "ungqr", "syevd": "heevd"}
_THREADS: Final = "OPENBLAS_NUM_THREADS"
_LOCK = threading.Lock()


class _LinAlgError(RuntimeError):
    """A matrix that cannot be factored or solved with: torch.linalg.LinAlgError."""


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import scipy_openblas32
    except ImportError as error:
        raise RuntimeError(
            helped(
                "Calling torch.linalg functions on a CPU tensor requires compiling PyTorch with "
                "LAPACK. Please use PyTorch built with LAPACK support.",
                given="no package scipy-openblas32",
                fix="pip install scipy-openblas32",
            )
        ) from error
    path = f"{scipy_openblas32.get_lib_dir()}/{scipy_openblas32.get_library(fullname=True)}"
    # Read while it is loaded: without it the library starts a thread for every core.
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        library = ctypes.CDLL(path)
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before
    library.scipy_openblas_set_num_threads(1)
    return library


@lru_cache(maxsize=128)
def _routine(name: str) -> Any:
    found = getattr(_library(), name)
    found.restype = None
    return found


@lru_cache(maxsize=256)
def _routine_for(name: str, element: Any) -> Any:
    """A routine by its short name."""
    own = _COMPLEX_NAMES.get(name, name) if element.is_complex else name
    return _routine(f"scipy_{_PREFIXES[element.name]}{own}_")


# Arguments that routines read and never write are made once.
_ONE: Final = ctypes.c_size_t(1)


@lru_cache(maxsize=64)
def _letter(text: str) -> Any:
    return ctypes.c_char_p(text.encode())


@lru_cache(maxsize=1024)
def _size(number: int) -> Any:
    return ctypes.byref(ctypes.c_int32(number))


def _real(element: Any) -> Any:
    """C's type of an element, of a complex one's parts."""
    return ctypes.c_float if element.to_real().itemsize == 4 else ctypes.c_double


def call(name: str, element: Any, *arguments: Any) -> int:
    """Run a routine of an element type. Arguments: str for a letter, Address for memory, int,
    float and complex by reference; a last INFO is added and returned where the routine has one."""
    routine = _routine_for(name, element)
    given: list[Any] = []
    n_letters = 0
    for each in arguments:
        if isinstance(each, str):
            given.append(_letter(each))
            n_letters += 1
        elif isinstance(each, Address):
            given.append(ctypes.c_void_p(each.value))
        elif isinstance(each, float):
            given.append(ctypes.byref(_real(element)(each)))
        elif isinstance(each, complex):
            given.append((_real(element) * 2)(each.real, each.imag))
        else:
            given.append(_size(each))
    info = ctypes.c_int32(0)
    if name not in _WITHOUT_INFO:
        given.append(ctypes.byref(info))
    given += [_ONE] * n_letters
    with _LOCK:
        routine(*given)
    if info.value < 0:
        raise ValueError(f"{name}: argument {-info.value} is not what LAPACK takes")
    return info.value


# What routines asked for, by name and sizes.
_WORK: Final[dict[tuple[Any, ...], int]] = {}
_WITHOUT_INFO: Final = frozenset(("trsm",))


class Address:
    """Where a matrix or a vector lies."""

    __slots__ = ("keeps", "value")

    def __init__(self, value: int, keeps: Any = None) -> None:
        self.value = value
        self.keeps = keeps


def work(element: Any, count: int) -> Address:
    """Memory of `count` elements for a routine."""
    made = ctypes.create_string_buffer(max(1, count) * element.itemsize)
    return Address(ctypes.addressof(made), made)


def real_work(element: Any, count: int) -> tuple[Address, ...]:
    """The memory of real numbers that routines for complex ones want besides; none otherwise."""
    return (work(element.to_real(), count),) if element.is_complex else ()


def integers(count: int) -> Address:
    """Memory of `count` 32-bit integers for a routine."""
    made = (ctypes.c_int32 * max(1, count))()
    return Address(ctypes.addressof(made), made)


def with_workspace(name: str, element: Any, *arguments: Any, after: tuple[Any, ...] = ()) -> int:
    """Run a routine whose arguments end with WORK and LWORK (then `after`): asks how much first."""
    key = (name, element, *[each for each in arguments if not isinstance(each, Address)])
    count = _WORK.get(key, 0)
    if not count:
        asked = work(element, 1)
        call(name, element, *arguments, asked, -1, *after)
        count = int(_real(element).from_address(asked.value).value)
        if len(_WORK) < 1024:
            _WORK[key] = count
    return call(name, element, *arguments, work(element, count), count, *after)


def columns(shape: tuple[int, ...], like: Any, dtype: Any = None) -> Any:
    """Uninitialised matrices, each column by column, one after the other."""
    *batch, rows, width = shape
    strides = [1, max(1, rows)]
    step = max(1, rows) * max(1, width)
    for size in reversed(batch):
        strides.insert(0, step)
        step *= max(1, size)
    return creation.empty_strided(shape, tuple(strides), dtype=dtype or like.dtype)


def copied(matrices: Any, rows: int | None = None) -> Any:
    """A column-major copy, with room for `rows` rows where more are wanted."""
    source = matrices.detach()
    made = columns((*source.shape[:-2], rows or source.shape[-2], source.shape[-1]), source)
    target = made if rows is None else made.narrow(-2, 0, source.shape[-2])
    target.copy_(source)
    return made


def each(*tensors: tuple[Any, int]) -> Iterator[list[Address]]:
    """Addresses of the matrices (vectors) of every batch entry; given (tensor, dims of an entry),
    packed and of the same batch."""
    lead, dims = tensors[0]
    count = prod(lead.shape[: lead.dim() - dims])
    if not count:
        return
    starts = [tensor.data_ptr() for tensor, _ in tensors]
    steps = []
    for tensor, dims in tensors:
        size = prod(max(1, each) for each in tensor.shape[tensor.dim() - dims :])
        steps.append(size * tensor.element_size())
    for number in range(count):
        yield [Address(start + number * step) for start, step in zip(starts, steps, strict=True)]
