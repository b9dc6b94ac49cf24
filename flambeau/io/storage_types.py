"""Names of PyTorch's storage classes in files, and the dtypes they stand for.

Keeps     one table for reading and writing.
Touches   base.dtypes.
Not here  the format (reading.py, writing.py)."""

from __future__ import annotations

from typing import Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype

STORAGE_NAMES: Final[dict[dtype, str]] = {
    dtypes.float64: "DoubleStorage", dtypes.float32: "FloatStorage",
    dtypes.float16: "HalfStorage", dtypes.bfloat16: "BFloat16Storage",
    dtypes.int64: "LongStorage", dtypes.int32: "IntStorage", dtypes.int16: "ShortStorage",
    dtypes.int8: "CharStorage", dtypes.uint8: "ByteStorage", dtypes.bool_: "BoolStorage",
    dtypes.complex64: "ComplexFloatStorage", dtypes.complex128: "ComplexDoubleStorage",
}  # fmt: skip
DTYPES: Final = {name: element for element, name in STORAGE_NAMES.items()}
