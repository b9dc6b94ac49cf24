"""Writes LLVM text from Python expressions: values, branches and loops of one function.

Keeps     an operation is written once, where it is called; nothing is reordered or contracted, so
          fma appears only where `fma` was called. Vectors and scalars read alike, and a formula
          written for one serves the other.
Touches   nothing: text in, text out.
Not here  what the fills compute (twister.py and its neighbours), compiling (devices/cpu/jit/)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

Number = int | float


@cache
def element_of(type_name: str) -> str:
    """Type of one lane: "double" of "<4 x double>" and of "double"."""
    return type_name[1:-1].split(" x ")[1] if type_name.startswith("<") else type_name


@cache
def lanes_of(type_name: str) -> int:
    """Number of lanes; 0 for a scalar."""
    return int(type_name[1:].split(" x ")[0]) if type_name.startswith("<") else 0


@cache
def like(type_name: str, element: str) -> str:
    """The type with as many lanes as `type_name`, of `element`s."""
    lanes = lanes_of(type_name)
    return f"<{lanes} x {element}>" if lanes else element


def literal(type_name: str, number: Number) -> str:
    """LLVM's text of a constant, splatted over a vector's lanes."""
    element = element_of(type_name)
    if element in ("float", "double"):
        value = float(number)
        if element == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    else:
        text = str(int(number))
    return f"splat ({element} {text})" if lanes_of(type_name) else text


def _mangled(type_name: str) -> str:
    short = {"float": "f32", "double": "f64"}.get(element_of(type_name), element_of(type_name))
    return f"v{lanes_of(type_name)}{short}" if lanes_of(type_name) else short


class Value:
    """One LLVM value; Python's operators write the instruction for its type."""

    __slots__ = ("is_float", "text", "type", "writer")

    def __init__(self, writer: Function, type_name: str, text: str) -> None:
        self.writer, self.type, self.text = writer, type_name, text
        self.is_float = element_of(type_name) in ("float", "double", "half")

    def _other(self, other: Value | Number) -> str:
        return other.text if isinstance(other, Value) else literal(self.type, other)

    def _binary(self, float_name: str, integer_name: str, other: Value | Number) -> Value:
        name = float_name if self.is_float else integer_name
        return self.writer.value(self.type, f"{name} {self.type} {self.text}, {self._other(other)}")

    def _reversed(self, float_name: str, integer_name: str, other: Number) -> Value:
        name = float_name if self.is_float else integer_name
        left = literal(self.type, other)
        return self.writer.value(self.type, f"{name} {self.type} {left}, {self.text}")

    def __add__(self, other: Value | Number) -> Value:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary("fsub", "sub", other)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary("fdiv", "udiv", other)

    def __mod__(self, other: Value | Number) -> Value:
        return self._binary("frem", "urem", other)

    def __radd__(self, other: Number) -> Value:
        return self._reversed("fadd", "add", other)

    def __rsub__(self, other: Number) -> Value:
        return self._reversed("fsub", "sub", other)

    def __rmul__(self, other: Number) -> Value:
        return self._reversed("fmul", "mul", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._reversed("fdiv", "udiv", other)

    def __and__(self, other: Value | Number) -> Value:
        return self._binary("and", "and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary("or", "or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary("xor", "xor", other)

    def __lshift__(self, other: Value | Number) -> Value:
        return self._binary("shl", "shl", other)

    def __rshift__(self, other: Value | Number) -> Value:
        """Logical: zeros come in from the left."""
        return self._binary("lshr", "lshr", other)

    def __neg__(self) -> Value:
        if self.is_float:
            return self.writer.value(self.type, f"fneg {self.type} {self.text}")
        return self._reversed("fsub", "sub", 0)

    def _compare(self, name: str, other: Value | Number) -> Value:
        """Ordered for floats, signed for integers."""
        operation = f"fcmp {'une' if name == 'ne' else 'o' + name}"
        if not self.is_float:
            operation = f"icmp {name if name in ('eq', 'ne') else 's' + name}"
        text = f"{operation} {self.type} {self.text}, {self._other(other)}"
        return self.writer.value(like(self.type, "i1"), text)

    def __lt__(self, other: Value | Number) -> Value:
        return self._compare("lt", other)

    def __le__(self, other: Value | Number) -> Value:
        return self._compare("le", other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Value | Number) -> Value:
        return self._compare("ge", other)

    def equal(self, other: Value | Number) -> Value:
        return self._compare("eq", other)

    def differs(self, other: Value | Number) -> Value:
        return self._compare("ne", other)

    def choose(self, yes: Value | Number, no: Value | Number) -> Value:
        """`yes` where this condition holds, else `no`; at least one is a Value."""
        kind = yes.type if isinstance(yes, Value) else no.type  # type: ignore[union-attr]
        left, right = (
            each.text if isinstance(each, Value) else literal(kind, each) for each in (yes, no)
        )
        operands = f"{self.type} {self.text}, {kind} {left}, {kind} {right}"
        return self.writer.value(kind, f"select {operands}")

    def cast(self, operation: str, element: str) -> Value:
        """`operation` (zext, trunc, sitofp, ...) to a type of as many lanes."""
        target = like(self.type, element)
        return self.writer.value(target, f"{operation} {self.type} {self.text} to {target}")

    def bits_as(self, type_name: str) -> Value:
        """The same bits read as another type of the same size."""
        return self.writer.value(type_name, f"bitcast {self.type} {self.text} to {type_name}")

    def splat(self, lanes: int) -> Value:
        """This scalar in every lane of a vector."""
        kind = f"<{lanes} x {self.type}>"
        first = self.writer.value(
            kind, f"insertelement {kind} poison, {self.type} {self.text}, i32 0"
        )
        return self.writer.shuffle(first, first, [0] * lanes)


class Variable:
    """A stack slot: `now` reads it, `set` writes it."""

    __slots__ = ("address", "type", "writer")

    def __init__(self, writer: Function, type_name: str, address: Value) -> None:
        self.writer, self.type, self.address = writer, type_name, address

    @property
    def now(self) -> Value:
        return self.writer.load(self.type, self.address)

    def set(self, value: Value | Number) -> None:
        text = value.text if isinstance(value, Value) else literal(self.type, value)
        self.writer.line(f"store {self.type} {text}, ptr {self.address.text}")


class Function:
    """Text of one LLVM function, written top to bottom."""

    def __init__(
        self, module: Module, name: str, parameters: Sequence[str], result: str, is_internal: bool
    ) -> None:
        self.module, self.name, self.result = module, name, result
        self.parameters = [
            Value(self, kind, f"%p{number}") for number, kind in enumerate(parameters)
        ]
        self._internal = is_internal
        self._lines: list[str] = []
        self._slots: list[str] = []
        self._count = 0
        self._block = "entry"

    def text(self) -> str:
        named = ", ".join(f"{each.type} {each.text}" for each in self.parameters)
        linkage = "internal " if self._internal else ""
        body = "\n".join(["entry:", *self._slots, *self._lines])
        return f"define {linkage}{self.result} @{self.name}({named}) nounwind {{\n{body}\n}}\n"

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def _fresh(self) -> int:
        self._count += 1
        return self._count

    def value(self, kind: str, text: str) -> Value:
        name = f"%v{self._fresh()}"
        self.line(f"{name} = {text}")
        return Value(self, kind, name)

    def constant(self, kind: str, number: Number) -> Value:
        return Value(self, kind, literal(kind, number))

    # Memory

    def buffer(self, n_bytes: int) -> Value:
        """Address of a part of the stack, aligned to 64 bytes."""
        name = f"%b{self._fresh()}"
        self._slots.append(f"  {name} = alloca [{n_bytes} x i8], align 64")
        return Value(self, "ptr", name)

    def variable(self, kind: str, initial: Value | Number) -> Variable:
        variable = Variable(self, kind, self.buffer(8))
        variable.set(initial)
        return variable

    def at(self, address: Value, offset_bytes: Value | int) -> Value:
        text = offset_bytes.text if isinstance(offset_bytes, Value) else str(offset_bytes)
        return self.value("ptr", f"getelementptr i8, ptr {address.text}, i64 {text}")

    def load(self, kind: str, address: Value, offset_bytes: Value | int = 0) -> Value:
        place = self.at(address, offset_bytes) if offset_bytes != 0 else address
        return self.value(kind, f"load {kind}, ptr {place.text}, align {self._alignment(kind)}")

    def store(self, value: Value, address: Value, offset_bytes: Value | int = 0) -> None:
        place = self.at(address, offset_bytes) if offset_bytes != 0 else address
        alignment = self._alignment(value.type)
        self.line(f"store {value.type} {value.text}, ptr {place.text}, align {alignment}")

    @staticmethod
    def _alignment(kind: str) -> int:
        """A lane's size: nothing is assumed about where vectors start."""
        sizes = {"half": 2, "float": 4, "double": 8, "ptr": 8, "i1": 1}
        element = element_of(kind)
        return sizes.get(element) or max(1, int(element[1:]) // 8)

    # Operations without an operator of Python's

    def shuffle(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        kind = f"<{len(lanes)} x {element_of(left.type)}>"
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        operands = f"{left.type} {left.text}, {right.type} {right.text}"
        return self.value(kind, f"shufflevector {operands}, <{len(lanes)} x i32> <{mask}>")

    def intrinsic(self, name: str, *operands: Value | Number, suffix: str = "") -> Value:
        """llvm.<name> on operands of one type; numbers take the type of the first Value."""
        kind = next(each.type for each in operands if isinstance(each, Value))
        texts = [
            f"{kind} {each.text if isinstance(each, Value) else literal(kind, each)}"
            for each in operands
        ]
        full = f"llvm.{name}.{_mangled(kind)}"
        self.module.declare(f"declare {kind} @{full}({', '.join([kind] * len(operands))})")
        return self.value(kind, f"call {kind} @{full}({', '.join(texts)}){suffix}")

    def fma(self, a: Value | Number, b: Value | Number, c: Value | Number) -> Value:
        return self.intrinsic("fma", a, b, c)

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", x)

    def floor(self, x: Value) -> Value:
        return self.intrinsic("floor", x)

    def minimum(self, a: Value, b: Value | Number) -> Value:
        """Smaller of two signed integers."""
        return self.intrinsic("smin", a, b)

    def entry(self, table: str, index: Value) -> Value:
        """Entries of a table of doubles at an index, or at one an lane."""
        n_lanes = lanes_of(index.type)
        kind = f"<{n_lanes} x ptr>" if n_lanes else "ptr"
        offset = index << 3
        place = self.value(kind, f"getelementptr i8, ptr @{table}, {index.type} {offset.text}")
        if not n_lanes:
            return self.load("double", place)
        vector = f"<{n_lanes} x double>"
        result = Value(self, vector, "poison")
        for lane in range(n_lanes):
            one = self.value("ptr", f"extractelement {kind} {place.text}, i32 {lane}")
            text = f"{vector} {result.text}, double {self.load('double', one).text}, i32 {lane}"
            result = self.value(vector, f"insertelement {text}")
        return result

    def copy_bytes(self, target: Value, source: Value, n_bytes: Value) -> None:
        with self.count(n_bytes) as i:
            self.store(self.load("i8", source, i), target, i)

    def call(self, name: str, *operands: Value) -> Value:
        """Call of a function of the same module."""
        result = self.module.result_of(name)
        text = ", ".join(f"{each.type} {each.text}" for each in operands)
        if result == "void":
            self.line(f"call void @{name}({text})")
            return Value(self, "void", "")
        return self.value(result, f"call {result} @{name}({text})")

    # Flow

    def give(self, value: Value | None = None) -> None:
        """Return."""
        self.line("ret void" if value is None else f"ret {value.type} {value.text}")

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        number = self._fresh()
        self.line(f"br i1 {condition.text}, label %yes{number}, label %after{number}")
        self._label(f"yes{number}")
        yield
        self.line(f"br label %after{number}")
        self._label(f"after{number}")

    @contextmanager
    def count(self, end: Value | int, step: int = 1) -> Iterator[Value]:
        """for i in range(0, end, step); the body may hold further flow."""
        number, before = self._fresh(), self._block
        last = end.text if isinstance(end, Value) else str(end)
        self.line(f"br label %head{number}")
        self._label(f"head{number}")
        self.line(f"%i{number} = phi i64 [ 0, %{before} ], [ %n{number}, %next{number} ]")
        self.line(f"%c{number} = icmp slt i64 %i{number}, {last}")
        self.line(f"br i1 %c{number}, label %body{number}, label %done{number}")
        self._label(f"body{number}")
        yield Value(self, "i64", f"%i{number}")
        self.line(f"br label %next{number}")
        self._label(f"next{number}")
        self.line(f"%n{number} = add i64 %i{number}, {step}")
        self.line(f"br label %head{number}")
        self._label(f"done{number}")

    @contextmanager
    def forever(self) -> Iterator[Loop]:
        """Loop that ends by its `leave_if`."""
        number = self._fresh()
        self.line(f"br label %turn{number}")
        self._label(f"turn{number}")
        yield Loop(self, number)
        self.line(f"br label %turn{number}")
        self._label(f"left{number}")


class Loop:
    """Exits of a `forever` loop."""

    __slots__ = ("number", "writer")

    def __init__(self, writer: Function, number: int) -> None:
        self.writer, self.number = writer, number

    def leave_if(self, condition: Value) -> None:
        self._branch(condition, f"left{self.number}")

    def again_if(self, condition: Value) -> None:
        self._branch(condition, f"turn{self.number}")

    def _branch(self, condition: Value, target: str) -> None:
        onward = f"on{self.writer._fresh()}"
        self.writer.line(f"br i1 {condition.text}, label %{target}, label %{onward}")
        self.writer._label(onward)


class Module:
    """Functions that are compiled together; only those not internal can be seen from outside."""

    def __init__(self) -> None:
        self._functions: list[Function] = []
        self._results: dict[str, str] = {}
        self._heads: dict[str, None] = {}

    def function(
        self, name: str, parameters: Sequence[str], result: str = "void", is_internal: bool = True
    ) -> Function:
        function = Function(self, name, parameters, result, is_internal)
        self._functions.append(function)
        self._results[name] = result
        return function

    def result_of(self, name: str) -> str:
        return self._results[name]

    def declare(self, text: str) -> None:
        """A declaration or constant, once."""
        self._heads[text] = None

    def table(self, name: str, doubles: Sequence[float]) -> str:
        """Name of a constant array."""
        values = ", ".join(f"double {literal('double', each)}" for each in doubles)
        self.declare(f"@{name} = internal constant [{len(doubles)} x double] [{values}], align 64")
        return name

    def text(self) -> str:
        return "\n".join([*self._heads, *(each.text() for each in self._functions)])
