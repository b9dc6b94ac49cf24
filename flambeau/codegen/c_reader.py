"""C reader: an expression as C-like text, one statement a word, in OpenCL C's flavour.

Keeps     statements in order of first use, each value named once: shared parts are computed once
          and equal expressions give equal text. Every word is spelled so that it means what
          vocabulary.py says on any IEEE machine compiled without contraction or fast math.
Touches   vocabulary, mathlib (math words are expanded).
Not here  loops, pointers, the kernel around the statements; compiling.

Leaves are plain names that the text around the statements defines: number_0, load_2, index_1,
reduced_0, kept_3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import mathlib
from flambeau.codegen.vocabulary import BUILDER, MATH_WORDS, THROUGH_INT64, Expression

C_TYPES: Final = {
    dtypes.bool_: "bool", dtypes.uint8: "uchar", dtypes.int8: "char", dtypes.int16: "short",
    dtypes.int32: "int", dtypes.int64: "long", dtypes.float16: "half", dtypes.bfloat16: "ushort",
    dtypes.uint16: "ushort", dtypes.uint32: "uint", dtypes.uint64: "ulong",
    dtypes.float32: "float", dtypes.float64: "double", **dict.fromkeys(dtypes.EIGHT_BITS, "uchar"),
}  # fmt: skip
_UNSIGNED: Final = {
    dtypes.uint8: "uchar", dtypes.int8: "uchar", dtypes.int16: "ushort", dtypes.int32: "uint",
    dtypes.int64: "ulong", dtypes.uint16: "ushort", dtypes.uint32: "uint", dtypes.uint64: "ulong",
}  # fmt: skip
_LEAVES: Final = ("number", "load", "index", "reduced", "kept")
_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and_": "&", "or_": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_SAME_NAME: Final = frozenset(("fma", "sqrt", "rint", "floor", "ceil", "trunc", "copysign"))


def statements(results: dict[str, Expression]) -> str:
    """Text that computes every expression of `results` into a variable of that name.

    >>> x = BUILDER.apply("load", (), dtypes.float32, 0)
    >>> print(statements({"y": BUILDER.add(BUILDER.mul(x, 2.0), 1.0)}))
    float t0 = load_0 * 0x1.0000000000000p+1f;
    float t1 = t0 + 0x1.0000000000000p+0f;
    float y = t1;
    """
    writer = _Writer()
    for name, result in results.items():
        text = writer.name_of(result)
        writer.lines.append(f"{C_TYPES[result.dtype]} {name} = {text};")
    return "\n".join(writer.lines)


class _Writer:
    """Lines written so far and the name of every expression in them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Expression, str] = {}

    def name_of(self, root: Expression) -> str:
        """Name or literal of `root`, its statements written before; deep chains do not recurse."""
        pending = [root]
        while pending:
            last = pending[-1]
            if last in self.names:
                pending.pop()
                continue
            if last.word in MATH_WORDS:
                expanded = mathlib.expand(BUILDER, last.word, last.arguments)
                if expanded in self.names:
                    self.names[last] = self.names[expanded]
                else:
                    pending.append(expanded)
                continue
            missing = [each for each in last.arguments if each not in self.names]
            if missing:
                pending.extend(reversed(missing))
                continue
            self.names[last] = self._write(last)
            pending.pop()
        return self.names[root]

    def _write(self, node: Expression) -> str:
        if node.word == "constant":
            return literal(node.value, node.dtype)
        if node.word in _LEAVES:
            return f"{node.word}_{node.value}"
        operands = [self.names[each] for each in node.arguments]
        name = f"t{len(self.lines)}"
        self.lines.append(f"{C_TYPES[node.dtype]} {name} = {_spelled(node, operands)};")
        return name


def literal(value: Any, result: dtype) -> str:
    """Constant as C text that reads back exactly."""
    if result is dtypes.bool_:
        return "true" if value else "false"
    if not result.is_floating_point:
        suffix = "L" if result is dtypes.int64 else ""
        if value == -(2**31) or value == -(2**63):
            return f"(-{-value - 1}{suffix} - 1)"  # C has no negative literals
        return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"
    suffix = "" if result is dtypes.float64 else "f"
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = value.hex() + suffix
    return f"({text})" if text.startswith("-") else text


def _spelled(node: Expression, operands: list[str]) -> str:
    word = node.word
    kind = node.arguments[0].dtype
    if word in _INFIX:
        return f"{operands[0]} {_INFIX[word]} {operands[1]}"
    if word in _SAME_NAME:
        return f"{word}({', '.join(operands)})"
    if word == "select":
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if word == "bitcast":
        return f"as_{C_TYPES[node.dtype]}({operands[0]})"
    if word == "convert":
        return _converted(operands[0], kind, node.dtype)
    return _SPECIAL[word](kind, *operands)


