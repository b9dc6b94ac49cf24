"""Into tensors: from Python data, arrays and buffers, and fresh ones of a given shape.

Keeps     data is read when the call is made; a bad argument leaves nothing half made.
Touches   engine, devices.cpu.memory, functions (fills). NumPy only where the user brings it.
Not here  random tensors (random), memory shared with arrays (sharing.py)."""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from array import array
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.devices import CPU, DEFAULT, META, Device, device
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous, layout
from flambeau.devices.cpu import memory
from flambeau.engine import run, stream
from flambeau.engine.external import OutsideBlock
from flambeau.engine.storage import Storage, new_storage
from flambeau.engine.view import UNPLACED
from flambeau.gradients import members
from flambeau.tensor.binding import check_size
from flambeau.tensor.tensor import Tensor, new_tensor


def chosen_device(given: Any) -> Device:
    """The device asked for; torch's error where this build cannot have it."""
    found = DEFAULT[0] if given is None else device(given)
    if found.type == "cpu":
        return found if found.index is None else CPU
    if found.type == "meta":
        return META
    if found.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    raise NotImplementedError(
        helped(
            "Could not run 'aten::empty.memory_format' with arguments from the "
            f"'{found.type.upper()}' backend.",
            given=str(found),
            expected="cpu or meta",
        )
    )


def empty_storage(given: Layout) -> Storage:
    """Storage in memory with undefined contents."""
    if given.device is META:
        return new_storage(given)
    check_size(given)
    n_bytes = given.span * given.itemsize
    stream.LOCAL.stream.make_room(n_bytes)
    try:
        block = memory.allocate(n_bytes)
    except memory.OutOfMemory as error:
        raise run.out_of_memory(error.n_bytes) from None
    return new_storage(given, block)


def empty_layout(given: Layout, requires_grad: bool = False) -> Tensor:
    """Tensor of a layout with undefined contents."""
    made = new_tensor(empty_storage(given), given)
    if requires_grad:
        members.set_requires_grad(made, True)
    return made


def from_bytes(raw: Any, shape: tuple[int, ...], element: dtype, where: Device = CPU) -> Tensor:
    """Tensor with a copy of packed row-major bytes."""
    made = empty_layout(contiguous(shape, element, where))
    if where is not META and len(raw):
        ctypes.memmove(made._storage.block.address, bytes(raw), len(raw))
    return made


def packed(values: list[Any], element: dtype) -> bytes:
    """Python numbers as packed bytes of a dtype, rounded or wrapped as torch does."""
    count = len(values)
    if element is dtypes.bool_:
        return bytes([1 if value else 0 for value in values])
    if element.category == 1:
        try:
            return (
                array({1: "b", 2: "h", 4: "i", 8: "q"}[element.itemsize], values).tobytes()
                if (element.is_signed)
                else array("B", values).tobytes()
            )
        except (TypeError, OverflowError):
            return _packed_integers(values, element)
    if element.is_complex:
        letter = "f" if element is dtypes.complex64 else "d"
        parts = [part for value in values for part in (complex(value).real, complex(value).imag)]
        return struct.pack(f"={2 * count}{letter}", *parts)
    if element in dtypes.EIGHT_BITS:
        from flambeau.codegen.float8 import code_of

        return bytes([code_of(float(value), element) for value in values])
    if element is dtypes.float64:
        return array("d", values).tobytes()
    if element is dtypes.float32:
        return array("f", values).tobytes()
    return _packed_halves(values, element)


