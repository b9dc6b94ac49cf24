"""Memory shared with NumPy and buffers: from_numpy, frombuffer.

Keeps     the array is alive as long as a tensor looks at it; writes are seen on both sides, in the
          order in which they were made (engine/external.py).
Touches   engine.external, creation; NumPy.
Not here  .numpy() (conversion.py)."""

from __future__ import annotations

import ctypes
import sys
import warnings
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import present
from flambeau.base.layout import contiguous, layout
from flambeau.engine.external import External, OutsideBlock
from flambeau.engine.storage import new_storage
from flambeau.tensor.arguments import named_type
from flambeau.tensor.tensor import Tensor, new_tensor

_READ_ONLY = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. "
    "This means writing to this tensor will result in undefined behavior. You may want to copy the "
    "array to protect its data or make it writable before converting it to a tensor. This type of "
    "warning will be suppressed for the rest of this program."
)


# NumPy's dtypes in this machine's order -> ours; asking one for its name takes long.
_DTYPES: Final[dict[Any, dtype]] = {}


def dtype_of_array(array: Any) -> dtype:
    """The dtype of a NumPy array; TypeError where torch has none."""
    known = _DTYPES.get(array.dtype)
    if known is not None:
        return known
    name = array.dtype.name
    try:
        found = dtypes.by_name(name)
        if array.dtype.isnative:
            _DTYPES[array.dtype] = found
        return found
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {_type_text(array)}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
            "uint32, uint16, uint8, and bool."
        ) from None


def _type_text(array: Any) -> str:
    return f"numpy.{array.dtype.type.__name__}"


def is_numpy_array(array: Any) -> bool:
    """Whether it owns or views memory that stays where it is: an array, not a number of NumPy's,
    which makes a new array for each who asks for its address."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


_BYTE: Final = ctypes.c_char


def check_memory(array: Any) -> None:
    """Refuse arrays whose memory no tensor describes, with torch's errors."""
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    for stride in array.strides:
        if stride < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) "
            )
        if stride % array.itemsize:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy "
                "array to reallocate the memory."
            )


def from_numpy(array: Any) -> Tensor:
    """Tensor over the memory of a NumPy array.

    Raises   TypeError: not an array, or of another dtype. ValueError: negative strides.

    >>> import numpy
    >>> a = numpy.zeros(2, dtype="float32"); t = from_numpy(a); a[0] = 3
    >>> t.tolist()
    [3.0, 0.0]
    """
    if not is_numpy_array(array):
        raise TypeError(f"expected np.ndarray (got {named_type(array)})")
    element = dtype_of_array(array)
    check_memory(array)
    size = element.itemsize
    flags = array.flags
    if not flags.writeable:
        warnings.warn(_READ_ONLY, stacklevel=2)
    if flags.writeable and flags.c_contiguous and array.nbytes:
        address = ctypes.addressof(_BYTE.from_buffer(array))  # a quarter of what the next takes
    else:
        address = array.__array_interface__["data"][0]
    shape = tuple(array.shape)
    strides = tuple(stride // size for stride in array.strides)
    given = layout(shape, strides, element)
    return _over(address, given, array)


def _over(address: int, given: Any, owner: Any) -> Tensor:
    n_bytes = given.span * given.itemsize
    storage = new_storage(given, OutsideBlock(address, n_bytes, owner))
    made = External(owner, 0)
    # References that are ours: the block's, the External's, getrefcount's own argument.
    # A view's own base can be written by whoever holds that: shared for good.
    made.references = 3 if getattr(owner, "base", None) is None else 0
    storage.external = made
    return new_tensor(storage, given)


def frombuffer(
    buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """1-D tensor over the memory of an object with the buffer protocol."""
    view = memoryview(buffer)
    if not view.nbytes:
        raise ValueError(f"both buffer length ({view.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({view.nbytes} bytes) minus 1"
        )
    size = dtype.itemsize
    if count < 0:
        if (view.nbytes - offset) % size:
            raise ValueError(
                f"buffer length ({view.nbytes - offset} bytes) after offset ({offset} bytes) must "
                f"be a multiple of element size ({size})"
            )
        count = (view.nbytes - offset) // size
    if count == 0 or offset + count * size > view.nbytes:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({view.nbytes} bytes)"
        )
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
            "This means you can write to the underlying (supposedly non-writable) buffer using the "
            "tensor. You may want to copy the buffer to protect its data or make it writable "
            "before converting it to a tensor. This type of warning will be suppressed for the "
            "rest of this program.",
            stacklevel=2,
        )
        address = _address_of_readonly(view)
        owner: Any = view
    else:
        owner = (ctypes.c_char * view.nbytes).from_buffer(view)
        address = ctypes.addressof(owner)
    made = _over(address + offset, contiguous((count,), dtype), owner)
    # The exporter's own reference count tells nothing: the memory counts as shared for good.
    present(made._storage.external, "who shares the memory").references = 0
    if requires_grad:
        made.requires_grad_(True)
    return made


def _address_of_readonly(view: memoryview) -> int:
    import numpy as np

    found: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return found
