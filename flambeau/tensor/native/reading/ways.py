"""How native code reads tensors of a layout: what Python told it, kept in the layout's memo.

Keeps     a layout is remembered once Python has read a tensor of it; NumPy's C interface is used
          after an array made by it was found to be the right one.
Touches   library, conversion's functions; NumPy once it is there.
Not here  the text (text.py)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.devices import CPU
from flambeau.tensor.native.library import Library, make_callable, ready
from flambeau.tensor.native.tables import TABLE, words
from flambeau.tensor.tensor import Tensor

if TYPE_CHECKING:
    Function = Callable[..., Any]

# dtypes whose one element native code reads, by the number it knows them by.
KINDS: Final = {
    name: number
    for number, name in enumerate(("float32", "float64", "int64", "int32", "uint8", "bool"))
}
# What an array is made of: NumPy's dtype, dims, bytes of an element; behind that sizes, strides.
ARRAY: Final = words("dtype ndim itemsize")
WRITABLE: Final = 0x400  # NumPy's flag of arrays that can be written
# Keys of a layout's memo.
ITEM: Final = "native item"
NUMPY: Final = "native numpy"
# NumPy's C interface: places of its table, which its binary interface keeps.
_ARRAY_TYPE, _NEW_ARRAY, _SET_BASE = 2, 94, 282


def of(function: Function) -> Function:
    """The native form of conversion's item or numpy; the function itself where there is none."""
    return {"item": item, "numpy": numpy}[function.__name__](function)


class _Key:
    """The one key native code needs."""

    def __init__(self, found: str) -> None:
        self.found = found


def item(function: Function) -> Function:
    """The native form of item()."""
    native = ready()
    if native is None:
        return function

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if isinstance(arguments[0], Tensor):
            layout = arguments[0]._layout
            kind = KINDS.get(layout.dtype.name)
            if kind is not None and layout.device is CPU and not layout.is_conj:
                layout.memo[ITEM] = kind
        return found

    return _made(native, native.item, python, ITEM)


def numpy(function: Function) -> Function:
    """The native form of numpy()."""
    native = ready()
    if native is None:
        return function

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        tensor = arguments[0]
        if isinstance(tensor, Tensor) and not named:
            layout = tensor._layout
            is_plain = layout.n_elements and layout.device is CPU
            if is_plain and NUMPY not in layout.memo and _has_interface(native):
                layout.memo[NUMPY] = _array_words(layout, found.dtype)
        return found

    return _made(native, native.numpy, python, NUMPY)


def _made(native: Library, address: int, python: Function, key: str) -> Function:
    made: Function = make_callable(native, address, python, _Key(sys.intern(key)), shape=1)
    return made


def _array_words(layout: Any, element: Any) -> bytes:
    """What native code makes an array of: ARRAY. The words lie in an object of bytes, and the
    dtype, one of NumPy's own few, lives as long as NumPy."""
    strides = [stride * layout.itemsize for stride in layout.strides]
    words = [id(element), layout.ndim, layout.itemsize, *layout.shape, *strides]
    return bytes((ctypes.c_int64 * len(words))(*words))


def _has_interface(native: Library) -> bool:
    """Whether NumPy's C interface is there and does what is expected of it; asked once."""
    table = native.table
    if not table[TABLE["new_array"] // 8]:
        found = _interface()
        table[TABLE["array_type"] // 8] = found[0]
        table[TABLE["set_base"] // 8] = found[2]
        table[TABLE["new_array"] // 8] = found[1]
    return bool(table[TABLE["new_array"] // 8] != _NONE)


_NONE: Final = 1  # no function lies there


def _interface() -> tuple[int, int, int]:
    """Addresses of NumPy's array type and of the two functions; _NONE where they are not right."""
    numpy_core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get(
        "numpy.core._multiarray_umath"
    )
    capsule = getattr(numpy_core, "_ARRAY_API", None)
    if capsule is None:
        return _NONE, _NONE, _NONE
    pointer = ctypes.PyDLL(None).PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_uint64 * (_SET_BASE + 1)).from_address(pointer(capsule, None))
    kind, new, base = table[_ARRAY_TYPE], table[_NEW_ARRAY], table[_SET_BASE]
    return (kind, new, base) if _is_right(kind, new, base) else (_NONE, _NONE, _NONE)


def _is_right(kind: int, new: int, base: int) -> bool:
    import numpy as np

    if kind != id(np.ndarray):
        return False
    words = (ctypes.c_int64 * 4)(2, 1, 4, 8)  # a transposed 2 x 1 of four numbers
    memory = (ctypes.c_int32 * 4)(5, 6, 7, 8)
    element, owner = np.dtype("int32"), object()
    made = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_int, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    )(new)  # fmt: skip
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(element))
    at = ctypes.addressof(words)
    array = made(kind, element, 2, at, at + 16, ctypes.addressof(memory), WRITABLE, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    set_base = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(base)
    return (
        set_base(array, owner) == 0 and array.base is owner and array.tolist() == [[5], [6]]
        and array.dtype is element and array.strides == (4, 8) and array.flags.writeable
    )  # fmt: skip
