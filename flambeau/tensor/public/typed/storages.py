"""tensor.untyped_storage() and tensor.storage(): the memory behind a tensor, as an object.

Keeps     an object here is a window on the engine's storage; two of them on one memory have the
          same data_ptr. Reading runs what is pending.
Touches   conversion, creation, engine.stream.
Not here  the storage itself (engine/storage.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from flambeau.base import dtypes
from flambeau.base.devices import Device
from flambeau.base.dtypes import dtype
from flambeau.base.layout import contiguous
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.engine import stream
from flambeau.engine.storage import Storage
from flambeau.tensor import conversion
from flambeau.tensor.tensor import Tensor, new_tensor


class UntypedStorage:
    """The bytes of a storage."""

    def __init__(self, tensor: Tensor) -> None:
        self._storage: Storage = tensor._storage
        self._tensor = tensor

    @property
    def device(self) -> Device:
        """Where the bytes are."""
        return self._storage.layout.device

    def nbytes(self) -> int:
        """How many there are."""
        return self._storage.layout.span * self._storage.layout.itemsize

    size = __len__ = nbytes

    def cpu(self) -> UntypedStorage:
        """Itself, where it is there already."""
        return UntypedStorage(self._tensor.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Raises: there is no such device."""
        return self._tensor.cuda()

    def data_ptr(self) -> int:
        """Address of the first."""
        stream.materialize(self._tensor, "data_ptr()")
        block = self._storage.block
        return 0 if block is None or not self.nbytes() else int(block.address)

    def tolist(self) -> list[int]:
        """All bytes as ints."""
        return list(ctypes.string_at(self.data_ptr(), self.nbytes())) if self.nbytes() else []

    def __getitem__(self, place: int) -> int:
        return self.tolist()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def __repr__(self) -> str:
        lines = "\n".join(f" {each}" for each in self.tolist())
        return f"{lines}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


class TypedStorage:
    """The elements of a storage, as one row."""

    def __init__(self, tensor: Tensor) -> None:
        self._untyped = UntypedStorage(tensor)
        self.dtype: dtype = tensor._layout.dtype

    @classmethod
    def of(cls, untyped: UntypedStorage, element: dtype) -> TypedStorage:
        """The bytes as elements of a dtype."""
        made = cls.__new__(cls)
        made._untyped, made.dtype = untyped, element
        return made

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self._untyped.device

    def _whole(self) -> Tensor:
        storage = self._untyped._storage
        count = self._untyped.nbytes() // self.dtype.itemsize
        return new_tensor(storage, contiguous((count,), self.dtype, self.device))

    def size(self) -> int:
        """How many there are."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """Bytes of all."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes of one."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first."""
        return self._untyped.data_ptr()

    def tolist(self) -> list[Any]:
        """All elements as Python numbers."""
        return conversion.flat_values(self._whole())

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.tolist()[place]
        return self._whole()[place].item()

    def __setitem__(self, place: Any, value: Any) -> None:
        self._whole()[place] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other._untyped == self._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __repr__(self) -> str:
        lines = "\n".join(f" {each}" for each in self.tolist())
        return (
            f"{lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of "
            f"size {len(self)}]"
        )


UntypedStorage.__module__ = TypedStorage.__module__ = "torch.storage"


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes behind the tensor."""
    return UntypedStorage(self)


def storage(self: Tensor) -> TypedStorage:
    """The elements behind the tensor, as one row."""
    return TypedStorage(self)


def _name(element: dtype) -> str:
    return SCALAR_TYPE_NAMES[element.name]


def reinterpreted(self: Tensor, element: dtype) -> Tensor:
    """The same bytes as elements of another dtype: tensor.view(dtype)."""
    from flambeau.base.layout import layout
    from flambeau.engine.view import UNPLACED

    given = self._layout
    if element is given.dtype:
        return self
    if given.is_conj:
        kind = "conjugate view tensors" if self.is_conj() else "tensors with negative bit set"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {kind} when converting to a different dtype."
        )
    if dtypes.bool_ in (element, given.dtype) and element.itemsize != given.itemsize:
        raise RuntimeError("self.size(-1) must be divisible by the sizes of the two dtypes")
    shape, strides, offset = list(given.shape), list(given.strides), self._offset
    old, new = given.itemsize, element.itemsize
    change = f"to view {_name(given.dtype)} as {_name(element)} (different element sizes)"
    if old != new:
        if not shape:
            raise RuntimeError(f"self.dim() cannot be 0 {change}")
        if strides[-1] != 1 and shape[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {change}, but got {strides[-1]}")
        if old > new:
            factor = old // new
            shape[-1] *= factor
            strides = [stride * factor for stride in strides]
            strides[-1] = 1
            offset *= factor
        else:
            factor = new // old
            for what, value in (("size(-1)", shape[-1]), ("storage_offset()", offset)):
                if value % factor:
                    raise RuntimeError(
                        f"self.{what} must be divisible by {factor} {change}, but got {value}"
                    )
            shape[-1] //= factor
            strides = [stride // factor for stride in strides]
            strides[-1] = 1
            offset //= factor
    # Values are not passed on inside a segment as another dtype: what is pending runs first.
    stream.materialize(self, "view(dtype)")
    made = new_tensor(self._storage, layout(tuple(shape), tuple(strides), element, given.device))
    made._offset = offset
    made._place = UNPLACED
    made._base = self if self._base is None else self._base
    if self._versions is not None:
        made._versions = self._versions
    return made
