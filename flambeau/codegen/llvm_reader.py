"""Vocabulary reader that writes LLVM vector instructions, one line per word.

Keeps     every word gives the bits the vocabulary promises in every lane, whatever the lane holds
          (garbage lanes included: nothing traps), for any number of lanes, at any codegen level;
          no fast-math flag, no poison value, no undefined shift or conversion is ever relied on.
Touches   vocabulary; mathlib at the first word it builds.
Not here  loads, stores, loops and the other leaves (nest_text); conversions (llvm_convert.py).

Registers hold bool as i1, float16 and bfloat16 as the i16 of their bits, floats of 8 bits as the i8
of theirs, the rest as themselves.
float64 to float16 or bfloat16 goes through float32, as torch's does.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import llvm_convert
from flambeau.codegen.float8 import FORMATS, code_of
from flambeau.codegen.vocabulary import MATH_WORDS, Vocabulary

SCALAR_TYPES: Final = {
    dtypes.bool_: "i1", dtypes.uint8: "i8", dtypes.int8: "i8", dtypes.int16: "i16",
    dtypes.int32: "i32", dtypes.int64: "i64", dtypes.float16: "i16", dtypes.bfloat16: "i16",
    dtypes.uint16: "i16", dtypes.uint32: "i32", dtypes.uint64: "i64",
    dtypes.float32: "float", dtypes.float64: "double", **dict.fromkeys(dtypes.EIGHT_BITS, "i8"),
}  # fmt: skip
SUFFIXES: Final = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}

_FLOAT_INSTRUCTIONS: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER_INSTRUCTIONS: Final = {
    "add": "add", "sub": "sub", "mul": "mul", "and_": "and", "or_": "or", "xor": "xor",
}  # fmt: skip
_INTRINSICS: Final = {
    "abs": "fabs", "sqrt": "sqrt", "rint": "rint", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "copysign": "copysign", "fma": "fma",
}  # fmt: skip
_FLOAT_PREDICATES: Final = {
    "eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
}  # fmt: skip
_SIGNED_PREDICATES: Final = {
    "eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge",
}  # fmt: skip
_UNSIGNED_PREDICATES: Final = {
    "eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge",
}  # fmt: skip


class Operand:
    """A value in a register, or a literal.

    text    how an instruction names it (without its type)
    dtype   what it is
    value   the Python number, for literals
    """

    __slots__ = ("dtype", "text", "value")

    def __init__(self, text: str, of: dtype, value: Any = None) -> None:
        self.text = text
        self.dtype = of
        self.value = value


class Module:
    """What the readers of one module share: fresh names, the declared intrinsics, and whether the
    machine has AVX-512."""

    __slots__ = ("declares", "has_avx512", "n_names")

    def __init__(self, has_avx512: bool = False) -> None:
        self.declares: dict[str, str] = {}
        self.has_avx512 = has_avx512
        self.n_names = 0

    def fresh(self, prefix: str = "v") -> str:
        """A name (without %) nobody has used; prefixes end in a letter."""
        self.n_names += 1
        return f"{prefix}{self.n_names}"


def literal(value: Any, of: dtype) -> str:
    """Scalar constant as LLVM reads it; float32 is rounded once, and written as a hex double."""
    if of is dtypes.bool_:
        return "true" if value else "false"
    if of.is_floating_point:
        if of is not dtypes.float64:
            try:
                bits = struct.pack("<f", value)
            except OverflowError:  # beyond the largest finite float32 by half a step or more
                bits = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
            value = struct.unpack("<f", bits)[0]
        if value != value:
            return "0x7FF8000000000000"
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    # Wrap into the signed range of the width, which LLVM accepts for every integer type.
    width = of.n_bits
    wrapped = int(value) & ((1 << width) - 1)
    return str(wrapped - (1 << width) if wrapped >> (width - 1) else wrapped)


class LlvmReader(Vocabulary):
    """Writes words as instructions on `<lanes x T>`, or on scalars when lanes is 1.

    `lines` grows as words are applied; the caller places them in a block of its own. Equal words
    of equal operands are written once.
    """

    def __init__(self, lanes: int, module: Module | None = None) -> None:
        self.lanes = lanes
        self.module = module if module is not None else Module()
        self.lines: list[str] = []
        self._memo: dict[tuple[Any, ...], Operand] = {}
        self._types: dict[str, str] = {}

    # ---- what a Vocabulary reader gives

    def dtype_of(self, operand: Any) -> dtype:
        return operand.dtype

    def apply(
        self, word: str, arguments: tuple[Operand, ...], result: dtype, value: Any = None
    ) -> Operand:
        key = (word, arguments, result, None if value is None else repr(value))
        found = self._memo.get(key)
        if found is None:
            found = self._write(word, arguments, result, value)
            self._memo[key] = found
        return found

    @property
    def has_scale(self) -> bool:
        return self.module.has_avx512 and self.lanes == 32

    def scale(self, operand: Operand, power: Operand) -> Operand:
        """AVX-512's instruction: half as many as without it, for the same bits. Lanes whose result
        is 0 are left out of it: results that underflow cost a hundred cycles on some CPUs."""
        is_double = operand.dtype.itemsize == 8
        scalar, kind, width = ("double", "pd", 8) if is_double else ("float", "ps", 16)
        part, mask = f"<{width} x {scalar}>", f"i{width}"
        name = f"@llvm.x86.avx512.mask.scalef.{kind}.512"
        self.module.declares[name] = f"declare {part} {name}({part}, {part}, {part}, {mask}, i32)"
        least = self.constant(-1075.0 if is_double else -150.0, operand.dtype)
        is_some = self.emit(f"fcmp uge {self.type_of(scalar)} {power.text}, {least.text}")
        parts = []
        for first in range(0, self.lanes, width):
            value, n = (self.part(each.text, scalar, first, width) for each in (operand, power))
            kept = self.emit(
                f"bitcast <{width} x i1> {self.part(is_some, 'i1', first, width)} to {mask}"
            )
            parts.append(
                self.emit(
                    f"call {part} {name}({part} {value}, {part} {n}, {part} zeroinitializer, "
                    f"{mask} {kept}, i32 4)"
                )
            )
        while len(parts) > 1:
            order = ", ".join(f"i32 {lane}" for lane in range(2 * width))
            parts = [
                self.emit(
                    f"shufflevector <{width} x {scalar}> {first}, <{width} x {scalar}> {second}, "
                    f"<{2 * width} x i32> <{order}>"
                )
                for first, second in zip(parts[::2], parts[1::2], strict=True)
            ]
            width *= 2
        return Operand(parts[0], operand.dtype)

    def part(self, text: str, scalar: str, first: int, width: int) -> str:
        """Lanes [first, first + width) of a vector."""
        full = self.type_of(scalar)
        chosen = ", ".join(f"i32 {lane}" for lane in range(first, first + width))
        return self.emit(f"shufflevector {full} {text}, {full} poison, <{width} x i32> <{chosen}>")

    # ---- pieces that loops and conversions write with

    def type_of(self, scalar: str | dtype) -> str:
        """`<lanes x T>`, or T for a scalar reader; T by its LLVM name or its dtype."""
        name = scalar if isinstance(scalar, str) else SCALAR_TYPES[scalar]
        if self.lanes == 1:
            return name
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = f"<{self.lanes} x {name}>"
        return found

    def emit(self, instruction: str) -> str:
        """Writes one instruction; the name of its result."""
        name = "%" + self.module.fresh()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def operand(self, instruction: str, result: dtype) -> Operand:
        """Writes one instruction whose result is of dtype `result`."""
        return Operand(self.emit(instruction), result)

    def splat(self, text: str, scalar: str) -> str:
        """A literal repeated in every lane."""
        return text if self.lanes == 1 else f"splat ({scalar} {text})"

    def call(self, intrinsic: str, scalar: str, *texts: str) -> str:
        """Writes a call of llvm.<intrinsic> whose operands and result have one type."""
        of = self.type_of(scalar)
        suffix = SUFFIXES.get(scalar, scalar)
        if self.lanes > 1:
            suffix = f"v{self.lanes}{suffix}"
        name = f"@llvm.{intrinsic}.{suffix}"
        if name not in self.module.declares:
            listed = ", ".join([of] * len(texts))
            self.module.declares[name] = f"declare {of} {name}({listed})"
        return self.emit(f"call {of} {name}({', '.join(f'{of} {each}' for each in texts)})")

    # ---- words

    def _write(
        self, word: str, arguments: tuple[Operand, ...], result: dtype, value: Any
    ) -> Operand:
        if word == "constant":
            scalar = SCALAR_TYPES[result]
            if result in FORMATS:
                text = literal(code_of(float(value), result), dtypes.int8)
            elif scalar == "i16" and result.is_floating_point:
                text = str(llvm_convert.half_bits(float(value), result))
            else:
                text = literal(value, result)
            return Operand(self.splat(text, scalar), result, value)
        if word == "convert":
            return llvm_convert.convert(self, arguments[0], result)
        if word == "bitcast":
            return self._bitcast(arguments[0], result)
        if word == "select":
            return self._select(*arguments)
        if word in MATH_WORDS:
            from flambeau.codegen import mathlib

            return mathlib.expand(self, word, arguments)
        of = arguments[0].dtype
        if of is not of.compute:
            raise TypeError(f"{word} of {of.name}: convert to {of.compute.name} first")
        if word in _SIGNED_PREDICATES or word == "isnan":
            return self._compare(word, arguments)
        if of.is_floating_point:
            return self._floating(word, arguments, of)
        return self._integer(word, arguments, of)

    def _floating(self, word: str, arguments: tuple[Operand, ...], of: dtype) -> Operand:
        scalar = SCALAR_TYPES[of]
        texts = [each.text for each in arguments]
        if word == "div" and arguments[1].value is not None:
            mantissa, exponent = math.frexp(abs(float(arguments[1].value)))
            if mantissa == 0.5 and abs(exponent) < 100:  # then the reciprocal is exact
                word, texts[1] = "mul", self.constant(1 / float(arguments[1].value), of).text
        if word in _FLOAT_INSTRUCTIONS:
            instruction = f"{_FLOAT_INSTRUCTIONS[word]} {self.type_of(scalar)}"
            return self.operand(f"{instruction} {texts[0]}, {texts[1]}", of)
        if word in _INTRINSICS:
            return Operand(self.call(_INTRINSICS[word], scalar, *texts), of)
        if word == "neg":
            return self.operand(f"fneg {self.type_of(scalar)} {texts[0]}", of)
        if word == "min" or word == "max":
            for limit, other in ((arguments[1], arguments[0]), arguments):
                if limit.value is not None:
                    return self._floating_limit(word, other, limit)
            return self._floating_extreme(word, texts[0], texts[1], of)
        raise TypeError(f"the word {word!r} is not for {of.name}")

    def _floating_limit(self, word: str, operand: Operand, limit: Operand) -> Operand:
        """min, max with a literal: one comparison, which takes the literal over its equal only
        where that is the zero to be preferred."""
        value = float(limit.value)
        if value != value:
            return limit
        preferred = value == 0 and (math.copysign(1, value) < 0) == (word == "min")
        predicate = "olt" if word == "max" else "ogt"
        if preferred:
            predicate = "ole" if word == "max" else "oge"
        full = self.type_of(operand.dtype)
        holds = self.emit(f"fcmp {predicate} {full} {operand.text}, {limit.text}")
        return self._pick(holds, limit.text, operand.text, operand.dtype)

    def _floating_extreme(self, word: str, left: str, right: str, of: dtype) -> Operand:
        """min, max: the machine's return the second operand when one is NaN or both are zero.
        Taken in both orders, the two differ only there; their union of bits is NaN where one was,
        and -0 for two zeros of unlike sign."""
        scalar = SCALAR_TYPES[of]
        full, bits = self.type_of(scalar), self.type_of("i32" if scalar == "float" else "i64")
        lanes = self.type_of("i1")
        predicate = "olt" if word == "min" else "ogt"
        both = []
        for first, second in ((left, right), (right, left)):
            holds = self.emit(f"fcmp {predicate} {full} {first}, {second}")
            taken = self.emit(f"select {lanes} {holds}, {full} {first}, {full} {second}")
            both.append(self.emit(f"bitcast {full} {taken} to {bits}"))
        union = self.emit(f"or {bits} {both[0]}, {both[1]}")
        union = self.emit(f"bitcast {bits} {union} to {full}")
        if word == "min":
            return Operand(union, of)
        # Where they differ in the sign alone this subtracts -0 from -0, which is +0; else +0.
        unlike = self.emit(f"xor {bits} {both[0]}, {both[1]}")
        unlike = self.emit(f"bitcast {bits} {unlike} to {full}")
        return self.operand(f"fsub {full} {union}, {unlike}", of)

    def _integer(self, word: str, arguments: tuple[Operand, ...], of: dtype) -> Operand:
        scalar = SCALAR_TYPES[of]
        full = self.type_of(scalar)
        left = arguments[0].text
        right = arguments[1].text if len(arguments) > 1 else ""
        if of is dtypes.bool_:
            if word in ("min", "max"):
                word = "and_" if word == "min" else "or_"
            if word not in ("and_", "or_", "xor", "not_"):
                raise TypeError(f"the word {word!r} is not for bool")
        if word in _INTEGER_INSTRUCTIONS:
            return self.operand(f"{_INTEGER_INSTRUCTIONS[word]} {full} {left}, {right}", of)
        if word == "not_":
            ones = self.splat("true" if of is dtypes.bool_ else "-1", scalar)
            return self.operand(f"xor {full} {left}, {ones}", of)
        zero = self.splat("0", scalar)
        if word == "neg":
            return self.operand(f"sub {full} {zero}, {left}", of)
        if word == "abs":
            if not of.is_signed:
                return arguments[0]
            opposite = self.emit(f"sub {full} {zero}, {left}")
            holds = self.emit(f"icmp slt {full} {left}, {zero}")
            return self._pick(holds, opposite, left, of)
        if word == "min" or word == "max":
            predicate = ("s" if of.is_signed else "u") + ("lt" if word == "min" else "gt")
            holds = self.emit(f"icmp {predicate} {full} {left}, {right}")
            return self._pick(holds, left, right, of)
        if word == "quotient" or word == "modulo":
            return llvm_convert.divide(self, word, arguments[0], arguments[1])
        if word.startswith("shift_"):
            return self._shift(word, arguments[0], arguments[1])
        raise TypeError(f"the word {word!r} is not for {of.name}")

    def _shift(self, word: str, left: Operand, count: Operand) -> Operand:
        of = left.dtype
        scalar = SCALAR_TYPES[of]
        full = self.type_of(scalar)
        arithmetic = word == "shift_right" and of.is_signed
        opcode = "shl" if word == "shift_left" else "ashr" if arithmetic else "lshr"
        width = of.n_bits
        if count.value is not None:
            steps = int(count.value)
            if not 0 <= steps < width:
                if not arithmetic:
                    return self.constant(0, of)
                steps = width - 1
            return self.operand(
                f"{opcode} {full} {left.text}, {self.splat(str(steps), scalar)}", of
            )
        # Unsigned, so that negative counts are out of range as well.
        inside = self.emit(f"icmp ult {full} {count.text}, {self.splat(str(width), scalar)}")
        otherwise = self.splat(str(width - 1 if arithmetic else 0), scalar)
        steps_text = self._pick(inside, count.text, otherwise, of).text
        shifted = self.emit(f"{opcode} {full} {left.text}, {steps_text}")
        if arithmetic:
            return Operand(shifted, of)
        return self._pick(inside, shifted, self.splat("0", scalar), of)

    def _compare(self, word: str, arguments: tuple[Operand, ...]) -> Operand:
        of = arguments[0].dtype
        full = self.type_of(of)
        left = arguments[0].text
        if word == "isnan":
            if not of.is_floating_point:
                return self.constant(False, dtypes.bool_)
            return self.operand(f"fcmp uno {full} {left}, {left}", dtypes.bool_)
        if of.is_floating_point:
            compare = f"fcmp {_FLOAT_PREDICATES[word]}"
        elif of.is_signed:
            compare = f"icmp {_SIGNED_PREDICATES[word]}"
        else:
            compare = f"icmp {_UNSIGNED_PREDICATES[word]}"
        return self.operand(f"{compare} {full} {left}, {arguments[1].text}", dtypes.bool_)

    def _select(self, condition: Operand, yes: Operand, no: Operand) -> Operand:
        if condition.value is not None:
            return yes if condition.value else no
        return self._pick(condition.text, yes.text, no.text, yes.dtype)

    def _pick(self, condition: str, yes: str, no: str, of: dtype) -> Operand:
        full = self.type_of(of)
        lanes = self.type_of("i1")
        return self.operand(f"select {lanes} {condition}, {full} {yes}, {full} {no}", of)

    def _bitcast(self, operand: Operand, result: dtype) -> Operand:
        source = operand.dtype
        if dtypes.bool_ in (source, result):  # a byte in memory, one bit in a register
            return llvm_convert.convert(self, operand, result)
        before, after = SCALAR_TYPES[source], SCALAR_TYPES[result]
        if before == after:
            return Operand(operand.text, result)
        if source.itemsize != result.itemsize:
            raise TypeError(f"bitcast of {source.name} to {result.name}: widths differ")
        full = self.type_of(before)
        return self.operand(f"bitcast {full} {operand.text} to {self.type_of(after)}", result)
