"""Floats of 8 bits: how each format spells numbers, and the numbers themselves.

Keeps     conversions as torch's: by way of float32, to nearest even; float8_e4m3fn stops at its
          largest number, the others go on to infinity or NaN; the fnuz formats have one zero.
Touches   base.dtypes.
Not here  the same in machine code (codegen/llvm_float8.py)."""

from __future__ import annotations

import functools
import struct
from typing import Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype


class Format:
    """How a format spells numbers: a sign, an exponent, `mantissa` bits.

    bias       what is subtracted from an exponent
    largest    code of the largest finite number, without the sign
    overflow   code of what is beyond it; nan: code of NaN
    has_negative_zero   else that code is NaN, and so is everything beyond the largest
    """

    __slots__ = ("bias", "has_negative_zero", "largest", "mantissa", "nan", "overflow")

    def __init__(
        self, mantissa: int, bias: int, largest: int, overflow: int, nan: int, zero: bool
    ) -> None:
        self.mantissa: Final = mantissa
        self.bias: Final = bias
        self.largest: Final = largest
        self.overflow: Final = overflow
        self.nan: Final = nan
        self.has_negative_zero: Final = zero


FORMATS: Final = {
    dtypes.float8_e4m3fn: Format(3, 7, 0x7E, 0x7E, 0x7F, True),
    dtypes.float8_e5m2: Format(2, 15, 0x7B, 0x7C, 0x7F, True),
    dtypes.float8_e4m3fnuz: Format(3, 8, 0x7F, 0x80, 0x80, False),
    dtypes.float8_e5m2fnuz: Format(2, 16, 0x7F, 0x80, 0x80, False),
}


def code_of(value: float, of: dtype) -> int:
    """The byte that stands for a number rounded to a format.

    >>> code_of(1.0, dtypes.float8_e4m3fn), code_of(1e9, dtypes.float8_e4m3fn)
    (56, 126)
    """
    form = FORMATS[of]
    try:
        single = struct.pack("<f", value)
    except OverflowError:
        single = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    bits: int = struct.unpack("<I", single)[0]
    sign, size = bits >> 24 & 0x80, bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return form.nan
    smallest = 2.0 ** (1 - form.bias)
    magnitude: float = struct.unpack("<f", struct.pack("<I", size))[0]
    if magnitude < smallest:
        code = round(magnitude / smallest * (1 << form.mantissa))
    else:
        dropped = 23 - form.mantissa
        rounded = size + (1 << (dropped - 1)) - 1 + (size >> dropped & 1)
        code = (rounded >> dropped) - (127 - form.bias << form.mantissa)
    if form.has_negative_zero:
        return sign | (form.overflow if code > form.largest else code)
    return form.nan if code > form.largest else code and sign | code


@functools.cache
def values(of: dtype) -> tuple[float, ...]:
    """The numbers of all 256 codes of a format."""
    return tuple([_value(code, FORMATS[of]) for code in range(256)])


def _value(code: int, form: Format) -> float:
    size = code & 0x7F
    if not form.has_negative_zero:
        if code == form.nan:
            return dtypes.NAN
    elif size > form.largest:
        if size == form.overflow:
            return -dtypes.INFINITY if code & 0x80 else dtypes.INFINITY
        return dtypes.NAN
    exponent, fraction = size >> form.mantissa, size & ((1 << form.mantissa) - 1)
    if exponent:
        fraction += 1 << form.mantissa
    magnitude = fraction * 2.0 ** (max(exponent, 1) - form.bias - form.mantissa)
    return -magnitude if code & 0x80 else magnitude
