"""Types and indented text as torch's messages and reprs show them.

Keeps     torch's names of types.
Touches   tensor.
Not here  the messages themselves."""

from __future__ import annotations

from typing import Any

from flambeau.tensor import Tensor

_WORDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def tensor_type(element: Any) -> str:
    """A dtype as the name of torch's old tensor class.

    >>> from flambeau.base import dtypes
    >>> tensor_type(dtypes.int64)
    'torch.LongTensor'
    """
    return f"torch.{_WORDS[element.name]}Tensor"


def type_name(value: Any) -> str:
    """A value's type as torch.typename has it."""
    kind = type(value)
    if kind is Tensor:
        return tensor_type(value.dtype)
    if isinstance(value, Tensor):
        return f"torch.nn.parameter.{kind.__name__}"
    if kind.__module__ in ("builtins", "__builtin__"):
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def indented(text: str) -> str:
    """Text with every line but the first moved in by two spaces."""
    return text.replace("\n", "\n  ")
