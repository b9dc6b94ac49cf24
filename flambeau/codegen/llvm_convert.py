"""Conversions and integer division for llvm_reader: defined for every operand, never trapping.

Keeps     float to integer is torch's: through int64 for THROUGH_INT64, through int32 for the
          others, the smallest of which stands for NaN and for what is beyond it; then the low
          bits. Narrowing floats round to nearest even and keep NaN NaN; division by 0 gives 0,
          smallest // -1 wraps.
Touches   the reader it writes with.
Not here  the other words (llvm_reader.py).

AVX2 has no vector conversion between int64 and float64 and no integer division at all; what
stands in for them is exact, so its bits are those of the scalar instruction.
Source    for the two constants of _int64_to_float64: Mysticial, stackoverflow.com/q/41144668.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import llvm_float8
from flambeau.codegen.float8 import FORMATS
from flambeau.codegen.vocabulary import THROUGH_INT64

if TYPE_CHECKING:
    from flambeau.codegen.llvm_reader import LlvmReader, Operand


def half_bits(value: float, of: dtype) -> int:
    """Bits of a float16 or bfloat16 literal, rounded as `convert` from float32 rounds."""
    try:
        single = struct.pack("<f", value)
    except OverflowError:
        single = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    if of is dtypes.float16:
        rounded = struct.unpack("<f", single)[0]
        try:
            return int(struct.unpack("<h", struct.pack("<e", rounded))[0])
        except OverflowError:
            return 0x7C00 if rounded > 0 else 0xFC00 - 0x10000
    if value != value:
        return 0x7FC0
    bits = int(struct.unpack("<I", single)[0])
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return bits - 0x10000 if bits >> 15 else bits


def convert(reader: LlvmReader, operand: Operand, result: dtype) -> Operand:
    """`operand` as dtype `result`."""
    source = operand.dtype
    if source is result:
        return operand
    if operand.value is not None and source.compute is source:
        folded = _fold(operand.value, source, result)
        if folded is not None:
            return reader.constant(folded, result)
    if result is dtypes.bool_:
        operand = reader.convert(operand, source.compute)
        return reader.ne(operand, 0)
    if source is dtypes.bool_:
        if result.is_floating_point:
            yes, no = reader.constant(1, result), reader.constant(0, result)
            return reader.select(operand, yes, no)
        full, wide = reader.type_of("i1"), reader.type_of(result)
        return reader.operand(f"zext {full} {operand.text} to {wide}", result)
    if source is dtypes.float16 or source is dtypes.bfloat16:
        return reader.convert(_widen(reader, operand), result)
    if source in FORMATS:
        widened = llvm_float8.widen(reader, operand)
        return reader.convert(widened, result)
    if result in FORMATS:
        return llvm_float8.narrow(reader, reader.convert(operand, dtypes.float32), result)
    if result is dtypes.float16 or result is dtypes.bfloat16:
        return _narrow(reader, reader.convert(operand, dtypes.float32), result)
    if source.is_floating_point:
        if result.is_floating_point:
            opcode = "fpext" if result is dtypes.float64 else "fptrunc"
            full, other = reader.type_of(source), reader.type_of(result)
            return reader.operand(f"{opcode} {full} {operand.text} to {other}", result)
        return _float_to_integer(reader, operand, result)
    if result.is_floating_point:
        return _integer_to_float(reader, operand, result)
    return _integer_to_integer(reader, operand, result)


def _fold(value: float, source: dtype, result: dtype) -> float | bool | None:
    """Literals converted here, where Python's arithmetic is the vocabulary's; None elsewhere."""
    if result is dtypes.bool_:
        return value != 0
    if source.is_floating_point:
        return value if result is dtypes.float64 and source is dtypes.float64 else None
    if result.is_floating_point:
        return float(value) if abs(value) <= 1 << 24 else None
    return int(value)


def _widen(reader: LlvmReader, operand: Operand) -> Operand:
    """float16 or bfloat16 (its bits in an i16) as float32."""
    shorts, floats = reader.type_of("i16"), reader.type_of("float")
    if operand.dtype is dtypes.float16:
        half = reader.type_of("half")
        value = reader.emit(f"bitcast {shorts} {operand.text} to {half}")
        return reader.operand(f"fpext {half} {value} to {floats}", dtypes.float32)
    ints = reader.type_of("i32")
    bits = reader.emit(f"zext {shorts} {operand.text} to {ints}")
    bits = reader.emit(f"shl {ints} {bits}, {reader.splat('16', 'i32')}")
    return reader.operand(f"bitcast {ints} {bits} to {floats}", dtypes.float32)


def _narrow(reader: LlvmReader, operand: Operand, result: dtype) -> Operand:
    """float32 as the bits of a float16 or bfloat16 in an i16."""
    shorts, floats = reader.type_of("i16"), reader.type_of("float")
    if result is dtypes.float16:
        half = reader.type_of("half")
        value = reader.emit(f"fptrunc {floats} {operand.text} to {half}")
        return reader.operand(f"bitcast {half} {value} to {shorts}", result)
    # Adding 0x7fff, and 1 more when the kept part is odd, rounds to nearest even; a NaN could
    # overflow into zero or infinity, so it gets a mantissa bit that stays instead.
    ints = reader.type_of("i32")
    sixteen = reader.splat("16", "i32")
    bits = reader.emit(f"bitcast {floats} {operand.text} to {ints}")
    odd = reader.emit(f"lshr {ints} {bits}, {sixteen}")
    odd = reader.emit(f"and {ints} {odd}, {reader.splat('1', 'i32')}")
    rounded = reader.emit(f"add {ints} {bits}, {reader.splat('32767', 'i32')}")
    rounded = reader.emit(f"add {ints} {rounded}, {odd}")
    quiet = reader.emit(f"or {ints} {bits}, {reader.splat('4194304', 'i32')}")
    nan = reader.emit(f"fcmp uno {floats} {operand.text}, {operand.text}")
    kept = reader.emit(f"select {reader.type_of('i1')} {nan}, {ints} {quiet}, {ints} {rounded}")
    kept = reader.emit(f"lshr {ints} {kept}, {sixteen}")
    return reader.operand(f"trunc {ints} {kept} to {shorts}", result)


def _integer_to_integer(reader: LlvmReader, operand: Operand, result: dtype) -> Operand:
    from flambeau.codegen.llvm_reader import Operand

    source = operand.dtype
    if source.itemsize == result.itemsize:
        return Operand(operand.text, result)
    if source.itemsize > result.itemsize:
        opcode = "trunc"
    else:
        opcode = "sext" if source.is_signed else "zext"
    before, after = reader.type_of(source), reader.type_of(result)
    return reader.operand(f"{opcode} {before} {operand.text} to {after}", result)


def _integer_to_float(reader: LlvmReader, operand: Operand, result: dtype) -> Operand:
    source = operand.dtype
    before, after = reader.type_of(source), reader.type_of(result)
    if source is dtypes.int64 and result is dtypes.float64 and reader.lanes == 16:
        return _int64_to_float64(reader, operand)
    opcode = "sitofp" if source.is_signed else "uitofp"
    return reader.operand(f"{opcode} {before} {operand.text} to {after}", result)


def _int64_to_float64(reader: LlvmReader, operand: Operand) -> Operand:
    """Both halves become exact floats through the mantissa; their sum is the one rounding."""
    longs, doubles = reader.type_of("i64"), reader.type_of("double")

    def number(value: int) -> str:
        return reader.splat(str(value), "i64")

    low = reader.emit(f"and {longs} {operand.text}, {number(0xFFFFFFFF)}")
    low = reader.emit(f"or {longs} {low}, {number(0x4330000000000000)}")
    low = reader.emit(f"bitcast {longs} {low} to {doubles}")
    high = reader.emit(f"lshr {longs} {operand.text}, {number(32)}")
    high = reader.emit(f"xor {longs} {high}, {number(0x4530000080000000)}")
    high = reader.emit(f"bitcast {longs} {high} to {doubles}")
    offset = reader.splat("0x4530000080100000", "double")
    high = reader.emit(f"fsub {doubles} {high}, {offset}")
    return reader.operand(f"fadd {doubles} {high}, {low}", dtypes.float64)


def _float_to_integer(reader: LlvmReader, operand: Operand, result: dtype) -> Operand:
    whole = reader.trunc(operand)
    if result is dtypes.uint64:
        # Above int64's end, 2**63 is taken off and put back as the highest bit.
        is_big = reader.and_(reader.ge(whole, 2.0**63), reader.lt(whole, 2.0**64))
        small = reader.select(is_big, reader.sub(whole, 2.0**63), operand)
        bits = _float_to_integer(reader, small, dtypes.int64)
        bits = reader.select(is_big, reader.xor(bits, -(2**63)), bits)
        return reader.convert(bits, result)
    if result not in THROUGH_INT64:
        inside = reader.and_(reader.ge(whole, -(2.0**31)), reader.lt(whole, 2.0**31))
        return reader.convert(
            _float_to_int32(reader, reader.select(inside, whole, -(2.0**31))), result
        )
    inside = reader.lt(reader.abs(operand), 2.0**63)
    whole = reader.select(inside, whole, 0.0)
    if result is dtypes.int64:
        if reader.lanes == 16:
            bits = _float64_to_int64(reader, reader.convert(whole, dtypes.float64))
        else:
            full = reader.type_of(operand.dtype)
            text = f"fptosi {full} {whole.text} to {reader.type_of('i64')}"
            bits = reader.operand(text, dtypes.int64)
        return reader.select(inside, bits, -(2**63))
    # Subtracting the nearest multiple of 2**32 is exact and leaves [-2**31, 2**31]; the low bits
    # of both ends are equal. The smallest int64 has low bits 0, which is what `whole` was set to.
    multiple = reader.mul(reader.rint(reader.mul(whole, 2.0**-32)), 2.0**32)
    rest = reader.sub(whole, multiple)
    rest = reader.select(reader.eq(rest, 2.0**31), -(2.0**31), rest)
    return reader.convert(_float_to_int32(reader, rest), result)


def _float_to_int32(reader: LlvmReader, whole: Operand) -> Operand:
    """Of a whole number within int32."""
    full, ints = reader.type_of(whole.dtype), reader.type_of("i32")
    return reader.operand(f"fptosi {full} {whole.text} to {ints}", dtypes.int32)


def _float64_to_int64(reader: LlvmReader, whole: Operand) -> Operand:
    """Of a whole number within int64: its two halves, read from the mantissas of exact sums."""
    high = reader.floor(reader.mul(whole, 2.0**-32))
    low = reader.sub(whole, reader.mul(high, 2.0**32))
    high = reader.bitcast(reader.add(high, 1.5 * 2.0**52), dtypes.int64)
    low = reader.bitcast(reader.add(low, 2.0**52), dtypes.int64)
    low = reader.and_(low, 0xFFFFFFFF)
    return reader.or_(reader.shift_left(high, 32), low)


def divide(reader: LlvmReader, word: str, left: Operand, right: Operand) -> Operand:
    """quotient or modulo."""
    from flambeau.codegen.llvm_reader import Operand

    of = left.dtype
    full = reader.type_of(of)
    sign = "s" if of.is_signed else "u"
    opcode = sign + ("div" if word == "quotient" else "rem")
    if right.value is not None and int(right.value) not in (0, -1):
        return reader.operand(f"{opcode} {full} {left.text}, {right.text}", of)
    is_zero = reader.eq(right, 0)
    safe = reader.select(is_zero, 1, right)
    if reader.lanes == 1 or of.itemsize == 8:
        is_opposite = None
        if of.is_signed:
            is_opposite = reader.eq(right, -1)
            safe = reader.select(is_opposite, 1, safe)
        answer = Operand(reader.emit(f"{opcode} {full} {left.text}, {safe.text}"), of)
        if word == "modulo":  # of 1, so 0 in both special cases
            return answer
        if is_opposite is not None:
            answer = reader.select(is_opposite, reader.neg(left), answer)
        return reader.select(is_zero, 0, answer)
    # A correctly rounded float quotient truncates to the integer one while the dividend has
    # fewer bits than the mantissa: the true quotient is no closer to the next integer than that.
    wide = dtypes.float64 if of.itemsize == 4 else dtypes.float32
    ratio = reader.div(reader.convert(left, wide), reader.convert(safe, wide))
    ratio = reader.trunc(ratio)
    if of is dtypes.int32:  # smallest // -1
        ratio = reader.select(reader.eq(ratio, 2.0**31), -(2.0**31), ratio)
    ints = reader.type_of("i32")
    opcode, whole = ("fptoui", dtypes.uint32) if of is dtypes.uint32 else ("fptosi", dtypes.int32)
    text = f"{opcode} {reader.type_of(wide)} {ratio.text} to {ints}"
    answer = reader.convert(reader.operand(text, whole), of)
    if word == "modulo":
        return reader.sub(left, reader.mul(answer, safe))
    return reader.select(is_zero, 0, answer)
