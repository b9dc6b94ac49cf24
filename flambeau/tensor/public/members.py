"""Tensor's members that are no operators: in-place changes of shape, conversions of type, pickling,
exchange with other packages, Python functions over elements.

Keeps     a member that changes what a tensor looks at leaves other tensors alone.
Touches   functions, creation, conversion, gradients.members.
Not here  members made from operators (methods.py), storages (typed/storages.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.dtypes import asked_for, dtype
from flambeau.base.errors import helped
from flambeau.base.layout import contiguous
from flambeau.engine import stream
from flambeau.engine.view import UNPLACED
from flambeau.gradients import members, modes, saved
from flambeau.tensor import conversion, creation, functions
from flambeau.tensor.arguments import python_data, refused
from flambeau.tensor.arguments.refusals import answered
from flambeau.tensor.number_rules import is_number
from flambeau.tensor.overriding import results
from flambeau.tensor.public import formats
from flambeau.tensor.tensor import Tensor

# In-place changes of shape ---------------------------------------------------------------


def _become(self: Tensor, other: Tensor) -> Tensor:
    """Look at what another tensor looks at, history included."""
    self._storage, self._layout, self._offset = other._storage, other._layout, other._offset
    self._place = UNPLACED
    self._autograd = other._autograd
    if other._base is not None and (self._autograd is not None or self._base is not None):
        self._base = other._base
    saved.bump(self)
    return self


def _viewed(self: Tensor, name: str, *arguments: Any, **named: Any) -> Tensor:
    """Become a view of what this tensor was."""
    is_leaf = members.is_leaf(self) and members.requires_grad(self)
    if is_leaf and modes.is_grad_enabled():
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )
    _become(self, getattr(functions, name)(functions.alias(self), *arguments, **named))
    if is_leaf:
        members.set_requires_grad(self, True)
    return self


def t_(self: Tensor) -> Tensor:
    """Transpose in place."""
    if self._layout.ndim > 2:
        raise RuntimeError(
            f"t_() expects a tensor with <= 2 dimensions, but self is {self._layout.ndim}D"
        )
    return _viewed(self, "t")


def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dims in place."""
    return _viewed(self, "transpose", dim0, dim1)


def squeeze_(self: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Drop dims of size 1 in place."""
    if len(dims) > 1:
        dims = (dims,)
    return _viewed(self, "squeeze", *dims, **named)


def unsqueeze_(self: Tensor, *dim: Any, **named: Any) -> Tensor:
    """A dim of size 1 more, in place."""
    return _viewed(self, "unsqueeze", *dim, **named)


def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """Other sizes and strides in place."""
    return _viewed(self, "as_strided", size, stride, _relative(self, size, stride, storage_offset))


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """Any sizes and strides over the storage, from an offset counted from its start."""
    relative = _relative(input, size, stride, storage_offset)
    return functions.as_strided(input, size, stride, relative)


def _relative(input: Tensor, size: Any, stride: Any, storage_offset: Any) -> int:
    """The offset counted from the tensor's first element; refuses what leaves the storage."""
    own = input._offset
    at = own if storage_offset is None else int(storage_offset)
    if at < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {at}")
    sizes, strides = tuple(size), tuple(stride)
    if any(each < 0 for each in sizes):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and "
            f"strides={list(strides)}"
        )
    if len(sizes) == len(strides) and 0 not in sizes and all(each >= 0 for each in strides):
        steps = zip(sizes, strides, strict=True)
        itemsize = input._layout.itemsize
        needed = (at + 1 + sum((count - 1) * step for count, step in steps)) * itemsize
        held = input._storage.layout.span_bytes
        if needed > held:
            raise RuntimeError(
                helped(
                    f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset "
                    f"{at}, and itemsize {itemsize} requiring a storage size of {needed} are out "
                    f"of bounds for storage of size {held}",
                    fix="smaller sizes or strides",
                )
            )
    return at - own


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Another shape, more memory where it is needed; new elements are undefined."""
    if members.requires_grad(self):
        raise RuntimeError("cannot resize variables that require grad")
    shape = creation.sizes_of(sizes, "resize_")
    if shape != self._layout.shape:
        creation.resize(self, contiguous(shape, self._layout.dtype, self._layout.device))
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Another tensor's shape."""
    return resize_(self, the_template._layout.shape)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Look at another tensor's memory."""
    if source is None:
        return _become(self, creation.empty(0, dtype=self._layout.dtype))
    if not isinstance(source, Tensor):
        source = source._whole() if hasattr(source, "_whole") else source._tensor
    if source._layout.dtype is not self._layout.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source._layout.dtype.name} to a tensor of type "
            f"{self._layout.dtype.name}"
        )
    self._storage, self._layout, self._offset = source._storage, source._layout, source._offset
    self._place = UNPLACED
    if size is not None:
        strides = contiguous(tuple(size), dtypes.float32).strides if stride is None else stride
        self._layout = creation.make_layout(
            tuple(size), tuple(strides), source._layout.dtype, source._layout.device
        )
        self._offset = storage_offset
    return self


