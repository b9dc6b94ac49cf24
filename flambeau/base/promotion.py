"""Type promotion: the dtype an operation computes in and the dtype it returns.

Keeps     torch's lattice with its three categories: tensors with dimensions outrank tensors
          without, which outrank Python numbers; a lower category matters only where it is of a
          higher kind (bool < integer < floating < complex).
Touches   base.dtypes, base.layout, base.errors.
Not here  shapes (shapes.py); which rule an operator follows (its class in ops)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout


class Scalar:
    """What inference sees of a Python number: its type only, never its value. One object a type."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind: Final = kind  # bool, int, float or complex

    def __repr__(self) -> str:
        return self.kind.__name__


BOOLEAN: Final = Scalar(bool)
INTEGER: Final = Scalar(int)
REAL: Final = Scalar(float)
COMPLEX: Final = Scalar(complex)
SCALARS: Final = {bool: BOOLEAN, int: INTEGER, float: REAL, complex: COMPLEX}

Operand = Layout | Scalar | None

# Rules. DEFAULT: computed in and returned as the promoted dtype. INT_TO_FLOAT: the same, but bool
# and integers become the default dtype. BOOL_RESULT: computed in the promoted dtype, returns bool.
# SAME: the first tensor decides; numbers beside it are taken in its dtype.
DEFAULT: Final = "default"
INT_TO_FLOAT: Final = "int to float"
BOOL_RESULT: Final = "bool result"
SAME: Final = "same"

# torch's names of dtypes in its error messages.
SCALAR_TYPE_NAMES: Final = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
    "float8_e4m3fnuz": "Float8_e4m3fnuz", "float8_e5m2fnuz": "Float8_e5m2fnuz",
}  # fmt: skip

# Its C++ names, which other messages use.
C_TYPE_NAMES: Final = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "float8_e4m3fn": "c10::Float8_e4m3fn", "float8_e5m2": "c10::Float8_e5m2",
    "float8_e4m3fnuz": "c10::Float8_e4m3fnuz", "float8_e5m2fnuz": "c10::Float8_e5m2fnuz",
}  # fmt: skip
# The same where numbers do not fit into them.
HELD_NAMES: Final = C_TYPE_NAMES | {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
}  # fmt: skip

_default: dtype = dtypes.float32


def default_dtype() -> dtype:
    """Dtype of Python floats and of integers where a floating result is needed."""
    return _default


def set_default_dtype(wanted: dtype) -> None:
    """Change the default dtype. Raises TypeError for a dtype that is not floating."""
    global _default
    if not isinstance(wanted, dtype) or not wanted.is_floating_point:
        raise TypeError(
            helped(
                ("" if isinstance(wanted, dtype) else "invalid dtype object: ")
                + "only floating-point types are supported as the default type",
                given=repr(wanted),
                fix="torch.float32 or torch.float64",
            )
        )
    if wanted in dtypes.EIGHT_BITS:
        raise TypeError(f"couldn't find storage object {SCALAR_TYPE_NAMES[wanted.name]}Storage")
    _default = wanted


def _promoted_pair(left: dtype, right: dtype) -> dtype:
    """Least dtype of the lattice that both convert to."""
    if left is right:
        return left
    low, high = sorted((left, right), key=lambda each: (each.category, each.itemsize))
    if low.category != high.category:
        # A float beside a complex keeps its precision: float64 and complex64 give complex128.
        if low is dtypes.float64 and high is dtypes.complex64:
            return dtypes.complex128
        return high
    if low.category == 1 and low.itemsize == high.itemsize:  # uint8 and int8
        return dtypes.int16
    if low.itemsize == high.itemsize:  # float16 and bfloat16
        return dtypes.float32
    return high


def _goes_with(left: dtype, right: dtype) -> bool:
    """Whether two dtypes promote: wide unsigned integers do beside floating dtypes alone."""
    if left is right or not {left, right} & set(dtypes.WIDE_UNSIGNED):
        return True
    return left.is_floating_point or right.is_floating_point


_PROMOTED: Final = {
    (left, right): _promoted_pair(left, right)
    for left in dtypes.ALL
    for right in dtypes.ALL
    if _goes_with(left, right)
}


def promote_types(left: dtype, right: dtype) -> dtype:
    """Smallest dtype that holds both.

    >>> promote_types(dtypes.uint8, dtypes.int8), promote_types(dtypes.float16, dtypes.int64)
    (torch.int16, torch.float16)
    """
    return _joined(left, right)


def _joined(left: dtype, right: dtype) -> dtype:
    found = _PROMOTED.get((left, right))
    if found is None and left is not right:
        if not {left, right} & set(dtypes.EIGHT_BITS):
            raise RuntimeError(
                helped(
                    "Promotion for uint16, uint32, uint64 types is not supported, attempted to "
                    f"promote {SCALAR_TYPE_NAMES[left.name]} and {SCALAR_TYPE_NAMES[right.name]}",
                    fix="convert one of them: .to(torch.int64), say",
                )
            )
        raise RuntimeError(
            helped(
                "Promotion for Float8 Types is not supported, attempted to promote "
                f"{SCALAR_TYPE_NAMES[left.name]} and {SCALAR_TYPE_NAMES[right.name]}",
                fix="convert with .to(torch.float32)",
            )
        )
    return found or left


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place write or out= may convert `source` to `target`: never to a lower kind."""
    return source.category <= target.category


def scalar_dtype(kind: type) -> dtype:
    """Dtype of a Python number that stands alone."""
    if kind is float:
        return _default
    if kind is int:
        return dtypes.int64
    return dtypes.bool_ if kind is bool else _default.to_complex()


def kernel_dtype(element: dtype) -> dtype:
    """The dtype that native kernels over images compute in."""
    if element.is_floating_point:
        return element.compute
    return dtypes.int64 if element is dtypes.int64 else dtypes.int32


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Promotion across categories: `lower` counts only where its kind is higher."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher.category == 0 or lower.category > 1:
        return _joined(higher, lower)
    return higher


def result_type(operands: Iterable[Operand]) -> dtype:
    """Dtype that layouts and numbers promote to together.

    >>> from flambeau.base.layout import contiguous
    >>> result_type((contiguous((3,), dtypes.int8), INTEGER))
    torch.int8
    """
    dimensioned: dtype | None = None
    zero_dim: dtype | None = None
    number: dtype | None = None
    for each in operands:
        if type(each) is Layout:
            if each.shape:
                dimensioned = _joined(dimensioned or each.dtype, each.dtype)
            else:
                zero_dim = _joined(zero_dim or each.dtype, each.dtype)
        elif type(each) is Scalar:
            own = scalar_dtype(each.kind)
            number = _joined(number or own, own)
    found = _combine(dimensioned, _combine(zero_dim, number))
    if found is None:
        raise RuntimeError("at least one operand must be a tensor or a number")
    return found


def promote(rule: str, operands: tuple[Operand, ...]) -> tuple[dtype, dtype]:
    """(dtype computed in, dtype of the result) of an operator under `rule`."""
    if rule is SAME:
        for each in operands:
            if type(each) is Layout:
                return each.dtype, each.dtype
    common = result_type(operands)
    if rule is BOOL_RESULT:
        return common, dtypes.bool_
    if rule is INT_TO_FLOAT and common.category < 2:
        return _default, _default
    return common, common