def _converted(operand: str, source: dtype, result: dtype) -> str:
    if source in dtypes.EIGHT_BITS:
        return _converted(f"float_of_{source.name}({operand})", dtypes.float32, result)
    if result in dtypes.EIGHT_BITS:
        bits = operand if source is dtypes.float32 else f"(float){operand}"
        return f"{result.name}_of({bits})"
    if source is dtypes.bfloat16:
        return _converted(f"as_float((uint){operand} << 16)", dtypes.float32, result)
    if result is dtypes.bfloat16:
        bits = operand if source is dtypes.float32 else f"(float){operand}"
        return f"bfloat16_of({bits})"
    if result is dtypes.bool_:
        return f"{operand} != 0"
    if source.is_floating_point and not result.is_floating_point:
        # Beyond the integer gone through C's conversion is undefined; ours is its smallest.
        if result is dtypes.uint64:
            low = _converted(operand, source, dtypes.int64)
            big = f"{operand} >= 0x1p+63f && {operand} < 0x1p+64f"
            return f"({big}) ? (ulong){operand} : (ulong)({low})"
        if result in THROUGH_INT64:
            smallest = literal(-(2**63), dtypes.int64)
            return f"({C_TYPES[result]})(fabs({operand}) < 0x1p+63f ? (long){operand} : {smallest})"
        smallest = literal(-(2**31), dtypes.int32)
        inside = f"trunc({operand}) >= -0x1p+31f && trunc({operand}) < 0x1p+31f"
        return f"({C_TYPES[result]})({inside} ? (int){operand} : {smallest})"
    return f"({C_TYPES[result]}){operand}"


def _extreme(sign: str) -> Callable[..., str]:
    def spelled(kind: dtype, a: str, b: str) -> str:
        if not kind.is_floating_point:
            return f"{a} {sign} {b} ? {a} : {b}"
        first = f"signbit({a})" if sign == "<" else f"!signbit({a})"
        # NaN wins; of two zeros the sign decides.
        return f"(isnan({a}) || {a} {sign} {b} || ({a} == {b} && {first})) ? {a} : {b}"

    return spelled


def _neg(kind: dtype, a: str) -> str:
    return f"-{a}" if kind.is_floating_point else f"({C_TYPES[kind]})(0u - ({_UNSIGNED[kind]}){a})"


def _abs(kind: dtype, a: str) -> str:
    if kind.is_floating_point:
        return f"fabs({a})"
    return f"{a} < 0 ? {_neg(kind, a)} : {a}" if kind.is_signed else a


def _quotient(kind: dtype, a: str, b: str) -> str:
    divided = f"{a} / {b}"
    if kind.is_signed:
        divided = f"({b} == -1 ? {_neg(kind, a)} : {divided})"
    return f"{b} == 0 ? 0 : {divided}"


def _modulo(kind: dtype, a: str, b: str) -> str:
    bad = f"({b} == 0 || {b} == -1)" if kind.is_signed else f"{b} == 0"
    return f"{bad} ? 0 : {a} % {b}"


def _not(kind: dtype, a: str) -> str:
    return f"!{a}" if kind is dtypes.bool_ else f"~{a}"


def _shift(operator: str, unsigned: bool, beyond: str) -> Callable[..., str]:
    def spelled(kind: dtype, a: str, count: str) -> str:
        shifted = f"({_UNSIGNED[kind]}){a}" if unsigned else a
        text = f"({C_TYPES[kind]})({shifted} {operator} {count})"
        digits = count.rstrip("L")
        if digits.isdigit() and int(digits) < kind.n_bits:
            return text
        return f"({count} >= 0 && {count} < {kind.n_bits}) ? {text} : {beyond.format(a=a)}"

    return spelled


_SPECIAL: Final[dict[str, Callable[..., str]]] = {
    "min": _extreme("<"), "max": _extreme(">"), "neg": _neg, "abs": _abs, "not_": _not,
    "quotient": _quotient, "modulo": _modulo, "isnan": lambda kind, a: f"isnan({a}) != 0",
    "shift_left": _shift("<<", True, "0"),
    "shift_right": _shift(">>", False, "({a} < 0 ? -1 : 0)"),
    "shift_right_logical": _shift(">>", True, "0"),
}  # fmt: skip
