"""Out of tensors: item, tolist, NumPy arrays; reading memory as Python numbers.

Keeps     reading flushes exactly the segment that the storage waits for.
Touches   engine.stream, devices.cpu.memory; NumPy only where the user asks for it.
Not here  printing (printing.py), into tensors (creation.py)."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from flambeau.base import dtypes
from flambeau.base.devices import META
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.engine import external, stream
from flambeau.tensor.tensor import Tensor

_SINGLE = {each: struct.Struct("=" + each.format).unpack_from for each in dtypes.ALL if each.format}


# What torch says of tensors without data, by what was asked of them.
_NO_COPY = (NotImplementedError, "Cannot copy out of meta tensor; no data!")
_NO_DATA: dict[str, tuple[type[Exception], str]] = {
    "item()": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "numpy()": (TypeError, "can't convert meta device type tensor to numpy."),
}


def address_of(tensor: Tensor, reason: str) -> int:
    """Address of a tensor's first element, its storage in memory."""
    storage = tensor._storage
    if storage.segment is not None:
        stream.materialize(tensor, reason)
    block = storage.block
    if block is None:
        if tensor._layout.device is META:
            kind, said = _NO_DATA.get(reason, _NO_COPY)
            raise kind(helped(said, given=f"{reason} of {tensor._layout}"))
        return 0
    address: int = block.address + tensor._offset * tensor._layout.itemsize
    return address


def item(tensor: Tensor) -> Any:
    """The one element as a Python number. Raises RuntimeError where there are more or none.

    >>> import flambeau as torch
    >>> torch.tensor([2.5]).item()
    2.5
    """
    layout = tensor._layout
    if layout.n_elements != 1:
        raise RuntimeError(
            helped(
                f"a Tensor with {layout.n_elements} elements cannot be converted to Scalar",
                given=f"shape {layout.shape}",
                fix="reduce it first (.sum(), .mean()), or take .tolist()",
            )
        )
    address = address_of(tensor, "item()")
    if layout.is_conj:
        found = read_one(address, layout.dtype)
        return found.conjugate() if layout.dtype.is_complex else -found
    return read_one(address, layout.dtype)


def only_element(tensor: Tensor) -> Any:
    """The one element, for Python's numbers."""
    if tensor._layout.n_elements != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return tensor.item()


def only_real(tensor: Tensor, kind: str) -> Any:
    """The one element where it is real, for Python's real numbers."""
    return as_real(only_element(tensor), kind)


def as_real(value: Any, kind: str) -> Any:
    """A number where a real one is wanted: of a complex one the real part, if the imaginary one
    is 0."""
    if value.__class__ is complex:
        if value.imag:
            raise RuntimeError(
                helped(
                    f"value cannot be converted to type {kind} without overflow",
                    given=repr(value),
                    fix="complex(x), x.real or x.abs()",
                )
            )
        return value.real
    return value


def read_one(address: int, element: dtype) -> Any:
    """The element at an address as a Python number."""
    raw = ctypes.string_at(address, element.itemsize)
    read = _SINGLE.get(element)
    if read is not None:
        return read(raw)[0]
    return decoded(raw, element)[0]


def decoded(raw: bytes, element: dtype) -> list[Any]:
    """Elements of packed bytes as Python numbers."""
    count = len(raw) // element.itemsize
    if element.format:
        return list(struct.unpack(f"={count}{element.format}", raw))
    if element in dtypes.EIGHT_BITS:
        from flambeau.codegen import float8

        known = float8.values(element)
        return [known[code] for code in raw]
    if element is dtypes.bfloat16:
        halves = struct.unpack(f"={count}H", raw)
        widened = struct.pack(f"={count}I", *[half << 16 for half in halves])
        return list(struct.unpack(f"={count}f", widened))
    letter = "f" if element is dtypes.complex64 else "d"
    parts = struct.unpack(f"={2 * count}{letter}", raw)
    return [complex(parts[2 * n], parts[2 * n + 1]) for n in range(count)]


def flat_values(tensor: Tensor) -> list[Any]:
    """All elements in logical row-major order as Python numbers."""
    layout = tensor._layout
    if not layout.n_elements:
        return []
    if not layout.is_contiguous or layout.is_conj:
        from flambeau.tensor import functions

        tensor = functions.contiguous_copy(tensor)
        layout = tensor._layout
    address = address_of(tensor, "tolist()")
    return decoded(ctypes.string_at(address, layout.n_bytes), layout.dtype)


def tolist(tensor: Tensor) -> Any:
    """Nested lists of Python numbers; a number for a tensor without dims."""
    layout = tensor._layout
    if not layout.shape:
        return item(tensor)
    if 0 in layout.shape:
        return _nested_empty(layout.shape)
    values: list[Any] = flat_values(tensor)
    for size in reversed(layout.shape[1:]):
        values = [values[n : n + size] for n in range(0, len(values), size)]
    return values


def _nested_empty(shape: tuple[int, ...]) -> list[Any]:
    if shape[0] == 0 or len(shape) == 1:
        return []
    return [_nested_empty(shape[1:]) for _ in range(shape[0])]


def check_numpy(tensor: Tensor) -> None:
    """Refuse what torch refuses in .numpy()."""
    autograd = tensor._autograd
    if autograd is not None or (tensor._base is not None and tensor.requires_grad):
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if tensor._layout.is_conj:
        bit, name = ("conjugate", "conj") if tensor.is_conj() else ("negative", "neg")
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {bit} bit set. Use "
            f"tensor.resolve_{name}().numpy() instead."
        )
    element = tensor._layout.dtype
    if element is dtypes.bfloat16 or element in dtypes.EIGHT_BITS:
        raise TypeError(f"Got unsupported ScalarType {SCALAR_TYPE_NAMES[element.name]}")


def numpy(tensor: Tensor, *, force: bool = False) -> Any:
    """A NumPy array over the same memory: writes on either side are seen on the other."""
    if force:
        tensor = tensor.detach().resolve_conj().resolve_neg()
    check_numpy(tensor)
    import numpy as np

    layout = tensor._layout
    element = np.dtype(layout.dtype.name)
    address = address_of(tensor, "numpy()")
    storage = tensor._storage
    if not layout.n_elements or not address:
        return np.empty(layout.shape, element)
    strides = tuple(stride * layout.itemsize for stride in layout.strides)
    offset = address - storage.block.address
    return np.ndarray(layout.shape, element, _exporter(storage), offset, strides)


def _exporter(storage: Any) -> Any:
    """The buffer object through which NumPy sees a storage's memory; one while it is in use."""
    shared = storage.external
    if shared is not None and isinstance(shared.owner, ctypes.Array):
        return shared.owner
    block = storage.block
    buffer = (ctypes.c_char * max(block.n_bytes, 1)).from_address(block.address)
    buffer._block = block  # arrays keep the buffer alive, and it the memory
    if shared is not None:
        buffer._owner = shared.owner  # counts as one more reference from outside
        return buffer
    import sys

    made = external.External(buffer, 0)
    del buffer
    made.references = sys.getrefcount(made.owner)
    storage.external = made
    return made.owner
