"""Conversions between float32 and floats of 8 bits, for llvm_convert.

Keeps     the bits are those of codegen.float8; neither way needs numbers below float32's normal
          ones, so a CPU that takes them for 0 gives the same.
Touches   codegen.float8, the reader it writes with.
Not here  the other conversions (llvm_convert.py)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.float8 import FORMATS

if TYPE_CHECKING:
    from flambeau.codegen.llvm_reader import LlvmReader, Operand


class _Words:
    """Instructions on 32-bit integers, a constant where a number is given."""

    def __init__(self, reader: LlvmReader) -> None:
        self.reader = reader
        self.ints = reader.type_of("i32")
        self.bools = reader.type_of("i1")

    def __call__(self, opcode: str, left: str, right: str | int) -> str:
        if isinstance(right, int):
            right = self.reader.splat(str(right), "i32")
        return self.reader.emit(f"{opcode} {self.ints} {left}, {right}")

    def choose(self, condition: str, yes: str | int, no: str) -> str:
        """`yes` where condition, else `no`."""
        if isinstance(yes, int):
            yes = self.reader.splat(str(yes), "i32")
        return self.reader.emit(
            f"select {self.bools} {condition}, {self.ints} {yes}, {self.ints} {no}"
        )


def widen(reader: LlvmReader, operand: Operand) -> Operand:
    """An 8-bit float (its bits in an i8) as float32."""
    form = FORMATS[operand.dtype]
    word, floats = _Words(reader), reader.type_of("float")
    bytes_type = reader.type_of("i8")
    code = reader.emit(f"zext {bytes_type} {operand.text} to {word.ints}")
    size = word("and", code, 0x7F)
    # Numbers below the smallest normal one are whole multiples of the smallest.
    whole = reader.emit(f"uitofp {word.ints} {size} to {floats}")
    step = reader.constant(2.0 ** (1 - form.bias - form.mantissa), dtypes.float32).text
    small = reader.emit(f"fmul {floats} {whole}, {step}")
    small = reader.emit(f"bitcast {floats} {small} to {word.ints}")
    normal = word("shl", size, 23 - form.mantissa)
    normal = word("add", normal, (127 - form.bias) << 23)
    is_small = word("icmp ult", size, 1 << form.mantissa)
    bits = word.choose(is_small, small, normal)
    if form.has_negative_zero:
        beyond = word("icmp ugt", size, form.largest)
        special: str | int = 0x7FC00000
        if form.overflow > form.largest:
            is_infinite = word("icmp eq", size, form.overflow)
            special = word.choose(is_infinite, 0x7F800000, reader.splat("2143289344", "i32"))
        bits = word.choose(beyond, special, bits)
    else:
        bits = word.choose(word("icmp eq", code, form.nan), 0x7FC00000, bits)
    sign = word("shl", word("and", code, 0x80), 24)
    bits = word("or", bits, sign)
    return reader.operand(f"bitcast {word.ints} {bits} to {floats}", dtypes.float32)


def narrow(reader: LlvmReader, operand: Operand, result: dtype) -> Operand:
    """float32 as the bits of an 8-bit float in an i8."""
    form = FORMATS[result]
    word, floats = _Words(reader), reader.type_of("float")
    bits = reader.emit(f"bitcast {floats} {operand.text} to {word.ints}")
    size = word("and", bits, 0x7FFFFFFF)
    dropped = 23 - form.mantissa
    # To nearest even: half a step less one, and one more where the kept part is odd.
    odd = word("and", word("lshr", size, dropped), 1)
    rounded = word("add", word("add", size, (1 << (dropped - 1)) - 1), odd)
    normal = word("sub", word("lshr", rounded, dropped), (127 - form.bias) << form.mantissa)
    # Beside 2^23 steps of the smallest numbers a sum keeps whole steps, rounded as sums are.
    magic = 2.0 ** (1 - form.bias - form.mantissa + 23)
    magnitude = reader.emit(f"bitcast {word.ints} {size} to {floats}")
    beside = reader.emit(
        f"fadd {floats} {magnitude}, {reader.constant(magic, dtypes.float32).text}"
    )
    beside = reader.emit(f"bitcast {floats} {beside} to {word.ints}")
    (magic_bits,) = struct.unpack("<I", struct.pack("<f", magic))
    small = word("sub", beside, magic_bits)
    is_small = word("icmp ult", size, (128 - form.bias) << 23)
    code = word.choose(is_small, small, normal)
    sign = word("and", word("lshr", bits, 24), 0x80)
    is_nan = word("icmp ugt", size, 0x7F800000)
    beyond = word("icmp ugt", code, form.largest)
    if form.has_negative_zero:
        code = word.choose(beyond, form.overflow, code)
        code = word("or", code, sign)
    else:
        is_zero = word("icmp eq", code, 0)
        code = word.choose(is_zero, 0, word("or", code, sign))
        code = word.choose(beyond, form.nan, code)
    code = word.choose(is_nan, form.nan, code)
    return reader.operand(f"trunc {word.ints} {code} to {reader.type_of('i8')}", result)
