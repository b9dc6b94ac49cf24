"""Into tensors: from Python data, arrays and buffers, and fresh ones of a given shape.

Keeps     data is read when the call is made; a bad argument leaves nothing half made.
Touches   engine, devices.cpu.memory, functions (fills). NumPy only where the user brings it.
Not here  random tensors (random), memory shared with arrays (sharing.py)."""

from __future__ import annotations

import ctypes
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.devices import CPU, DEFAULT, META, Device, device
from flambeau.base.dtypes import dtype
from flambeau.base.errors import NO_CUDA, helped
from flambeau.base.layout import Layout, contiguous, layout
from flambeau.base.shapes import in_format, not_an_int
from flambeau.devices.cpu import memory
from flambeau.engine import run, stream
from flambeau.engine.external import OutsideBlock
from flambeau.engine.storage import Storage, new_storage
from flambeau.engine.view import UNPLACED
from flambeau.gradients import members
from flambeau.tensor.arguments import named_type, python_data, taken_over
from flambeau.tensor.arguments.python_data import is_array, packed
from flambeau.tensor.binding import check_size
from flambeau.tensor.tensor import Tensor, as_class, new_tensor


def chosen_device(given: Any) -> Device:
    """The device asked for; torch's error where this build cannot have it."""
    found = DEFAULT[0] if given is None else device(given)
    if found.type == "cpu":
        return found if found.index is None else CPU
    if found.type == "meta":
        return META
    if found.type == "cuda":
        raise AssertionError(NO_CUDA)
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
        members.set_requires_grad(made, requires_grad, members.OF_NEW_TENSORS)
    return made


def from_bytes(raw: Any, shape: tuple[int, ...], element: dtype, where: Device = CPU) -> Tensor:
    """Tensor with a copy of packed row-major bytes."""
    made = empty_layout(contiguous(shape, element, where))
    if where is not META and len(raw):
        ctypes.memmove(made._storage.block.address, bytes(raw), len(raw))
    return made


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
    elif is_array(data):
        made = _from_array(data, dtype, where)
    else:
        made = _from_python(data, dtype, where)
    if requires_grad:
        members.set_requires_grad(made, requires_grad, members.OF_NEW_TENSORS)
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
    with taken_over.Undisturbed():
        made: Tensor = functions.clone(data.detach())
    if element is not None and element is not made._layout.dtype:
        made = functions.convert(made, element)
    return made


def _from_array(data: Any, element: dtype | None, where: Device) -> Tensor:
    import numpy as np

    from flambeau.tensor import functions, sharing

    array = np.asarray(data)
    found = sharing.dtype_of_array(array)
    sharing.check_memory(array)
    if array.flags.c_contiguous or where is META or not array.size:
        made = from_bytes(array.tobytes(), tuple(data.shape), found, where)
    else:  # dims lie in memory as they did
        array = np.array(array, order="K")
        strides = tuple(stride // array.itemsize for stride in array.strides)
        made = empty_layout(make_layout(tuple(data.shape), strides, found))
        address = array.__array_interface__["data"][0]
        ctypes.memmove(made._storage.block.address, address, array.nbytes)
    if element is not None and element is not found:
        made = functions.convert(made, element)
    return made


def _from_python(data: Any, element: dtype | None, where: Device) -> Tensor:
    shape, values, kinds = python_data.read(data)
    if element is None:
        element = python_data.dtype_of(kinds)
    try:
        raw = packed(values, element)
    except TypeError:
        for value in values:
            if not isinstance(value, (int, float, complex)) and not hasattr(value, "__index__"):
                raise python_data.refusal(type(value)) from None
        raise
    return from_bytes(raw, shape, element, where)


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Like `tensor`, but shares memory with a tensor or array where it can."""
    if isinstance(data, Tensor):
        same = dtype is None or dtype is data._layout.dtype
        if device is not None:
            return data.to(device, dtype=dtype or data._layout.dtype)
        return data if same else data.to(dtype)
    if is_array(data):
        from flambeau.tensor import sharing

        if not sharing.is_numpy_array(data):  # a number has no memory to share
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

    shareable = isinstance(obj, Tensor) or is_array(obj)
    if not shareable and isinstance(obj, (bytes, bytearray, memoryview)):
        obj = sharing.frombuffer(obj, dtype=dtype or promotion.default_dtype())
        shareable = True
    if copy is False and is_array(obj) and not sharing.is_numpy_array(obj):
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
        members.set_requires_grad(made, requires_grad)
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
        if type(each) is int and each >= 0:
            made.append(each)
            continue
        if not hasattr(each, "__index__") or isinstance(each, bool):
            raise not_an_int(name, "size", 1, position, named_type(each))
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
    made = in_format(fresh_layout(shape, dtype, device), memory_format)
    return empty_layout(made, requires_grad)


def empty_strided(
    size: Any, stride: Any, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Tensor of given shape and strides with undefined contents."""
    given = fresh_layout(tuple(size), dtype, device)
    return empty_layout(
        make_layout(tuple(size), tuple(stride), given.dtype, given.device), requires_grad
    )


def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Tensor without gaps with undefined contents, whose dims lie in memory in a given order.

    Raises   RuntimeError: an order that does not name each dim once.

    >>> empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)
    """
    shape, order = tuple(size), tuple(physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    strides, step = [0] * len(shape), 1
    for place in reversed(range(len(order))):
        dim = order[place]
        if not 0 <= dim < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got "
                f"{dim} at index {place}).  NB: negative dims not currently supported; file an "
                "issue if you want it."
            )
        if dim in order[:place]:
            raise RuntimeError("Duplicate dim not allowed")
        strides[dim] = step
        step *= max(shape[dim], 1)
    return empty_strided(shape, strides, dtype=dtype, device=device, requires_grad=requires_grad)


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
    where, size = named.pop("device", None), named.pop("size", None)
    if named:
        raise TypeError(f"new() received an invalid combination of arguments - got {sorted(named)}")
    from flambeau.tensor.public.typed import legacy

    arguments = arguments if size is None else tuple(size)
    if len(arguments) == 1 and isinstance(arguments[0], Tensor):
        made = legacy.over(arguments[0])
    else:
        made = legacy.legacy(promotion.default_dtype(), arguments, where)
    return made if cls is Tensor else as_class(made, cls)
