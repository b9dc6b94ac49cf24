"""Element types of a matrix product as LLVM text: what is stored, what is accumulated in.

Keeps     float16 and bfloat16 are widened to float32 and rounded once, to nearest even, at the
          store; integers of at most 32 bits are accumulated in 32 and cut at the store, which
          wraps in their own width; others accumulate in themselves.
Touches   base.dtypes.
Not here  the tile (tile_text.py), packing (pack_text.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

from flambeau.base.dtypes import dtype

_STORED: Final = {
    "uint8": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double",
}  # fmt: skip
_ACCUMULATED: Final = {
    "uint8": "i32", "int8": "i32", "int16": "i32", "int32": "i32", "int64": "i64",
    "float16": "float", "bfloat16": "float", "float32": "float", "float64": "double",
}  # fmt: skip
_BYTES: Final = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8}


@dataclass
class Lines:
    """Body of a function under construction: instructions and fresh value names."""

    text: list[str] = field(default_factory=list)
    count: int = 0

    def put(self, line: str) -> None:
        """Append an instruction that gives no value."""
        self.text.append("  " + line)

    def let(self, instruction: str) -> str:
        """Append an instruction and return the name of its value."""
        self.count += 1
        name = f"%v{self.count}"
        self.text.append(f"  {name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Start a basic block."""
        self.text.append(f"{name}:")

    def offset(self, pointer: str, n_bytes: str | int) -> str:
        """Pointer moved by a number of bytes."""
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {n_bytes}")

    def smaller(self, left: str, right: str | int) -> str:
        """Lesser of two signed 64-bit values."""
        less = self.let(f"icmp slt i64 {left}, {right}")
        return self.let(f"select i1 {less}, i64 {left}, i64 {right}")

    def prefetch(self, pointer: str) -> None:
        """Ask for the cache line of an address, which need not be valid."""
        self.put(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def take(self, block: str) -> None:
        """Append lines written elsewhere."""
        self.text.extend(block.splitlines())


@dataclass(frozen=True)
class Element:
    """How one dtype is loaded, multiplied, added and stored, `lanes` at a time."""

    dtype: dtype
    vector_bits: int

    @cached_property
    def stored(self) -> str:
        """LLVM type of one element in memory."""
        return _STORED[self.dtype.name]

    @cached_property
    def accumulated(self) -> str:
        """LLVM type of one element in registers and in packed operands."""
        return _ACCUMULATED[self.dtype.name]

    @cached_property
    def is_narrow(self) -> bool:
        """Operands need converting, so they are always packed."""
        return self.stored != self.accumulated

    @cached_property
    def is_float(self) -> bool:
        """Accumulates by fma; otherwise by multiply and add."""
        return self.accumulated in ("float", "double")

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of an element in memory."""
        return _BYTES[self.stored]

    @cached_property
    def n_packed_bytes(self) -> int:
        """Bytes of an element in packed operands and partial sums."""
        return _BYTES[self.accumulated]

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector of what is accumulated."""
        return self.vector_bits // (8 * self.n_packed_bytes)

    @cached_property
    def vector(self) -> str:
        """LLVM type of a vector of what is accumulated."""
        return f"<{self.lanes} x {self.accumulated}>"

    @cached_property
    def declarations(self) -> str:
        """Intrinsics that `multiply_add` and `Lines.prefetch` call."""
        prefetch = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        if not self.is_float:
            return prefetch
        vector = self.vector
        return (
            f"{prefetch}declare {vector} @llvm.fma.{self._suffix}({vector}, {vector}, {vector})\n"
        )

    @cached_property
    def _suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.n_packed_bytes}"

    def multiply_add(self, lines: Lines, left: str, right: str, total: str) -> str:
        """total + left * right, rounded once (floats) or wrapped (integers)."""
        vector = self.vector
        if self.is_float:
            return lines.let(
                f"call {vector} @llvm.fma.{self._suffix}"
                f"({vector} {left}, {vector} {right}, {vector} {total})"
            )
        product = lines.let(f"mul {vector} {left}, {right}")
        return lines.let(f"add {vector} {total}, {product}")

    def add(self, lines: Lines, left: str, right: str) -> str:
        """Sum of two vectors."""
        word = "fadd" if self.is_float else "add"
        return lines.let(f"{word} {self.vector} {left}, {right}")

    def broadcast(self, lines: Lines, pointer: str) -> str:
        """Vector that repeats the accumulated-type element at `pointer`."""
        one = lines.let(f"load {self.accumulated}, ptr {pointer}, align {self.n_packed_bytes}")
        return self.repeat(lines, one)

    def broadcast_stored(self, lines: Lines, pointer: str) -> str:
        """Vector that repeats the stored-type element at `pointer`, widened."""
        one = lines.let(f"load {self.stored}, ptr {pointer}, align {self.n_bytes}")
        return self.repeat(lines, self.widen(lines, one, 0))

    def repeat(self, lines: Lines, one: str) -> str:
        """Vector of one scalar."""
        vector = self.vector
        start = lines.let(f"insertelement {vector} poison, {self.accumulated} {one}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return lines.let(f"shufflevector {vector} {start}, {vector} poison, {mask}")

    def widen(self, lines: Lines, value: str, lanes: int) -> str:
        """Stored elements (a vector of `lanes`, or a scalar when 0) as accumulated ones."""
        if not self.is_narrow:
            return value
        source, result = _shaped(self.stored, lanes), _shaped(self.accumulated, lanes)
        if self.dtype.name == "float16":
            return lines.let(f"fpext {source} {value} to {result}")
        if self.dtype.name == "bfloat16":
            integers = _shaped("i32", lanes)
            wide = lines.let(f"zext {source} {value} to {integers}")
            high = lines.let(f"shl {integers} {wide}, {_splat('i32', 16, lanes)}")
            return lines.let(f"bitcast {integers} {high} to {result}")
        word = "sext" if self.dtype.is_signed else "zext"
        return lines.let(f"{word} {source} {value} to {result}")

    def narrow(self, lines: Lines, value: str) -> str:
        """A vector of accumulated values as stored ones: rounded to nearest even, or cut."""
        if not self.is_narrow:
            return value
        lanes = self.lanes
        result = _shaped(self.stored, lanes)
        if self.dtype.name == "float16":
            return lines.let(f"fptrunc {self.vector} {value} to {result}")
        if self.dtype.name != "bfloat16":
            return lines.let(f"trunc {self.vector} {value} to {result}")
        integers = _shaped("i32", lanes)
        bits = lines.let(f"bitcast {self.vector} {value} to {integers}")
        high = lines.let(f"lshr {integers} {bits}, {_splat('i32', 16, lanes)}")
        odd = lines.let(f"and {integers} {high}, {_splat('i32', 1, lanes)}")
        bias = lines.let(f"add {integers} {odd}, {_splat('i32', 0x7FFF, lanes)}")
        moved = lines.let(f"add {integers} {bits}, {bias}")
        rounded = lines.let(f"lshr {integers} {moved}, {_splat('i32', 16, lanes)}")
        quiet = lines.let(f"or {integers} {high}, {_splat('i32', 64, lanes)}")
        is_nan = lines.let(f"fcmp uno {self.vector} {value}, {value}")
        kept = lines.let(
            f"select <{lanes} x i1> {is_nan}, {integers} {quiet}, {integers} {rounded}"
        )
        return lines.let(f"trunc {integers} {kept} to {result}")


@cache
def element_of(kind: dtype, vector_bits: int) -> Element:
    """The one element of a dtype and a width."""
    return Element(kind, vector_bits)


def vector_function(lines: Lines) -> str:
    """The body of a block of columns of a row times a matrix, made a function."""
    body = "\n".join(lines.text)
    return (
        "define internal fastcc void @columns_of(ptr %a, ptr %b, ptr %c, i64 %n, i64 %k, "
        f"i64 %a_step, i64 %b_row, i64 %b_column, i64 %c_step, ptr %sums) nounwind {{\n{body}\n}}\n"
    )


def batch_indices(
    lines: Lines, batch: str, n_batch: int, first_word: int, n_words: int
) -> list[str]:
    """Indices of entry number `batch`: each batch dimension has `n_words` words of %args, from
    number `first_word` on, the first being its size."""
    indices: list[str] = []
    for d in reversed(range(n_batch)):
        size = lines.let(f"load i64, ptr {lines.offset('%args', 8 * (first_word + n_words * d))}")
        indices.insert(0, lines.let(f"srem i64 {batch}, {size}"))
        batch = lines.let(f"sdiv i64 {batch}, {size}")
    return indices


def batch_entry(
    lines: Lines, indices: list[str], first_word: int, pointers: tuple[str, ...]
) -> list[str]:
    """Operands at `indices`: after its size, each batch dimension has a stride for each."""
    moved = list(pointers)
    for d, index in enumerate(indices):
        for i in range(len(pointers)):
            word = first_word + (1 + len(pointers)) * d + 1 + i
            stride = lines.let(f"load i64, ptr {lines.offset('%args', 8 * word)}")
            moved[i] = lines.offset(moved[i], lines.let(f"mul i64 {index}, {stride}"))
    return moved


def _shaped(kind: str, lanes: int) -> str:
    return f"<{lanes} x {kind}>" if lanes else kind


def _splat(kind: str, value: int, lanes: int) -> str:
    return f"splat ({kind} {value})" if lanes else str(value)
