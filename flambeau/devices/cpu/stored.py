"""Elements in native text: types in memory and in registers, conversions between them.

Keeps     float16 and bfloat16 are float32 in registers and rounded to nearest even when stored;
          bool is a byte 0 or 1; complex elements are moved as one integer.
Touches   base.dtypes, writer.
Not here  conversions inside fused loops (codegen/llvm_convert.py), products (gemm/elements.py)."""

from __future__ import annotations

from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.writer import Writer

_STORED: Final = {
    "bool": "i8", "uint8": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double",
    "float8_e4m3fn": "i8", "float8_e5m2": "i8", "float8_e4m3fnuz": "i8", "float8_e5m2fnuz": "i8",
    "complex64": "i64", "complex128": "i128",
}  # fmt: skip


def stored_type(element: dtype) -> str:
    """LLVM type of an element in memory."""
    return _STORED[element.name]


def bits_type(element: dtype) -> str:
    """LLVM integer type as wide as an element."""
    return f"i{8 * element.itemsize}"


def compute_type(element: dtype) -> str:
    """LLVM type in which elements are added: float32 for the 16-bit ones."""
    return "float" if element.itemsize == 2 and element.is_floating_point else _STORED[element.name]


def shaped(kind: str, lanes: int) -> str:
    """A vector type, or the scalar where lanes is 0."""
    return f"<{lanes} x {kind}>" if lanes else kind


def splat(kind: str, value: int, lanes: int) -> str:
    """A constant in every lane."""
    return f"splat ({kind} {value})" if lanes else str(value)


def widen(w: Writer, element: dtype, value: str, lanes: int = 0) -> str:
    """Stored elements as their compute type."""
    stored, result = shaped(stored_type(element), lanes), shaped(compute_type(element), lanes)
    if stored == result:
        return value
    if element.name == "float16":
        return w.let(f"fpext {stored} {value} to {result}")
    integers = shaped("i32", lanes)
    wide = w.let(f"zext {stored} {value} to {integers}")
    high = w.let(f"shl {integers} {wide}, {splat('i32', 16, lanes)}")
    return w.let(f"bitcast {integers} {high} to {result}")


def narrow(w: Writer, element: dtype, value: str, lanes: int = 0) -> str:
    """Values of the compute type as stored ones, rounded once."""
    stored, source = shaped(stored_type(element), lanes), shaped(compute_type(element), lanes)
    if stored == source:
        return value
    if element.name == "float16":
        return w.let(f"fptrunc {source} {value} to {stored}")
    integers = shaped("i32", lanes)
    bits = w.let(f"bitcast {source} {value} to {integers}")
    high = w.let(f"lshr {integers} {bits}, {splat('i32', 16, lanes)}")
    odd = w.let(f"and {integers} {high}, {splat('i32', 1, lanes)}")
    bias = w.let(f"add {integers} {odd}, {splat('i32', 0x7FFF, lanes)}")
    biased = w.let(f"add {integers} {bits}, {bias}")
    rounded = w.let(f"lshr {integers} {biased}, {splat('i32', 16, lanes)}")
    quiet = w.let(f"or {integers} {high}, {splat('i32', 64, lanes)}")
    is_nan = w.let(f"fcmp uno {source} {value}, {value}")
    kept = w.let(f"select {shaped('i1', lanes)} {is_nan}, {integers} {quiet}, {integers} {rounded}")
    return w.let(f"trunc {integers} {kept} to {stored}")


def sum_of(w: Writer, element: dtype, left: str, right: str, lanes: int = 0) -> str:
    """Sum of two stored elements, rounded to their dtype; `or` of bools."""
    kind = shaped(compute_type(element), lanes)
    if element.name == "bool":
        return w.let(f"or {kind} {left}, {right}")
    if element.is_complex:
        part = "float" if element.itemsize == 8 else "double"
        parts = f"<{2 * max(lanes, 1)} x {part}>"
        left, right = (w.let(f"bitcast {kind} {each} to {parts}") for each in (left, right))
        return w.let(f"bitcast {parts} {w.let(f'fadd {parts} {left}, {right}')} to {kind}")
    word = "fadd" if element.is_floating_point else "add"
    left, right = widen(w, element, left, lanes), widen(w, element, right, lanes)
    return narrow(w, element, w.let(f"{word} {kind} {left}, {right}"), lanes)


def folded(w: Writer, element: dtype, word: str, left: str, right: str, lanes: int = 0) -> str:
    """Two stored elements as one: their sum, product ("mul"), or extreme ("max", "min"), where NaN
    wins; rounded to their dtype."""
    if word == "add":
        return sum_of(w, element, left, right, lanes)
    kind = shaped(compute_type(element), lanes)
    if element.name == "bool":
        joined = "or" if word == "max" else "and"
        return w.let(f"{joined} {kind} {left}, {right}")
    left, right = widen(w, element, left, lanes), widen(w, element, right, lanes)
    if word == "mul":
        product = "fmul" if element.is_floating_point else "mul"
        return narrow(w, element, w.let(f"{product} {kind} {left}, {right}"), lanes)
    larger = "gt" if word == "max" else "lt"
    if element.is_floating_point:
        beyond = w.let(f"fcmp o{larger} {kind} {right}, {left}")
        missing = w.let(f"fcmp uno {kind} {right}, {right}")
        chosen = w.let(f"or {shaped('i1', lanes)} {beyond}, {missing}")
    else:
        sign = "s" if element.is_signed else "u"
        chosen = w.let(f"icmp {sign}{larger} {kind} {right}, {left}")
    result = w.let(f"select {shaped('i1', lanes)} {chosen}, {kind} {right}, {kind} {left}")
    return narrow(w, element, result, lanes)
