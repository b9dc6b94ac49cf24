"""torch.save: an object as a zip archive of a pickle and the bytes of its storages.

Keeps     a file appears whole or not at all: it is written beside its place and renamed. Tensors
          that share memory share it in the file.
Touches   tensor, zipfile, pickle.
Not here  reading (reading.py), the older format (legacy.py).
Source    PyTorch's serialization format, version 3."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import sys
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.devices import META, Device
from flambeau.base.dtypes import dtype, uint8
from flambeau.base.errors import helped
from flambeau.engine import stream
from flambeau.io import settings
from flambeau.io.legacy import write_legacy
from flambeau.io.safe_types import is_functional, torch_module
from flambeau.io.storage_types import STORAGE_NAMES
from flambeau.nn.parameter import Parameter
from flambeau.sparse.coo import SparseTensor
from flambeau.sparse.csr import SparseRows
from flambeau.tensor import Size, Tensor
from flambeau.tensor.public import formats
from flambeau.tensor.public.typed.storages import TypedStorage, UntypedStorage
from flambeau.tensor.tensor import is_result

ALIGNMENT: Final = 64
_OWN: Final = (Tensor, Size, Device, formats.layout, SparseTensor, SparseRows)


class _Name:
    """A global of PyTorch's, written by name."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name


class _StorageReference:
    """Stands for a storage in the pickle; written as a persistent id."""

    def __init__(self, element: dtype, key: str, storage: Any) -> None:
        self.element = element
        self.key = key
        self.count = storage.n_bytes // (element.itemsize if element in STORAGE_NAMES else 1)
        self.storage = storage

    def raw(self) -> bytes:
        """The bytes."""
        block, n_bytes = self.storage.block, self.storage.n_bytes
        return ctypes.string_at(block.address, n_bytes) if block is not None and n_bytes else b""


if TYPE_CHECKING:

    class _PythonPickler:
        """What pickle's pickler in Python lets its heirs use; type checkers know only the C one."""

        dispatch: dict[Any, Callable[[Any, Any], None]]
        memo: dict[int, tuple[int, Any]]
        write: Callable[[bytes], None]

        def __init__(self, file: Any, protocol: int) -> None: ...
        def dump(self, obj: Any) -> None: ...
        def memoize(self, obj: Any) -> None: ...
        def save(self, obj: Any, save_persistent_id: bool = True) -> None: ...
        def save_reduce(self, func: Any, args: Any, *rest: Any, **named: Any) -> None: ...

else:
    _PythonPickler = pickle._Pickler