# Type and identity -----------------------------------------------------------------------


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False, **named: Any) -> Any:
    """The old type's name; with a type or dtype, the tensor converted to it."""
    from flambeau.tensor.public import queries
    from flambeau.tensor.public.typed import legacy

    if dtype is None:
        return queries.type_name(self)
    found = legacy.dtype_of(dtype) or dtype
    if not isinstance(found, dtypes.dtype):
        raise ValueError(f"invalid type: '{getattr(dtype, '__name__', dtype)}'")
    return self.to(found)


def view(self: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The same elements under another shape, or (with a dtype) the same bytes."""
    try:
        sizes = (named["dtype"] if "dtype" in named else named["size"],) if named else shape
        if len(sizes) == 1:
            first = sizes[0]
            if first.__class__ is type:
                first = asked_for(first, "view")
            if first.__class__ is dtype:
                from flambeau.tensor.public.typed import storages

                return storages.reinterpreted(self, first)
            if isinstance(first, (tuple, list)):
                return functions.view(self, first)
        if not sizes:
            raise refused("view", (self,), named, is_method=True)
        return functions.view(self, sizes)
    except Exception:  # here, so that a call that succeeds is no deeper
        return answered("view", True, (self, *shape), named)


view.refuses = True  # type: ignore[attr-defined]


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors look at the same memory in the same way."""
    return (
        self._storage is tensor._storage
        and self._layout is tensor._layout
        and self._offset == tensor._offset
    )


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, which is dense."""
    return self if dtype is None else self.to(dtype)


def dim_order(self: Tensor) -> tuple[int, ...]:
    """Dims from the slowest to the fastest varying."""
    strides = self._layout.strides
    return tuple(sorted(range(len(strides)), key=lambda dim: (-strides[dim], dim)))


def share_memory_(self: Tensor) -> Tensor:
    """Move the memory to where processes that are forked from now on see it too; each write is then
    done at once. Processes that are started otherwise get copies.

    >>> import flambeau as torch
    >>> torch.zeros(2).share_memory_().add_(1)
    tensor([1., 1.])
    """
    from mmap import mmap

    from flambeau.engine.external import OVER_READ_BYTES, External, OutsideBlock

    storage = self._storage
    n_bytes = storage.layout.span_bytes
    if not n_bytes or storage.external is not None:
        return self
    before = conversion.address_of(self, "share_memory_()") - self._offset * self._layout.itemsize
    owner = mmap(-1, n_bytes + OVER_READ_BYTES)
    address = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    ctypes.memmove(address, before, n_bytes)
    storage.block = OutsideBlock(address, n_bytes, owner)
    storage.external = External(owner, 0)
    return self


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Refused as torch refuses it without an accelerator."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


# Exchange --------------------------------------------------------------------------------


def array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What a NumPy function made, as a tensor."""
    from flambeau.tensor import sharing

    if array.dtype == bool:
        array = array.astype("uint8")
        return functions.convert(sharing.from_numpy(array), dtypes.bool_)
    return sharing.from_numpy(array)


def dlpack(self: Tensor, **named: Any) -> Any:
    """A capsule of the tensor's memory for other packages."""
    if members.requires_grad(self):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return conversion.numpy(self).__dlpack__()


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """(kDLCPU, 0)."""
    return (1, 0)


class _Capsule:
    """A capsule that was already taken from its tensor, as an array library asks for it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over memory that another package offers."""
    import numpy

    from flambeau.tensor import sharing

    if not hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _Capsule(ext_tensor)
    array: Any = numpy.from_dlpack(ext_tensor)
    if not array.flags.writeable:  # DLPack says nothing of it; the exporter gave leave to write
        memory = _writable_bytes(array)
        memory.exporter = array  # whoever looks at the memory keeps its owner alive
        array = numpy.ndarray(array.shape, array.dtype, memory, 0, array.strides)
    return sharing.from_numpy(array)


def _writable_bytes(array: Any) -> Any:
    size = max(sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)), 0)
    address = array.__array_interface__["data"][0]
    return (ctypes.c_char * (size + array.itemsize)).from_address(address)


