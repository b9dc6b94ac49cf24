"""Questions about tensors and dtypes: their answers are Python values, not tensors.

Keeps     a question that needs values runs what is pending on them and nothing else.
Touches   base.promotion, base.shapes, functions.
Not here  operators that return tensors (ops), settings (settings.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import devices, dtypes, promotion, shapes
from flambeau.base.devices import CPU, Device
from flambeau.base.dtypes import dtype
from flambeau.base.promotion import SCALAR_TYPE_NAMES, SCALARS
from flambeau.gradients import modes
from flambeau.tensor import creation, functions
from flambeau.tensor.tensor import Size, Tensor

_RESOLUTIONS: Final = {
    **dict.fromkeys(dtypes.EIGHT_BITS, 1.0),
    dtypes.float16: 1e-3, dtypes.bfloat16: 1e-2, dtypes.float32: 1e-6, dtypes.float64: 1e-15
}  # fmt: skip


class finfo:  # noqa: N801 - torch's name
    """Limits of a floating dtype, of the default one if none is given.

    >>> finfo(dtypes.float16).max, finfo(dtypes.float32).eps
    (65504.0, 1.1920928955078125e-07)
    """

    def __init__(self, type: dtype | None = None) -> None:
        element = dtypes.or_python(type) if type else promotion.default_dtype()
        if not isinstance(element, dtype) or element.category < 2:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        element = element.to_real()
        bits, largest, smallest = dtypes.FLOAT_FACTS[element]
        self.bits: int = element.n_bits
        self.eps: float = 2.0**-bits
        self.max: float = largest
        self.min: float = -largest
        self.tiny: float = smallest
        self.smallest_normal: float = smallest
        self.resolution: float = _RESOLUTIONS[element]
        self.dtype: str = element.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:  # noqa: N801 - torch's name
    """Limits of an integer dtype."""

    def __init__(self, type: dtype) -> None:
        type = dtypes.or_python(type)
        if not isinstance(type, dtype) or type.category > 1:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        if type.category == 0:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits: int = type.n_bits
        self.min: int = -(1 << (type.n_bits - 1)) if type.is_signed else 0
        self.max: int = (1 << (type.n_bits - (1 if type.is_signed else 0))) - 1
        self.dtype: str = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


finfo.__module__ = iinfo.__module__ = "torch"


def _tensor(value: Any, name: str, argument: str = "input", position: int = 1) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not "
            f"{type(value).__name__}"
        )
    return value


# Dtypes --------------------------------------------------------------------------------


def get_default_dtype() -> dtype:
    """Dtype of Python floats."""
    return promotion.default_dtype()


def set_default_dtype(d: dtype) -> None:
    """Change the dtype of Python floats. Raises TypeError for a dtype that is not floating."""
    promotion.set_default_dtype(d)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Smallest dtype that holds both."""
    type1, type2 = dtypes.or_python(type1), dtypes.or_python(type2)
    for position, each in enumerate((type1, type2), 1):
        if not isinstance(each, dtype):
            raise TypeError(
                f"promote_types(): argument 'type{position}' (position {position}) must be "
                f"torch.dtype, not {type(each).__name__}"
            )
    return promotion.promote_types(type1, type2)


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """Dtype of an operation on two tensors or numbers."""
    operands = []
    for position, each in enumerate((tensor1, tensor2), 1):
        if isinstance(each, Tensor):
            operands.append(each._layout)
        elif type(each) in SCALARS:
            operands.append(SCALARS[type(each)])  # type: ignore[arg-type]
        else:
            raise TypeError(
                f"result_type(): argument 'tensor{position}' (position {position}) must be Tensor "
                f"or Number, not {type(each).__name__}"
            )
    return promotion.result_type(operands)


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a dtype may be converted to another without losing its kind."""
    return promotion.can_cast(from_, to)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating."""
    return _tensor(input, "is_floating_point")._layout.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return _tensor(input, "is_complex")._layout.dtype.is_complex


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return _tensor(input, "is_signed")._layout.dtype.is_signed


def typename(obj: Any) -> str:
    """A tensor's old type name, or module and name of anything else's class."""
    if isinstance(obj, Tensor):
        return type_name(obj)
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    if isinstance(obj, dtype):
        return "torch.dtype"
    return f"{module}.{kind.__qualname__}" if module not in ("", "builtins") else kind.__qualname__


def type_name(tensor: Tensor) -> str:
    """torch.FloatTensor and the like."""
    return f"torch.{SCALAR_TYPE_NAMES[tensor._layout.dtype.name]}Tensor"


# Tensors -------------------------------------------------------------------------------


def is_tensor(obj: Any) -> bool:
    """Whether the object is a tensor."""
    return isinstance(obj, Tensor) or getattr(obj, "is_sparse", None) is True


def is_storage(obj: Any) -> bool:
    """Whether the object is a storage."""
    from flambeau.tensor.public.typed import storages

    return isinstance(obj, (storages.TypedStorage, storages.UntypedStorage))


def numel(input: Tensor) -> int:
    """Number of elements."""
    return _tensor(input, "numel")._layout.n_elements


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0."""
    return bool(_tensor(input, "is_nonzero"))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return input._layout.shape == other._layout.shape


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return modes.is_inference(_tensor(input, "is_inference"))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements (NaN equals nothing)."""
    _tensor(input, "equal")
    _tensor(other, "equal", "other", 2)
    if input._layout.shape != other._layout.shape:
        return False
    return bool(functions.eq(input.detach(), other.detach()).all())


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:  # fmt: skip
    """Whether all elements are close: |input - other| <= atol + rtol * |other|."""
    _tensor(input, "allclose")
    _tensor(other, "allclose", "other", 2)
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {bound}")
    close = functions.isclose(
        input.detach(), other.detach(), rtol=rtol, atol=atol, equal_nan=equal_nan
    )
    return bool(close.all())


# Shapes --------------------------------------------------------------------------------


def broadcast_shapes(*given: Any) -> Size:
    """The shape that shapes broadcast to.

    >>> broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    found: list[int] = []
    for index, each in enumerate(given):
        shape = (each,) if isinstance(each, int) else tuple(each)
        for size in shape:
            if size < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({size}): ({size})"
                )
        found = [1] * (len(shape) - len(found)) + found
        for back in range(1, len(shape) + 1):
            size = shape[-back]
            if size == 1 or size == found[-back]:
                continue
            if found[-back] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at -{back}! Mismatching "
                    f"argument at index {index} had {shape}; but expected shape should be "
                    f"broadcastable to {found}"
                )
            found[-back] = size
    return Size(found)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape: views."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shape = shapes.broadcast_shapes(*[each._layout.shape for each in tensors])
    return tuple([functions.expand(each, shape) for each in tensors])


# Devices -------------------------------------------------------------------------------


def get_default_device() -> Device:
    """The device of tensors made without one."""
    return devices.DEFAULT[0]


def set_default_device(device: Any) -> None:
    """Choose the device of tensors made without one; None: the CPU."""
    devices.DEFAULT[0] = CPU if device is None else creation.chosen_device(device)