class _Pickler(_PythonPickler):
    """The pure-Python pickler: the C one cannot write names that cannot be imported."""

    dispatch = dict(_PythonPickler.dispatch)

    def __init__(self, file: Any, protocol: int, is_legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, _StorageReference] = {}
        self.is_legacy = is_legacy

    def save_name(self, name: _Name) -> None:
        """A GLOBAL opcode."""
        self.write(b"c" + name.module.encode() + b"\n" + name.name.encode() + b"\n")
        self.memoize(name)

    dispatch[_Name] = save_name

    def persistent_id(self, obj: Any) -> Any:
        """Storages are told by type, key, place and number of elements."""
        if not isinstance(obj, _StorageReference):
            return None
        if obj.element not in STORAGE_NAMES:
            kind = _name("torch.storage", "UntypedStorage")
        else:
            kind = _name("torch", STORAGE_NAMES[obj.element])
        told = ("storage", kind, obj.key, "cpu", obj.count)
        return (*told, None) if self.is_legacy else told

    def reducer_override(self, obj: Any) -> Any:
        """How flambeau's objects are written: as PyTorch writes its own."""
        if isinstance(obj, Parameter):
            plain: tuple[Any, ...] = (obj.data, obj.requires_grad, OrderedDict())
            return (_name("torch._utils", "_rebuild_parameter"), plain)
        if isinstance(obj, Tensor):
            if obj._layout.device is META:
                given = obj._layout
                plain = (given.dtype, tuple(given.shape), tuple(given.strides), obj.requires_grad)
                return (_name("torch._utils", "_rebuild_meta_tensor_no_storage"), plain)
            if obj.dtype not in STORAGE_NAMES:  # a storage of bytes, and the dtype beside it
                told = (*self._tensor(obj), obj.dtype)
                return (_name("torch._utils", "_rebuild_tensor_v3"), told)
            return (_name("torch._utils", "_rebuild_tensor_v2"), self._tensor(obj))
        if isinstance(obj, Size):
            return (_name("torch", "Size"), (tuple(obj),))
        if isinstance(obj, Device):
            return (_name("torch", "device"), (str(obj),))
        if isinstance(obj, formats.layout):
            return (_name("torch.serialization", "_get_layout"), (repr(obj),))
        if isinstance(obj, SparseTensor):
            parts = (obj._indices(), obj._values(), obj.shape, obj.is_coalesced())
            return (_name("torch._utils", "_rebuild_sparse_tensor"), (obj.layout, parts))
        if isinstance(obj, SparseRows):
            rows = (obj.crow_indices(), obj.col_indices(), obj.values(), obj.shape)
            return (_name("torch._utils", "_rebuild_sparse_tensor"), (obj.layout, rows))
        if is_result(obj):
            return (_name("torch.return_types", type(obj).__name__), (tuple(obj), {}))
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Dtypes are names; everything else as usual."""
        if isinstance(obj, (dtype, formats.memory_format)):
            super().save(_name("torch", obj.name), save_persistent_id)
            return
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            obj = self._reference_to(obj)
        if isinstance(obj, type) and obj.__module__.startswith(("flambeau.nn.", "flambeau.optim.")):
            super().save(_name(torch_module(obj), obj.__qualname__), save_persistent_id)
            return
        if callable(obj) and is_functional(obj):
            super().save(_name("torch.nn.functional", obj.__name__), save_persistent_id)
            return
        if (isinstance(obj, _OWN) or is_result(obj)) and id(obj) not in self.memo:
            function, arguments = self.reducer_override(obj)
            self.save_reduce(function, arguments, obj=obj)
            return
        super().save(obj, save_persistent_id)

    def save_reduce(self, func: Any, args: Any, *rest: Any, **named: Any) -> None:
        """As usual, but a name may stand for the function."""
        if not isinstance(func, _Name):
            super().save_reduce(func, args, *rest, **named)
            return
        obj = named.get("obj")
        self.save(func)
        self.save(args)
        self.write(pickle.REDUCE)
        if obj is not None:
            self.memoize(obj)

    def _tensor(self, tensor: Tensor) -> tuple[Any, ...]:
        stream.materialize(tensor, "torch.save()")
        needs_grad = tensor.requires_grad
        if tensor._layout.is_conj:  # what is written are the numbers as they are seen
            tensor = tensor.detach().clone()
            stream.materialize(tensor, "torch.save()")
        layout = tensor._layout
        return (
            self._reference(tensor._storage, layout.dtype), tensor._offset, tuple(layout.shape),
            tuple(layout.strides), needs_grad, OrderedDict(),
        )  # fmt: skip

    def _reference_to(self, storage: Any) -> _StorageReference:
        """A storage that is written itself."""
        storage.data_ptr()  # runs what is pending
        is_typed = isinstance(storage, TypedStorage)
        untyped = storage.untyped() if is_typed else storage
        return self._reference(untyped._storage, storage.dtype if is_typed else uint8)

    def _reference(self, storage: Any, element: dtype) -> _StorageReference:
        known = self.storages.get(id(storage))
        if known is None:
            known = _StorageReference(element, str(len(self.storages)), storage)
            self.storages[id(storage)] = known
        if known.element is not element:
            raise RuntimeError(
                helped(
                    "Cannot save multiple tensors or storages that view the same data as different "
                    "types",
                    given=f"{known.element} and {element}",
                    fix="clone() one of them",
                )
            )
        return known


_NAMES: dict[tuple[str, str], _Name] = {}


def _name(module: str, name: str) -> _Name:
    """The one _Name with these parts, so that the pickler's memo finds it."""
    return _NAMES.setdefault((module, name), _Name(module, name))


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write tensors, state dicts and plain Python objects to a file PyTorch reads.

    f        a path, or an object with write
    Raises   whatever pickling raises; then no file is left behind.
    """
    data = io.BytesIO()
    pickler = _Pickler(data, pickle_protocol, not _use_new_zipfile_serialization)
    pickler.dump(obj)
    storages = [(each.key, each.count, each.raw()) for each in pickler.storages.values()]
    if settings.skips_data():
        storages = [(key, count, bytes(len(raw))) for key, count, raw in storages]

    def write(file: Any, name: str) -> None:
        if _use_new_zipfile_serialization:
            _write_archive(file, name, data.getvalue(), storages)
        else:
            write_legacy(file, data.getvalue(), storages, pickle_protocol)

    if hasattr(f, "write"):
        buffer = io.BytesIO()
        write(buffer, "archive")
        f.write(buffer.getvalue())
        return
    if not isinstance(f, (str, os.PathLike)):
        raise AttributeError(
            helped(
                "expected 'f' to be string, path, or a file-like object with a 'write' attribute",
                given=f"a {type(f).__name__}",
            )
        )
    path = os.fspath(f)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    name = os.path.splitext(os.path.basename(path))[0] or "archive"
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".flambeau-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file, name)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _write_archive(
    file: Any, name: str, data: bytes, storages: list[tuple[str, int, bytes]]
) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, f"{name}/data.pkl", data)
        _put(archive, f"{name}/.format_version", b"1")
        _put(archive, f"{name}/.storage_alignment", b"64")
        _put(archive, f"{name}/byteorder", sys.byteorder.encode())
        for key, _, raw in storages:
            _put(archive, f"{name}/data/{key}", raw)
        _put(archive, f"{name}/version", b"3\n")


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """An entry whose bytes start at a multiple of 64, as PyTorch's reader likes them."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    position = archive.start_dir + 30 + len(name.encode())
    padding = -(position + 4) % ALIGNMENT
    entry.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    archive.writestr(entry, data)
