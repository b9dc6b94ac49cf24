"""torch.FloatTensor and its kin: the old types, which make tensors and recognise them.

Keeps     a type is not a class of tensors: isinstance asks for the dtype.
Touches   creation.
Not here  Tensor itself as a constructor (creation.legacy_tensor)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import dtype
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.tensor import creation, functions
from flambeau.tensor.arguments import named_type
from flambeau.tensor.tensor import Size, Tensor


class tensortype(type):  # noqa: N801 - torch's name
    """The class of the old types."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance._layout.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    def __call__(cls, *arguments: Any, size: Any = None, device: Any = None) -> Tensor:
        return legacy(cls.dtype, arguments if size is None else (Size(size),), device)

    @property
    def is_cuda(cls) -> bool:
        """Whether it makes tensors on a GPU."""
        return False


class _AbsentType(tensortype):
    """An old type of tensors on CUDA, which recognises none and makes none here."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"

    def __call__(cls, *arguments: Any, size: Any = None, device: Any = None) -> Tensor:
        raise cls.refusal()

    def refusal(cls) -> TypeError:
        """torch's error for the use of such a type."""
        return TypeError(
            f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."
        )

    @property
    def is_cuda(cls) -> bool:
        """Whether it makes tensors on a GPU."""
        return True


tensortype.__module__ = _AbsentType.__module__ = "torch"


def legacy(element: dtype, arguments: tuple[Any, ...], device: Any = None) -> Tensor:
    """Tensor of sizes, of a sequence's elements, or over another tensor of the same dtype."""
    if len(arguments) != 1 or is_size(arguments[0]):
        return creation.empty(*(arguments or (0,)), dtype=element, device=device)
    (data,) = arguments
    if isinstance(data, Tensor):
        if data._layout.dtype is not element:
            raise TypeError(
                f"expected a tensor of {element} (got {data._layout.dtype}); convert with "
                f".to({element})"
            )
        return over(data)
    if isinstance(data, Size):
        return creation.empty(*data, dtype=element, device=device)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {named_type(data)})")
    return creation.tensor(data, dtype=element, device=device)


def over(data: Tensor) -> Tensor:
    """A tensor over another one's memory, with its history."""
    return functions.alias(data)


def is_size(value: Any) -> bool:
    """Whether the old constructors take it for a size rather than for data."""
    if isinstance(value, (bool, Tensor)) or not hasattr(value, "__index__"):
        return False
    return isinstance(value, int) or getattr(value, "ndim", 1) == 0


def _made(element: dtype, kind: type[tensortype] = tensortype) -> tensortype:
    name = SCALAR_TYPE_NAMES[element.name] + "Tensor"
    return kind(name, (), {"dtype": element, "__module__": "torch"})


BY_DTYPE: dict[dtype, tensortype] = {each: _made(each) for each in dtypes.ALL}
ON_CUDA: dict[str, tensortype] = {
    made.__name__: made for made in (_made(each, _AbsentType) for each in dtypes.ALL)
}
BoolTensor = BY_DTYPE[dtypes.bool_]
ByteTensor = BY_DTYPE[dtypes.uint8]
CharTensor = BY_DTYPE[dtypes.int8]
ShortTensor = BY_DTYPE[dtypes.int16]
IntTensor = BY_DTYPE[dtypes.int32]
LongTensor = BY_DTYPE[dtypes.int64]
HalfTensor = BY_DTYPE[dtypes.float16]
BFloat16Tensor = BY_DTYPE[dtypes.bfloat16]
FloatTensor = BY_DTYPE[dtypes.float32]
DoubleTensor = BY_DTYPE[dtypes.float64]


def _on_cuda(kind: Any) -> _AbsentType | None:
    """The old type of CUDA that is given, or named."""
    if isinstance(kind, str):
        kind = ON_CUDA.get(kind.removeprefix("torch.cuda.")) if "cuda" in kind else None
    return kind if isinstance(kind, _AbsentType) else None


def dtype_of(kind: Any) -> dtype | None:
    """The dtype an old type, or its name, stands for; None for anything else."""
    if _on_cuda(kind) is not None:
        raise RuntimeError("Cannot initialize CUDA without ATen_cuda library.")
    if isinstance(kind, tensortype):
        return kind.dtype
    if isinstance(kind, str):
        for element, made in BY_DTYPE.items():
            if kind == f"torch.{made.__name__}":
                return element
    return None


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, by an old type."""
    absent = _on_cuda(t)
    if absent is not None:
        raise absent.refusal()
    found = dtype_of(t)
    if found is None:
        raise TypeError("invalid type object")
    promotion.set_default_dtype(found)


def new(self: Tensor, *arguments: Any) -> Tensor:
    """The old constructor as a method: sizes or data, in this tensor's dtype.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.int64).new([1, 2])
    tensor([1, 2])
    """
    element = self._layout.dtype
    if arguments and not isinstance(arguments[0], int) and type(arguments[0]).__name__ != "Size":
        return creation.tensor(arguments[0], dtype=element)
    return creation.empty(*(arguments or (0,)), dtype=element)
