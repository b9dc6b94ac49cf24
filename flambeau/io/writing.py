"""torch.save: an object as a zip archive of a pickle and the bytes of its storages.

Keeps     a file appears whole or not at all: it is written beside its place and renamed. Tensors
          that share memory share it in the file.
Touches   tensor, zipfile, pickle.
Not here  reading (reading.py).
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

from flambeau.base.devices import Device
from flambeau.base.dtypes import EIGHT_BITS, dtype
from flambeau.engine import stream
from flambeau.io.safe_types import is_functional
from flambeau.io.storage_types import STORAGE_NAMES
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Size, Tensor

ALIGNMENT: Final = 64


class _Name:
    """A global of PyTorch's, written by name."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name


class _StorageReference:
    """Stands for a storage in the pickle; written as a persistent id."""

    def __init__(self, element: dtype, key: str, count: int) -> None:
        self.element = element
        self.key = key
        self.count = count


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

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[str, Any]] = {}

    def save_name(self, name: _Name) -> None:
        """A GLOBAL opcode."""
        self.write(b"c" + name.module.encode() + b"\n" + name.name.encode() + b"\n")
        self.memoize(name)

    dispatch[_Name] = save_name

    def persistent_id(self, obj: Any) -> Any:
        """Storages are told by type, key, place and number of elements."""
        if not isinstance(obj, _StorageReference):
            return None
        if obj.element in EIGHT_BITS:
            kind = _name("torch.storage", "UntypedStorage")
        else:
            kind = _name("torch", STORAGE_NAMES[obj.element])
        return ("storage", kind, obj.key, "cpu", obj.count)

    def reducer_override(self, obj: Any) -> Any:
        """How flambeau's objects are written: as PyTorch writes its own."""
        if isinstance(obj, Parameter):
            plain: tuple[Any, ...] = (obj.data, obj.requires_grad, OrderedDict())
            return (_name("torch._utils", "_rebuild_parameter"), plain)
        if isinstance(obj, Tensor):
            if obj.dtype in EIGHT_BITS:  # a storage of bytes, and the dtype beside it
                told = (*self._tensor(obj), obj.dtype)
                return (_name("torch._utils", "_rebuild_tensor_v3"), told)
            return (_name("torch._utils", "_rebuild_tensor_v2"), self._tensor(obj))
        if isinstance(obj, Size):
            return (_name("torch", "Size"), (tuple(obj),))
        if isinstance(obj, Device):
            return (_name("torch", "device"), (str(obj),))
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Dtypes are names; everything else as usual."""
        if isinstance(obj, dtype):
            super().save(_name("torch", obj.name), save_persistent_id)
            return
        if isinstance(obj, type) and obj.__module__.startswith(("flambeau.nn.", "flambeau.optim.")):
            own = "torch" + obj.__module__.removeprefix("flambeau")
            super().save(_name(own, obj.__qualname__), save_persistent_id)
            return
        if callable(obj) and is_functional(obj):
            super().save(_name("torch.nn.functional", obj.__name__), save_persistent_id)
            return
        if isinstance(obj, (Tensor, Size, Device)) and id(obj) not in self.memo:
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
        layout, storage = tensor._layout, tensor._storage
        key, _ = self.storages.setdefault(id(storage), (str(len(self.storages)), storage))
        count = storage.n_bytes // layout.itemsize
        reference = _StorageReference(layout.dtype, key, count)
        return (
            reference, tensor._offset, tuple(layout.shape), tuple(layout.strides),
            needs_grad, OrderedDict(),
        )  # fmt: skip


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
    pickler = _Pickler(data, pickle_protocol)
    pickler.dump(obj)
    if hasattr(f, "write"):
        buffer = io.BytesIO()
        _write_archive(buffer, "archive", data.getvalue(), pickler.storages)
        f.write(buffer.getvalue())
        return
    path = os.fspath(f)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    name = os.path.splitext(os.path.basename(path))[0] or "archive"
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".flambeau-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write_archive(file, name, data.getvalue(), pickler.storages)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _write_archive(file: Any, name: str, data: bytes, storages: dict[int, tuple[str, Any]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, f"{name}/data.pkl", data)
        _put(archive, f"{name}/.format_version", b"1")
        _put(archive, f"{name}/.storage_alignment", b"64")
        _put(archive, f"{name}/byteorder", sys.byteorder.encode())
        for key, storage in storages.values():
            raw = b""
            if storage.block is not None and storage.n_bytes:
                raw = ctypes.string_at(storage.block.address, storage.n_bytes)
            _put(archive, f"{name}/data/{key}", raw)
        _put(archive, f"{name}/version", b"3\n")


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """An entry whose bytes start at a multiple of 64, as PyTorch's reader likes them."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    position = archive.start_dir + 30 + len(name.encode())
    padding = -(position + 4) % ALIGNMENT
    entry.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    archive.writestr(entry, data)
