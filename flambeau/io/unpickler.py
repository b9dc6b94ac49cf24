"""The restricted unpickler: what a file may have made, and how PyTorch's tensors come back.

Keeps     no code of a file's is ever run: only the types and functions named here are made.
Touches   tensor, pickle's opcodes through a restricted unpickler; safe_types.py.
Not here  the formats of files (archive.py, legacy.py), which types programs add (safe_types.py).
Source    PyTorch's serialization format, version 3."""

from __future__ import annotations

import collections
import pickle
import pickletools
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base import layout as layouts
from flambeau.base.devices import META, device
from flambeau.base.errors import helped
from flambeau.engine.view import UNPLACED
from flambeau.io import safe_types
from flambeau.io.storage_types import DTYPES
from flambeau.nn.parameter import Buffer, Parameter
from flambeau.tensor import Size, Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.public import formats
from flambeau.tensor.public.typed.storages import TypedStorage
from flambeau.tensor.tensor import new_tensor, result_maker


class _StorageType:
    """A storage class of PyTorch's, by its dtype."""

    def __init__(self, element: Any) -> None:
        self.element = element


def _over(
    storage: TypedStorage, element: dtypes.dtype, offset: int, size: Any, stride: Any,
    requires_grad: bool, is_conjugate: bool,
) -> Tensor:  # fmt: skip
    """A view of a storage, whose bytes need not have been read yet."""
    made = storage.untyped()._storage
    given = layouts.layout(tuple(size), tuple(stride), element, storage.device)
    needed = (offset + given.span) * element.itemsize
    if given.n_elements and (given.low < 0 or offset < 0 or needed > made.n_bytes):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
            f"itemsize {element.itemsize} requiring a storage size of {needed} are out of bounds "
            f"for storage of size {made.n_bytes}"
        )
    tensor = new_tensor(made, given.conjugated() if is_conjugate else given)
    if offset:
        tensor._offset = offset
        tensor._place = UNPLACED
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_meta_tensor(
    element: dtypes.dtype, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    """A tensor without data."""
    given = layouts.layout(tuple(size), tuple(stride), element, META)
    return creation.empty_layout(given, requires_grad)


def _rebuild_from_type(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """A tensor with attributes, which is how buffers are written."""
    made = function(*arguments)
    if isinstance(state, dict) and state.get("_is_buffer"):
        return Buffer(made, persistent=bool(state.get("persistent", True)))
    return made


def _layout_named(name: str) -> Any:
    """A layout by its name with torch before it."""
    found = formats.LAYOUTS.get(name.removeprefix("torch."))
    if found is None:
        raise pickle.UnpicklingError(f"unknown layout {name!r}")
    return found


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
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _rebuild_meta_tensor,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from_type,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter_with_state,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch", "Tensor"): Tensor,
    ("torch.serialization", "_get_layout"): _layout_named,
    **{("torch", name): each for name, each in formats.ORDERS.items()},
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
    ("fractions", "Fraction"), ("builtins", "range"), ("builtins", "Ellipsis"),
}  # fmt: skip


def _numpy_array(kind: Any, shape: Any, code: Any) -> Any:
    """An array of numpy's to be filled: what numpy's own function makes, for its own class only."""
    import numpy

    if kind is not numpy.ndarray:
        raise pickle.UnpicklingError(f"an array of the class {kind!r}")
    return numpy.empty(0, "V1") if shape == (0,) else numpy.empty(shape, "V1")


_METHODS: Final = {
    "_rebuild_tensor": "_tensor", "_rebuild_tensor_v2": "_tensor",
    "_rebuild_tensor_v3": "_tensor_of_bytes", "_rebuild_sparse_tensor": "_sparse_tensor",
}  # fmt: skip


class Unpickler(pickle.Unpickler):
    """Makes what is on the list and nothing else."""

    def __init__(
        self, file: Any, storage: Callable[[Any, str, str, int], Any], weights_only: bool,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(file, **{"encoding": "utf-8", **options})
        self._storage = storage
        self._weights_only = weights_only
        self._later: list[Callable[[], Any]] = []
        self._storage_error: Exception | None = None

    def find_class(self, module: str, name: str) -> Any:
        """The object a name stands for, if it is on the list."""
        if module == "__builtin__":  # Python 2's names, which protocol 2 writes
            module, name = "builtins", "range" if name == "xrange" else name
        found = _ALLOWED.get((module, name))
        if found is not None:
            return found
        method = _METHODS.get(name) if module == "torch._utils" else None
        if method is not None:
            return getattr(self, method)
        if (module, name) in _NUMPY:
            return getattr(import_module(module.replace("numpy.core", "numpy._core")), name)
        found = safe_types.added(module, name)
        if found is None and not self._weights_only:
            found = self._whole_object(module, name)
        if found is None:
            raise self._refused(module, name)
        return found

    def finish(self) -> None:
        """What has to wait for the bytes of the storages."""
        for each in self._later:
            each()

    def _tensor(
        self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False,
        hooks: Any = None, metadata: Any = None,
    ) -> Tensor:  # fmt: skip
        arguments = (storage, offset, size, stride, requires_grad, hooks)
        return self._tensor_of_bytes(*arguments, storage.dtype, metadata)

    def _tensor_of_bytes(
        self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any,
        element: Any, metadata: Any = None,
    ) -> Tensor:  # fmt: skip
        """A tensor over a storage that has no type of its own."""
        if not isinstance(element, dtypes.dtype):
            raise pickle.UnpicklingError(f"{element!r} is no dtype")
        bits = metadata or {}
        arguments = (storage, element, offset, size, stride)
        if not bits.get("neg"):
            return _over(*arguments, requires_grad, bool(bits.get("conj")))
        seen = _over(*arguments, False, bool(bits.get("conj")))
        made = t.zeros_like(seen)
        self._later.append(lambda: made.data.copy_(t.neg(seen)))
        return made.requires_grad_(requires_grad)  # type: ignore[no-any-return]

    def _sparse_tensor(self, layout: Any, data: Any) -> Any:
        """A tensor of coordinates or rows, and values; coordinates outside of it are refused."""
        from flambeau.sparse.coo import SparseTensor
        from flambeau.sparse.csr import SparseRows
        from flambeau.sparse.making import sparse_coo_tensor

        if layout is formats.sparse_csr:
            rows = SparseRows(*data)

            def look() -> None:
                coordinates = rows.to_sparse_coo()
                sparse_coo_tensor(coordinates._indices(), coordinates._values(), rows.shape)

            self._later.append(look)
            return rows
        if layout is not formats.sparse_coo:
            raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
        indices, values, shape = data[:3]
        self._later.append(lambda: sparse_coo_tensor(indices, values, shape))
        return SparseTensor(indices, values, shape, bool(data[3]) if len(data) > 3 else False)

    def _whole_object(self, module: str, name: str) -> Any:
        """What weights_only=False may make besides: layers, models, arrays, plain values."""
        if name == "_reconstruct" and module.startswith("numpy"):
            return _numpy_array
        if (module, name) == ("numpy", "ndarray"):
            import numpy

            return numpy.ndarray
        if (module, name) in _PLAIN:
            return getattr(import_module(module), name)
        if module == "torch.return_types":
            return result_maker(name)
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
        """A storage by its key, or the class that a whole module of an old file names."""
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]
        if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
            raise self.damaged(f"unknown persistent id {pid!r}")
        _, kind, key, location, count = pid[:5]
        if not isinstance(kind, _StorageType):
            raise self.damaged(f"unknown type of storage {kind!r}")
        if len(pid) == 6 and pid[5] is not None:
            raise self.damaged("a storage that is part of another, as before version 0.2")
        if not isinstance(count, int) or not isinstance(location, str):
            raise self.damaged(f"a storage of {count!r} elements on {location!r}")
        try:
            return self._storage(kind.element, str(key), location, count)
        except Exception as error:  # of the archive's or of map_location's, not of the pickle's
            self._storage_error = error
            raise

    def damaged(self, why: object) -> pickle.UnpicklingError:
        """The error for a pickle that cannot be what torch.save wrote."""
        if not self._weights_only:
            return pickle.UnpicklingError(f"the file's pickle is damaged: {why}")
        return pickle.UnpicklingError(
            helped(
                "Weights only load failed. The file's pickle is damaged, or not one of torch.save",
                given=str(why),
                expected="a whole file written by torch.save",
            )
        )

    def whole(self) -> Any:
        """The object; every way in which a pickle can be damaged is one kind of error."""
        try:
            return self.load()
        except pickle.UnpicklingError as error:
            if not self._weights_only or str(error).startswith("Weights only load failed"):
                raise
            raise self.damaged(error) from None
        except (IndexError, AttributeError, KeyError, TypeError, ValueError) as error:
            if error is self._storage_error:
                raise
            raise self.damaged(error) from None


def unmade_names(data: bytes) -> list[str]:
    """What a pickle names that is not made with weights_only=True; nothing is unpickled."""
    texts: list[str] = []
    found: dict[str, None] = {}
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
        elif opcode.name == "STACK_GLOBAL" and len(texts) > 1:
            module, name = texts[-2:]
        else:
            if isinstance(argument, str):
                texts.append(argument)
            continue
        module = "builtins" if module == "__builtin__" else module
        is_made = (
            (module, name) in _ALLOWED
            or (module, name) in _NUMPY
            or (module == "torch._utils" and name in _METHODS)
            or safe_types.added(module, name) is not None
        )
        if not is_made:
            found[f"{module}.{name}"] = None
    return list(found)
