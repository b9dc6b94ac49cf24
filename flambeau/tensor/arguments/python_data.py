"""Data that users hand in: nested sequences of numbers, arrays and tensors, as shape, bytes, dtype.

Keeps     the dtype is what torch infers: arrays, their scalars and tensors have one of their own.
Touches   base, conversion (numbers of tensors); NumPy only where the user brings it.
Not here  tensors made of it (creation.py)."""

from __future__ import annotations

import math
import struct
import sys
from array import array
from typing import Any, Final

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.tensor.tensor import Tensor


def packed(values: list[Any], element: dtype) -> bytes:
    """Python numbers as packed bytes of a dtype, rounded or wrapped as torch does."""
    if element is dtypes.bool_:
        return bytes([1 if value else 0 for value in values])
    if element.category == 1:
        try:
            return array(element.format, values).tobytes()
        except (TypeError, OverflowError):
            return _packed_integers(values, element)
    if element.is_complex:
        letter = "f" if element is dtypes.complex64 else "d"
        parts = [part for value in values for part in (complex(value).real, complex(value).imag)]
        return array(letter, parts).tobytes()
    if element in dtypes.EIGHT_BITS:
        from flambeau.codegen.float8 import code_of

        return bytes([code_of(float(value), element) for value in values])
    if element is dtypes.float64:
        return array("d", values).tobytes()
    if element is dtypes.float32:
        return array("f", values).tobytes()
    return _packed_halves(values, element)


def _packed_integers(values: list[Any], element: dtype) -> bytes:
    bits = element.n_bits
    # Unsigned dtypes take negative numbers, which wrap.
    low = -(1 << (bits - 1)) if element.is_signed else 1 - (1 << bits)
    high = (1 << (bits - 1 if element.is_signed else bits)) - 1
    made = bytearray()
    for value in values:
        is_finite = not isinstance(value, float) or math.isfinite(value)
        number = int(value) if is_finite else high + 1
        if isinstance(value, int) and element is dtypes.uint64 and number >= 2**64:
            raise OverflowError("int too big to convert")
        end = 2**64 if element is dtypes.uint64 else 2**63
        if isinstance(value, int) and not -(2**63) <= number < end:
            raise ValueError("Overflow when unpacking long long")
        if not low <= number <= high or (value < 0 and number != value and not element.is_signed):
            raise RuntimeError(
                helped(
                    f"value cannot be converted to type {element.name} without overflow",
                    given=f"{value} for {element}",
                )
            )
        made += (number & ((1 << bits) - 1)).to_bytes(element.itemsize, "little")
    return bytes(made)