def as_subclass(self: Tensor, cls: type[Tensor]) -> Any:
    """The same elements with the same history, as an instance of a subclass.

    >>> import flambeau as torch
    >>> class Length(torch.Tensor): pass
    >>> type(torch.ones(2).as_subclass(Length)).__name__
    'Length'
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}")
    return results.as_subclass(self, cls)


# Python functions over elements ------------------------------------------------------------


def _from_python(self: Tensor, values: list[Any], name: str) -> Tensor:
    if members.requires_grad(self):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    shape, element = self._layout.shape, self._layout.dtype
    return self.copy_(creation.from_bytes(python_data.packed(values, element), shape, element))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Each element replaced by a Python function's result."""
    if members.requires_grad(self):
        return _from_python(self, [], "apply_")
    return _from_python(self, [callable(each) for each in conversion.flat_values(self)], "apply_")


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Each element replaced by a Python function of it and another tensor's."""
    if members.requires_grad(self):
        return _from_python(self, [], "map_")
    other = functions.expand(tensor, self._layout.shape)
    pairs = zip(conversion.flat_values(self), conversion.flat_values(other), strict=True)
    return _from_python(self, [callable(one, two) for one, two in pairs], "map_")


# Python's operators with the tensor on the right -------------------------------------------


def invert(self: Tensor) -> Any:
    """~self."""
    if self._layout.dtype.category <= 1:
        return functions.bitwise_not(self)
    raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")


def rtruediv(self: Tensor, other: Any) -> Any:
    """other / self."""
    try:
        return functions.reciprocal(self) * other
    except TypeError:
        return NotImplemented


def rpow(self: Tensor, other: Any) -> Any:
    """other ** self."""
    takes = is_number(other) or isinstance(other, Tensor)
    return functions.pow(other, self) if takes else NotImplemented


def _reflected(name: str) -> Callable[[Tensor, Any], Any]:
    """An operator with a number on its left; Python's error for anything else."""

    def function(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor) and not is_number(other):
            return NotImplemented
        return getattr(functions, name)(other, self)

    return function


rfloordiv = _reflected("floor_divide")
rmod = _reflected("remainder")
rlshift = _reflected("bitwise_left_shift")
rrshift = _reflected("bitwise_right_shift")


def rmatmul(self: Tensor, other: Any) -> Any:
    """other @ self, for others that are no tensors."""
    if isinstance(other, Tensor):
        return functions.matmul(other, self)
    return NotImplemented


def contains(self: Tensor, element: Any) -> bool:
    """Whether an element equals a number, or one of another tensor's."""
    if isinstance(element, (Tensor, int, float, bool, complex)):
        return bool((self == element).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def reversed_(self: Tensor) -> Tensor:
    """reversed(tensor): the first dim in reverse."""
    return functions.flip(self, (0,)) if self._layout.shape else self


def synchronize(self: Tensor) -> None:
    """Run what is pending on the tensor."""
    stream.materialize(self, "synchronize")


# Memory formats: the order of dims that elements lie in --------------------------------------


def is_channels_last(tensor: Tensor, wanted: Any) -> bool:
    """Whether the channels' dim is the innermost in memory."""
    return shapes.is_channels_last(tensor._layout, shapes.RANKS[wanted.name])


def arranged(tensor: Tensor, wanted: Any, asking: str = "") -> Tensor:
    """The tensor in a memory format. `asking`: contiguous(), which has no format to preserve, or
    to() without another dtype, which takes what is not channels_last as contiguous."""
    if wanted is formats.preserve_format:
        if asking == "contiguous" and not tensor._layout.is_contiguous:
            raise RuntimeError(f"preserve memory format is unsupported by the {asking} operator")
        return tensor
    if wanted is formats.contiguous_format:
        layout = tensor._layout
        is_last = any(shapes.is_channels_last(layout, rank) for rank in shapes.RANKS.values())
        is_left_alone = tensor._layout.is_contiguous or (asking == "to" and not is_last)
        return tensor if is_left_alone else functions.contiguous_copy(tensor)
    shapes.in_format(tensor._layout, wanted)  # refused where the dims are too few or too many
    if is_channels_last(tensor, wanted):
        return tensor
    return functions.clone(tensor, memory_format=wanted)