def _packed_integers(values: list[Any], element: dtype) -> bytes:
    bits = element.n_bits
    # Unsigned dtypes take negative numbers, which wrap.
    low = -(1 << (bits - 1)) if element.is_signed else 1 - (1 << bits)
    high = (1 << (bits - 1 if element.is_signed else bits)) - 1
    made = bytearray()
    for value in values:
        is_finite = not isinstance(value, float) or math.isfinite(value)
        number = int(value) if is_finite else high + 1
        if isinstance(value, int) and not -(2**63) <= number < 2**63:
            raise ValueError("Overflow when unpacking long long")
        if not low <= number <= high or (value < 0 and number != value and not element.is_signed):
            raise RuntimeError(
                helped(
                    f"value cannot be converted to type {element.name} without overflow",
                    given=f"{value} for {element}",
                )
            )
        made += (number & ((1 << bits) - 1)).to_bytes(element.itemsize, "little")
    return bytes(made)


def _packed_halves(values: list[Any], element: dtype) -> bytes:
    made = bytearray()
    for value in values:
        single = struct.unpack("=f", array("f", [value]).tobytes())[0]
        if element is dtypes.float16:
            try:
                made += struct.pack("=e", single)
            except OverflowError:
                made += struct.pack("=e", float("inf") if single > 0 else float("-inf"))
            continue
        (bits,) = struct.unpack("=I", struct.pack("=f", single))
        if single != single:
            made += struct.pack("=H", 0x7FC0 | (bits >> 16 & 0x8000))
        else:
            made += struct.pack("=H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
    return bytes(made)


def _shape_of(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(data, (list, tuple)) or _is_sequence(data):
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
        if isinstance(data, Tensor):  # inside a sequence it is a number
            break
        if _is_array(data):
            shape.extend(data.shape)
            break
    return tuple(shape)


def _is_sequence(data: Any) -> bool:
    return isinstance(data, range) or (
        hasattr(data, "__getitem__")
        and hasattr(data, "__len__")
        and not isinstance(data, (str, bytes, dict, Tensor))
        and getattr(data, "ndim", 1) > 0
    )


def _is_array(data: Any) -> bool:
    return hasattr(data, "__array_interface__") and not isinstance(data, Tensor)


def _flattened(
    data: Any, shape: tuple[int, ...], dim: int, out: list[Any], kinds: set[Any]
) -> None:
    """Numbers in order, and of what type they were: the dtype of tensors and of NumPy's."""
    if isinstance(data, Tensor):
        from flambeau.tensor.conversion import only_element

        out.append(only_element(data))
        kinds.add(data._layout.dtype)
        return
    if _is_array(data):
        from flambeau.tensor import sharing

        values = data.tolist()
        kinds.add(sharing.dtype_of_array(data))
        if isinstance(values, list):
            _flattened(values, shape, dim, out, set())
        else:
            out.append(values)
        return
    if dim == len(shape):
        if isinstance(data, (list, tuple)):
            _refuse_deeper(data, out)
        out.append(data)
        kinds.add(type(data))
        return
    if not (isinstance(data, (list, tuple)) or _is_sequence(data)):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if dim + 1 == len(shape) and data and type(data[0]) in (int, float, bool):
        types = set(map(type, data))
        if types <= {bool, int, float}:
            out.extend(data)
            kinds |= types
            return
    for each in data:
        _flattened(each, shape, dim + 1, out, kinds)


def _refuse_deeper(data: Any, before: list[Any]) -> None:
    """torch's errors for a sequence where numbers stood before it."""
    kind = type(data).__name__
    if not before or isinstance(before[0], (list, tuple)):
        raise ValueError(f"too many dimensions '{kind}'")
    if isinstance(before[0], float):
        raise TypeError(f"must be real number, not {kind}")
    raise TypeError(f"'{kind}' object cannot be interpreted as an integer")


def _dtype_of(kinds: set[Any], values: list[Any]) -> dtype:
    given = [kind for kind in kinds if isinstance(kind, dtype)]
    if given:  # of tensors and NumPy's numbers
        kinds = kinds.difference(given)
        given += [_dtype_of(kinds, values)] if kinds else []
        return functools.reduce(promotion.promote_types, given)
    if not kinds:
        return promotion.default_dtype()
    if kinds <= {bool}:
        return dtypes.bool_
    if kinds <= {bool, int}:
        return dtypes.int64
    if kinds <= {bool, int, float}:
        return promotion.default_dtype()
    if any(issubclass(kind, complex) for kind in kinds):
        return promotion.default_dtype().to_complex()
    for kind in kinds:
        if not issubclass(kind, (int, float, complex)):
            if kind in (list, tuple):
                _refuse_deeper(next(each for each in values if type(each) is kind), values)
            _refuse(kind)
    return promotion.default_dtype()


def _refuse(kind: type) -> None:
    if issubclass(kind, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}")


def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Tensor with a copy of Python numbers, nested sequences, an array or a tensor.

    Dtypes   of floats the default dtype, of ints int64, of bools bool, of arrays their own.
    Raises   ValueError: ragged sequences. TypeError: not numbers. RuntimeError: overflow.

    >>> tensor([[1, 2], [3, 4]]).shape
    torch.Size([2, 2])
    """
    where = chosen_device(device)
    if dtype is not None:
        dtype = dtypes.asked_for(dtype, "tensor")
    if isinstance(data, Tensor):
        made = _copied(data, dtype, where)
    elif _is_array(data):
        made = _from_array(data, dtype, where)
    else:
        made = _from_python(data, dtype, where)
    if requires_grad:
        members.set_requires_grad(made, True, "O" + members.NEEDS_FLOATING[1:])
    return made


def _copied(data: Tensor, element: dtype | None, where: Device) -> Tensor:
    import warnings

    from flambeau.tensor import functions

    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        "or sourceTensor.detach().clone().requires_grad_(True), rather than "
        "torch.tensor(sourceTensor).",
        stacklevel=3,
    )
    made: Tensor = functions.clone(data.detach())
    if element is not None and element is not made._layout.dtype:
        made = functions.convert(made, element)
    return made


def _from_array(data: Any, element: dtype | None, where: Device) -> Tensor:
    import numpy as np

    from flambeau.tensor import functions, sharing

    packed_array = np.ascontiguousarray(data)
    found = sharing.dtype_of_array(packed_array)
    made = from_bytes(packed_array.tobytes(), tuple(data.shape), found, where)
    if element is not None and element is not found:
        made = functions.convert(made, element)
    return made


def _from_python(data: Any, element: dtype | None, where: Device) -> Tensor:
    kind = type(data)
    if kind is float or kind is int or kind is bool:
        values = [data]
        shape: tuple[int, ...] = ()
        kinds: set[Any] = {kind}
    else:
        shape = _shape_of(data)
        values = []
        kinds = set()
        _flattened(data, shape, 0, values, kinds)
    if element is None:
        element = _dtype_of(kinds, values)
    try:
        raw = packed(values, element)
    except TypeError:
        for value in values:
            if not isinstance(value, (int, float, complex)) and not hasattr(value, "__index__"):
                _refuse(type(value))
        raise
    return from_bytes(raw, shape, element, where)


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Like `tensor`, but shares memory with a tensor or array where it can."""
    if isinstance(data, Tensor):
        same = dtype is None or dtype is data._layout.dtype
        if device is not None:
            return data.to(device, dtype=dtype or data._layout.dtype)
        return data if same else data.to(dtype)
    if _is_array(data):
        from flambeau.tensor import sharing

        if not sharing.is_numpy_array(data):  # a NumPy number has no memory to share
            return tensor(data, dtype=dtype, device=device)
        made = sharing.from_numpy(data)
        made = made.to(device) if device is not None and chosen_device(device) is META else made
        return made if dtype is None else made.to(dtype)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of a tensor, array, buffer or numbers; shares memory unless `copy` forbids it."""
    from flambeau.tensor import sharing

    shareable = isinstance(obj, Tensor) or _is_array(obj)
    if not shareable and isinstance(obj, (bytes, bytearray, memoryview)):
        obj = sharing.frombuffer(obj, dtype=dtype or promotion.default_dtype())
        shareable = True
    if copy is False and _is_array(obj) and not sharing.is_numpy_array(obj):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    made = as_tensor(obj, dtype, device)
    if copy is False and (not shareable or _storage_moved(obj, made)):
        raise ValueError(
            "cannot convert the given object to a tensor without copying its data: copy=False"
        )
    if copy and shareable and not _storage_moved(obj, made):
        made = made.clone()
    if requires_grad:
        made = made.detach()
        members.set_requires_grad(made, True)
    return made


def _storage_moved(source: Any, made: Tensor) -> bool:
    """Whether a conversion made memory of its own."""
    if isinstance(source, Tensor):
        return made._storage is not source._storage
    return made._storage.external is None


def sizes_of(size: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """A shape given as ints or as one sequence; torch's errors."""
    if len(size) == 1 and not isinstance(size[0], int):
        first = size[0]
        if isinstance(first, (tuple, list)):
            size = tuple(first)
        elif not hasattr(first, "__index__"):
            raise TypeError(
                f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
                f"{type(first).__name__}"
            )
    made = []
    for position, each in enumerate(size):
        if not hasattr(each, "__index__") or isinstance(each, bool):
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {position + 1} with "
                f'error "type must be tuple of ints,but got {type(each).__name__}"'
            )
        number = each.__index__()
        if number < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {number}: {list(size)}"
            )
        made.append(number)
    return tuple(made)