def _packed_halves(values: list[Any], element: dtype) -> bytes:
    made = bytearray()
    for value in values:
        single = struct.unpack("=f", array("f", [value]).tobytes())[0]
        if element is dtypes.float16:
            try:
                made += struct.pack("=e", single)
            except OverflowError:
                made += struct.pack("=e", float("inf") if single > 0 else float("-inf"))
            continue
        (bits,) = struct.unpack("=I", struct.pack("=f", single))
        if single != single:
            made += struct.pack("=H", 0x7FC0 | (bits >> 16 & 0x8000))
        else:
            made += struct.pack("=H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
    return bytes(made)


def is_array(data: Any) -> bool:
    """Whether it is one of NumPy's arrays or scalars, or says that it can be read as one."""
    return hasattr(data, "__array_interface__") and not isinstance(data, Tensor)


def is_numpy_scalar(data: Any) -> bool:
    """Whether it is one of NumPy's numbers, which have no memory to share."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.generic)


def read(data: Any) -> tuple[tuple[int, ...], list[Any], set[Any]]:
    """Shape and numbers of nested sequences, and what kinds of numbers they are: Python's types,
    NumPy's dtypes, ours for tensors."""
    kind = type(data)
    if kind is float or kind is int or kind is bool:
        return (), [data], {kind}
    if kind is list:
        found = _plain_rows(data)
        if found is not None:
            return found
    shape = _shape_of(data)
    values: list[Any] = []
    kinds: set[Any] = set()
    _flatten(data, shape, 0, values, kinds)
    return shape, values, kinds


def _plain_rows(data: list[Any]) -> tuple[tuple[int, ...], list[Any], set[Any]] | None:
    """What `read` says of a list of Python's numbers, or of equally long lists of such; else
    None."""
    kinds = set(map(type, data))
    if kinds <= _PLAIN:
        return (len(data),), data, kinds
    if kinds != {list}:
        return None
    length = len(data[0])
    values: list[Any] = []
    for row in data:
        if len(row) != length:
            return None
        values += row
    kinds = set(map(type, values))
    return ((len(data), length), values, kinds) if kinds <= _PLAIN else None


def _shape_of(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(data, (list, tuple)) or _is_sequence(data):
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
        if isinstance(data, Tensor):  # inside a sequence it is a number
            break
        if is_array(data):
            shape.extend(data.shape)
            break
    return tuple(shape)


def _is_sequence(data: Any) -> bool:
    return isinstance(data, range) or (
        hasattr(data, "__getitem__")
        and hasattr(data, "__len__")
        and not isinstance(data, (str, bytes, dict, Tensor))
        and getattr(data, "ndim", 1) > 0
    )


def _flatten(
    data: Any, shape: tuple[int, ...], dim: int, values: list[Any], kinds: set[Any]
) -> None:
    if isinstance(data, Tensor):
        from flambeau.tensor.conversion import only_element

        values.append(only_element(data))
        kinds.add(data._layout.dtype)
        return
    if is_array(data):
        found = data.tolist()
        if isinstance(found, list):
            _flatten(found, shape, dim, values, set())
        else:
            values.append(found)
        kinds.add(data.dtype)
        return
    if dim == len(shape):
        if isinstance(data, (list, tuple)):
            _refuse_deeper(data, values)
        if shape and not values and isinstance(data, str):  # a sequence, too
            raise ValueError("too many dimensions 'str'")
        values.append(data)
        kinds.add(type(data))
        return
    if not (isinstance(data, (list, tuple)) or _is_sequence(data)):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if dim + 1 == len(shape) and data and type(data[0]) in _PLAIN:
        seen = set(map(type, data))
        if seen <= _PLAIN:
            values.extend(data)
            kinds |= seen
            return
    for each in data:
        _flatten(each, shape, dim + 1, values, kinds)


_PLAIN: Final = {int, float, bool}


def _refuse_deeper(data: Any, before: list[Any]) -> None:
    """torch's errors for a sequence where numbers stood before it."""
    kind = type(data).__name__
    if not before or isinstance(before[0], (list, tuple)):
        raise ValueError(f"too many dimensions '{kind}'")
    if isinstance(before[0], float):
        raise TypeError(f"must be real number, not {kind}")
    raise TypeError(f"'{kind}' object cannot be interpreted as an integer")


def dtype_of(kinds: set[Any]) -> dtype:
    """The dtype that kinds of numbers, as `read` says them, have together."""
    made: dtype | None = None
    for kind in kinds:
        own = _dtype_of_kind(kind)
        made = own if made is None else promotion.promote_types(made, own)
    return made or promotion.default_dtype()


def _dtype_of_kind(kind: Any) -> dtype:
    if isinstance(kind, dtype):
        return kind
    if not isinstance(kind, type):  # NumPy's
        try:
            return dtypes.by_name(kind.name)
        except KeyError:
            raise refusal(kind.type) from None
    for plain in (bool, int, float, complex):
        if issubclass(kind, plain):
            return promotion.scalar_dtype(plain)
    raise refusal(kind)


def refusal(kind: type) -> Exception:
    """torch's error for what is no number."""
    if issubclass(kind, str):
        return TypeError("new(): invalid data type 'str'")
    return RuntimeError(f"Could not infer dtype of {kind.__name__}")
