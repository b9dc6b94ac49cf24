"""Tensor's members that no operator has: sizes and strides, conversions, data, what it is.

Keeps     they answer from the layout, and record nothing where nothing changes.
Touches   functions, conversion, gradients (members, saved).
Not here  how members come to Tensor, and methods made from operators (methods.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from mmap import mmap
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import asked_for, dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout
from flambeau.base.shapes import infer_size
from flambeau.engine.view import UNPLACED
from flambeau.gradients import members, saved
from flambeau.tensor import conversion, functions, number_rules
from flambeau.tensor.arguments import refused
from flambeau.tensor.tensor import Size, Tensor

_OWN: Any = Tensor  # whatever a derived class says


_size: Final = tuple.__new__  # a layout's sizes are ints: no need to look at them


def _shape(self: Tensor) -> Size:
    return _size(Size, self._layout.shape)


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dim."""
    if dim is None:
        return _size(Size, self._layout.shape)
    shape = self._layout.shape
    try:
        return shape[dim]
    except (IndexError, TypeError):
        raise _dim_error(number_rules.integer(dim, "size", "dim", 1), len(shape)) from None


def _dim_error(dim: int, ndim: int) -> IndexError:
    if ndim == 0:
        return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return IndexError(
        f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
    )


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Strides in elements, or one of them."""
    strides = self._layout.strides
    if dim is None:
        return strides
    try:
        return strides[dim]
    except (IndexError, TypeError):
        raise _dim_error(number_rules.integer(dim, "stride", "dim", 1), len(strides)) from None


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    if memory_format is not None and "channels_last" in str(memory_format):
        return _arranging("is_channels_last")(self, memory_format)
    return self._layout.is_contiguous


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if it is row-major, or in the order asked for, else a copy that is."""
    if memory_format is not None:
        made: Tensor = _arranging("arranged")(self, memory_format, "contiguous")
        return made
    if self._layout.is_contiguous:
        return self
    return functions.contiguous_copy(self)


# Entries of a layout's memo, then it is forgotten.
_MAX_MEMO: Final = 4096