def fresh_layout(shape: tuple[int, ...], element: dtype | None, where: Any) -> Layout:
    """Row-major layout with defaults filled in."""
    chosen = promotion.default_dtype() if element is None else dtypes.asked_for(element, "empty")
    return contiguous(shape, chosen, chosen_device(where))


def empty(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Tensor with undefined contents."""
    shape = sizes_of(sizes if size is None else (size,), "empty")
    if out is not None:
        resize(out, contiguous(shape, out._layout.dtype, out._layout.device))
        return out
    return empty_layout(fresh_layout(shape, dtype, device), requires_grad)


def empty_strided(
    size: Any, stride: Any, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Tensor of given shape and strides with undefined contents."""
    given = fresh_layout(tuple(size), dtype, device)
    return empty_layout(
        make_layout(tuple(size), tuple(stride), given.dtype, given.device), requires_grad
    )


make_layout = layout


def resize(target: Tensor, wanted: Layout) -> None:
    """Give a tensor another layout over its storage, larger memory where it is too small."""
    storage = target._storage
    needed = wanted.span * wanted.itemsize
    if storage.n_bytes < needed + target._offset * wanted.itemsize:
        if storage.external is not None or type(storage.block) is OutsideBlock:
            raise RuntimeError(
                helped(
                    "Trying to resize storage that is not resizable",
                    given="memory that is shared with an array",
                    fix="a tensor with memory of its own: x.clone()",
                )
            )
        stream.materialize(target, "resize")
        larger = empty_storage(wanted)
        if storage.block is not None:
            ctypes.memmove(larger.block.address, storage.block.address, storage.n_bytes)
        storage.block = larger.block
        storage.layout = wanted
    target._layout = wanted
    target._place = UNPLACED


def legacy_tensor(cls: Any, *arguments: Any, **named: Any) -> Tensor:
    """Tensor(2, 3), Tensor([...]): the old constructor, float32."""
    where = named.pop("device", None)
    if named:
        raise TypeError(f"new() received an invalid combination of arguments - got {sorted(named)}")
    element = promotion.default_dtype()
    if len(arguments) == 1 and not isinstance(arguments[0], int):
        data = arguments[0]
        if isinstance(data, Tensor):
            return data.detach()
        if type(data).__name__ == "Size":
            return empty(*data, dtype=element, device=where)
        from flambeau.tensor.public.typed import legacy

        return legacy.legacy(element, arguments, where)
    return empty(*(arguments or (0,)), dtype=element, device=where)
