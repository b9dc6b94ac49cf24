"""torch.load: PyTorch's zip archives, through a closed list of types.

Keeps     no code of a file's is ever run: only the types and functions named here are made. A file
          that is not whole raises before anything is returned.
Touches   tensor, zipfile, pickle's opcodes through a restricted unpickler; safe_types.py.
Not here  writing (writing.py).
Source    PyTorch's serialization format, version 3."""

from __future__ import annotations

import collections
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base import layout as layouts
from flambeau.base.devices import device
from flambeau.base.errors import helped
from flambeau.io import safe_types
from flambeau.io.storage_types import DTYPES
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Size, Tensor, creation
from flambeau.tensor.tensor import new_tensor


class _StorageType:
    """A storage class of PyTorch's, by its dtype."""

    def __init__(self, element: Any) -> None:
        self.element = element


def _rebuild_tensor(
    storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False,
    hooks: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    element, made = storage
    given = layouts.layout(tuple(size), tuple(stride), element)
    needed = (offset + given.span) * element.itemsize
    if given.n_elements and (given.low < 0 or offset < 0 or needed > made.n_bytes):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
            f"itemsize {element.itemsize} requiring a storage size of {needed} are out of bounds "
            f"for storage of size {made.n_bytes}"
        )
    tensor = new_tensor(made, given)
    if offset:
        from flambeau.engine.view import UNPLACED

        tensor._offset = offset
        tensor._place = UNPLACED
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_of_bytes(
    storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any,
    element: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over a storage that has no type of its own."""
    if not isinstance(element, dtypes.dtype):
        raise pickle.UnpicklingError(f"{element!r} is no dtype")
    return _rebuild_tensor((element, storage[1]), offset, size, stride, requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any = None) -> Parameter:
    return Parameter(data, requires_grad)  # type: ignore[no-any-return]


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, hooks: Any, state: Any
) -> Parameter:
    return _rebuild_parameter(data, requires_grad)


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


_ALLOWED: Final[dict[tuple[str, str], Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_of_bytes,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter_with_state,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch", "Size"): lambda size=(): Size(tuple(size)),
    ("torch", "device"): device,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
    ("collections", "Counter"): collections.Counter,
    # How protocol 2 writes bytes.
    ("_codecs", "encode"): _encoded,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "bytes"): bytes,
    ("builtins", "slice"): slice,
    ("builtins", "int"): int,
    ("builtins", "float"): float,
    ("builtins", "dict"): dict,
    ("builtins", "list"): list,
    **{("torch", each.name): each for each in (*dtypes.ALL, *dtypes.EIGHT_BITS)},
    **{("torch", name): _StorageType(element) for name, element in DTYPES.items()},
    ("torch.storage", "UntypedStorage"): _StorageType(dtypes.uint8),
    ("torch", "UntypedStorage"): _StorageType(dtypes.uint8),
}  # fmt: skip
_NUMPY: Final = {
    ("numpy", "dtype"), ("numpy._core.multiarray", "scalar"), ("numpy.core.multiarray", "scalar"),
}  # fmt: skip
# Made besides where weights_only=False: plain values of the standard library.
_PLAIN: Final = {
    ("argparse", "Namespace"), ("types", "SimpleNamespace"), ("collections", "deque"),
    ("pathlib", "PosixPath"), ("pathlib", "PurePosixPath"), ("datetime", "date"),
    ("datetime", "datetime"), ("datetime", "timedelta"), ("decimal", "Decimal"),
    ("fractions", "Fraction"), ("builtins", "range"),
}  # fmt: skip


def _numpy_array(kind: Any, shape: Any, code: Any) -> Any:
    """An array of numpy's to be filled: what numpy's own function makes, for its own class only."""
    import numpy

    if kind is not numpy.ndarray:
        raise pickle.UnpicklingError(f"an array of the class {kind!r}")
    return numpy.empty(0, "V1") if shape == (0,) else numpy.empty(shape, "V1")


class _Unpickler(pickle.Unpickler):
    """Makes what is on the list and nothing else."""

    def __init__(
        self, file: Any, storage: Callable[[Any, str, int], Any], weights_only: bool
    ) -> None:
        super().__init__(file, encoding="utf-8")
        self._storage = storage
        self._weights_only = weights_only

    def find_class(self, module: str, name: str) -> Any:
        """The object a name stands for, if it is on the list."""
        if module == "__builtin__":  # Python 2's name, which protocol 2 writes
            module = "builtins"
        found = _ALLOWED.get((module, name))
        if found is not None:
            return found
        if (module, name) in _NUMPY:
            return getattr(import_module(module.replace("numpy.core", "numpy._core")), name)
        found = safe_types.added(module, name)
        if found is None and not self._weights_only:
            found = self._whole_object(module, name)
        if found is None:
            raise self._refused(module, name)
        return found

    def _whole_object(self, module: str, name: str) -> Any:
        """What weights_only=False may make besides: layers, models, arrays, plain values."""
        if name == "_reconstruct" and module.startswith("numpy"):
            return _numpy_array
        if (module, name) == ("numpy", "ndarray"):
            import numpy

            return numpy.ndarray
        if (module, name) in _PLAIN:
            return getattr(import_module(module), name)
        return safe_types.module_class(module, name)

    def _refused(self, module: str, name: str) -> Exception:
        if not self._weights_only:
            return pickle.UnpicklingError(
                helped(
                    f"torch.load: a file's own code is never run, and {module}.{name} is none of "
                    "the types that files may ask for",
                    given=f"weights_only=False, and a file that asks for {module}.{name}",
                    expected="tensors, plain values, NumPy arrays, and modules and optimizers "
                    "whose classes the program has defined or imported",
                    fix=f"torch.serialization.add_safe_globals([{name}]), or save a state_dict()",
                )
            )
        return pickle.UnpicklingError(
            helped(
                "Weights only load failed. This file can still be loaded, to do so you have two "
                "options, do those steps only if you trust the source of the checkpoint.",
                given=f"the file asks for {module}.{name}",
                expected="tensors, parameters, numbers, text, lists, tuples, dicts and sets",
                fix="save the state_dict() of a module instead of the module; weights_only=False "
                "makes modules of classes that the program has",
            )
        )

    def persistent_load(self, pid: Any) -> Any:
        """A storage by its key."""
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise pickle.UnpicklingError(f"unknown persistent id {pid!r}")
        _, kind, key, _, count = pid
        if not isinstance(kind, _StorageType):
            raise pickle.UnpicklingError(f"unknown type of storage {kind!r}")
        return self._storage(kind.element, str(key), int(count))


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what torch.save (or `save`) wrote: tensors, state dicts and plain Python objects.

    f              a path, or a readable, seekable object
    weights_only   False: NumPy arrays, and modules and optimizers of classes that the program has,
                   are made, too; a file's own code is never run
    Raises   FileNotFoundError; RuntimeError: not a whole archive; pickle.UnpicklingError: the file
             asks for a type that is not on the list.
    """
    is_name = not (callable(map_location) or isinstance(map_location, dict))
    if map_location is not None and is_name:
        creation.chosen_device(map_location)
    plain = safe_types.weights_only_now(weights_only)
    if hasattr(f, "read"):
        return _load_archive(f, plain)
    if not isinstance(f, (str, os.PathLike)):
        raise AttributeError(
            helped(
                f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead.",
                given=f"a {type(f).__name__}",
                expected="a path, or an open file with read and seek",
            )
        )
    with open(f, "rb") as file:
        return _load_archive(file, plain)


def _load_archive(file: Any, weights_only: bool) -> Any:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise RuntimeError(
            helped(
                "PytorchStreamReader failed reading zip archive: failed finding central directory",
                given=str(error),
                expected="a whole file written by torch.save in its zip format",
            )
        ) from None
    with archive:
        names = archive.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl") or name == "data.pkl"]
        if not pickles:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        prefix = pickles[0].removesuffix("data.pkl")
        storages: dict[str, Any] = {}

        def storage(element: Any, key: str, count: int) -> Any:
            if key not in storages:
                raw = _read(archive, f"{prefix}data/{key}")
                if len(raw) < count * element.itemsize:
                    raise RuntimeError(
                        f"PytorchStreamReader failed reading file data/{key}: file read failed"
                    )
                flat = creation.from_bytes(raw, (len(raw),), dtypes.uint8)
                storages[key] = flat._storage
            return element, storages[key]

        unpickler = _Unpickler(io.BytesIO(_read(archive, pickles[0])), storage, weights_only)
        try:
            return unpickler.load()
        except (EOFError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise pickle.UnpicklingError(f"the file's pickle is damaged: {error}") from None


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError:
        raise RuntimeError(
            f"PytorchStreamReader failed locating file {name.partition('/')[2]}: file not found"
        ) from None
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise RuntimeError(
            f"PytorchStreamReader failed reading file {name.partition('/')[2]}: {error}"
        ) from None