def reshape(self: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The elements under another shape: a view where strides allow, else a copy."""
    wanted = shape if shape is not None else sizes
    wanted = tuple(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else wanted)
    if self._layout.is_contiguous or not _must_copy(self._layout, wanted):
        return functions.view(self, wanted)
    return functions._unsafe_view(functions.contiguous_copy(self), wanted)


def _must_copy(given: Layout, shape: tuple[Any, ...]) -> bool:
    """Whether no strides show the elements in that shape; what is no shape is left to `view`."""
    key = ("reshape", shape)
    try:
        found = given.memo.get(key)
        if found is None:
            from flambeau.base.view_rules import view_strides

            strides = view_strides(given, infer_size(shape, given.n_elements))
            if len(given.memo) > _MAX_MEMO:
                given.memo.clear()
            found = given.memo[key] = strides is None
    except (TypeError, RuntimeError):
        return False
    return found is True


def data_ptr(self: Tensor) -> int:
    """Address of the first element; runs what is pending on it."""
    return conversion.address_of(self, "data_ptr()") if self._layout.n_elements else 0


def to(self: Tensor, *arguments: Any, **named: Any) -> Tensor:
    """The tensor in another dtype or on another device; itself where nothing changes."""
    from flambeau.base.devices import CPU, META, Device
    from flambeau.tensor import creation

    element: Any = named.get("dtype")
    where: Any = named.get("device")
    copy = named.get("copy", False)
    flags: list[bool] = []  # non_blocking, copy
    if named.keys() - {"dtype", "device", "copy", "non_blocking", "memory_format", "tensor"}:
        raise refused("to", (self, *arguments), named, is_method=True)
    for argument in (*arguments, named.get("tensor")):
        if isinstance(argument, dtype) or argument.__class__ is type:
            element = argument
        elif isinstance(argument, Tensor):
            element, where = argument._layout.dtype, argument._layout.device
        elif isinstance(argument, (str, Device)):
            where = argument
        elif isinstance(argument, bool):
            flags.append(argument)
        elif argument is not None:
            raise refused("to", (self, *arguments), named, is_method=True)
    if element is not None:
        element = asked_for(element, "to")
    copy = copy or flags[1:2] == [True]
    target = creation.chosen_device(where) if where is not None else self._layout.device
    result = self
    if target is META and self._layout.device is CPU:
        given = self._layout
        result = creation.empty_layout(
            creation.make_layout(given.shape, given.strides, given.dtype, META)
        )
    elif target is CPU and self._layout.device is META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if element is not None and element is not self._layout.dtype:
        if self._layout.dtype.is_complex:
            _complex("warn_of_lost_parts")(element)
        result = functions.convert(result, element)
    if named.get("memory_format") is not None:
        asking = "to" if result is self else ""
        result = _arranging("arranged")(result, named["memory_format"], asking)
    return functions.clone(result) if copy and result is self else result


def _arranging(name: str) -> Any:
    """What is done about memory formats, imported when one is named."""
    return getattr(import_module("flambeau.tensor.public.members"), name)


def _converting(element: dtype) -> Callable[..., Tensor]:
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return to(self, element, memory_format=memory_format)
        if self._layout.dtype is element:
            return self
        if self._layout.dtype.is_complex:
            _complex("warn_of_lost_parts")(element)
        return functions.convert(self, element)

    convert.__doc__ = f"The tensor as {element}."
    return convert


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in another one's dtype."""
    if not isinstance(other, Tensor):
        raise refused("type_as", (self, other), {}, is_method=True)
    return to(self, other._layout.dtype)


def _bool(self: Tensor) -> bool:
    count = self._layout.n_elements
    if count == 1:
        return bool(_OWN.item(self))
    if count == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError(
        helped(
            "Boolean value of Tensor with more than one value is ambiguous",
            given=f"shape {tuple(self._layout.shape)}",
            fix="use .any() or .all()",
        )
    )


def _index(self: Tensor) -> int:
    layout = self._layout
    if layout.dtype.category > 1 or layout.n_elements != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if layout.dtype is dtypes.bool_ and layout.shape:
        # torch gives 0 or 1, and NumPy then takes a mask of one element for a place.
        raise TypeError(
            helped(
                "only integer tensors of a single element can be converted to an index",
                given=f"a mask of shape {tuple(layout.shape)}",
                fix="mask.item(), where a number is meant",
            )
        )
    return int(_OWN.item(self))


def _len(self: Tensor) -> int:
    shape = self._layout.shape
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return shape[0]


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._layout.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(functions.unbind(self, 0))


def _array(self: Tensor, wanted: Any = None, copy: Any = None) -> Any:
    array = _OWN.numpy(self)
    if wanted is not None and array.dtype != wanted:
        return array.astype(wanted)
    return array.copy() if copy else array


def get_data(self: Tensor) -> Tensor:
    """The tensor without history and with a version counter of its own."""
    from flambeau.tensor.tensor import new_tensor

    if self._layout.dtype.category <= 1:
        from flambeau.tensor import index_bounds

        index_bounds.UNTRACKED.add(self._storage)  # its writes are counted elsewhere
    made = new_tensor(self._storage, self._layout)
    made._offset = self._offset
    made._versions = saved.VersionCounter()
    return made


def set_data(self: Tensor, value: Tensor) -> None:
    """Let the tensor look at another one's memory; its history stays."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if members.requires_grad(self) and value._layout.dtype.category < 2:
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    self._storage = value._storage
    self._layout = value._layout
    self._offset = value._offset
    self._place = UNPLACED


def _T(self: Tensor) -> Tensor:
    if self._layout.ndim != 2:
        _complex("warn_of_dims")(self._layout.ndim)
    backwards = tuple(reversed(range(self._layout.ndim)))
    return functions.permute(self, backwards)


def _mT(self: Tensor) -> Tensor:
    if not self._layout.ndim:
        return self
    if self._layout.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{self._layout.ndim}-D tensor."
        )
    return functions.transpose(self, -2, -1)


def _memory_layout(self: Tensor) -> Any:
    from flambeau.tensor.public import formats

    return formats.strided


def _complex(name: str) -> Any:
    """What few programs have use for is imported when it is."""
    return getattr(import_module("flambeau.tensor.public.complex_members"), name)


_CONVERSIONS: Final[dict[str, dtype]] = {
    "bool": dtypes.bool_, "byte": dtypes.uint8, "char": dtypes.int8, "short": dtypes.int16,
    "int": dtypes.int32, "long": dtypes.int64, "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16, "float": dtypes.float32, "double": dtypes.float64,
    "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    **{name: _converting(element) for name, element in _CONVERSIONS.items()},
    **{each.__name__: each for each in (
        size, stride, is_contiguous, contiguous, data_ptr, to, type_as, conversion.tolist,
    )},
    "__bool__": _bool, "__index__": _index, "__len__": _len, "__iter__": _iter,
    "__array__": _array,
    "__float__": lambda self: float(conversion.only_real(self, "double")),
    "__int__": lambda self: int(conversion.only_real(self, "int64_t")),
    "__complex__": lambda self: complex(conversion.only_element(self)),
    "dim": lambda self: self._layout.ndim,
    "ndimension": lambda self: self._layout.ndim,
    "numel": lambda self: self._layout.n_elements,
    "nelement": lambda self: self._layout.n_elements,
    "element_size": lambda self: self._layout.itemsize,
    "storage_offset": lambda self: self._offset,
    "is_floating_point": lambda self: self._layout.dtype.is_floating_point,
    "is_complex": lambda self: self._layout.dtype.is_complex,
    "is_signed": lambda self: self._layout.dtype.is_signed,
    "cpu": lambda self, memory_format=None: to(self, "cpu", memory_format=memory_format),
    "cuda": lambda self, *a, **n: to(self, "cuda"),
    "get_device": lambda self: -1,
    "is_pinned": lambda self, device=None: False,
    "is_conj": lambda self: self._layout.is_conj and self._layout.dtype.is_complex,
    "is_neg": lambda self: self._layout.is_conj and not self._layout.dtype.is_complex,
    "is_shared": lambda self: type(getattr(self._storage.external, "owner", None)) is mmap,
    "is_coalesced": lambda self: False,
}  # fmt: skip


def _fixed(name: str) -> Callable[[Tensor, Any], None]:
    def refuse(self: Tensor, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return refuse


_PROPERTIES: Final[dict[str, property]] = {
    "shape": property(_shape), "dtype": property(lambda self: self._layout.dtype),
    "device": property(lambda self: self._layout.device),
    "ndim": property(lambda self: self._layout.ndim),
    "itemsize": property(lambda self: self._layout.itemsize),
    "nbytes": property(lambda self: self._layout.n_bytes),
    "T": property(_T), "mT": property(_mT), "H": property(lambda self: _complex("H")(self)),
    "mH": property(lambda self: _complex("mH")(self)),
    "data": property(get_data, set_data),
    "requires_grad": property(members.requires_grad, members.assign_requires_grad),
    "grad": property(members.get_grad, members.set_grad, lambda t: members.set_grad(t, None)),
    "grad_fn": property(members.grad_fn), "is_leaf": property(members.is_leaf),
    "output_nr": property(members.output_nr),
    "retains_grad": property(members.retains_grad), "_version": property(saved.version_of),
    "_cdata": property(id), "is_cuda": property(lambda self: False),
    "is_sparse": property(lambda self: False), "is_quantized": property(lambda self: False),
    "is_meta": property(lambda self: self._layout.device.type == "meta"),
    "is_mps": property(lambda self: False), "is_xpu": property(lambda self: False),
    "is_nested": property(lambda self: False), "is_mkldnn": property(lambda self: False),
    "names": property(lambda self: (None,) * self._layout.ndim),
    "layout": property(_memory_layout), "real": property(
        lambda self: _complex("real")(self), lambda self, value: _complex("set_real")(self, value)
    ),
    "imag": property(
        lambda self: _complex("imag")(self), lambda self, value: _complex("set_imag")(self, value)
    ),
    "is_cpu": property(lambda self: self._layout.device.type == "cpu"),
    "is_sparse_csr": property(lambda self: False), "is_xla": property(lambda self: False),
    "is_ipu": property(lambda self: False), "is_mtia": property(lambda self: False),
}  # fmt: skip
PROPERTIES: dict[str, property] = {
    name: made if made.fset else property(made.fget, _fixed(name))
    for name, made in _PROPERTIES.items()
}
