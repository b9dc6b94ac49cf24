"""Writes native functions as LLVM text: values by name, loops and branches as `with` blocks.

Keeps     everything is in registers: what a loop carries is a phi, never an alloca; a loop tests
          at its end, so that the text needs no pass to run well.
Touches   nothing: text only.
Not here  what the functions compute (scatter, scans, sorting, compact)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

# Bytes of a scalar type in memory.
TYPE_BYTES: Final = {
    "i8": 1, "i16": 2, "i32": 4, "i64": 8, "i128": 16, "half": 2, "float": 4, "double": 8, "ptr": 8,
}  # fmt: skip


class Loop:
    """A loop being written.

    index    name of the counter
    carried  names of the carried values at the start of an iteration
    next     what the next iteration starts with: set by the body, one for each carried value
    results  carried values after the loop, also when it ran no iteration
    """

    __slots__ = ("carried", "index", "next", "results")

    def __init__(self, index: str, carried: list[str]) -> None:
        self.index = index
        self.carried = carried
        self.next: Sequence[str] = ()
        self.results: list[str] = []


class Writer:
    """Body of one function; `block` is the label of the basic block being written."""

    def __init__(self) -> None:
        self.text: list[str] = ["entry:"]
        self.block = "entry"
        self.count = 0
        self.declarations: set[str] = set()

    def fresh(self, what: str) -> str:
        """A name not used yet, without its sigil."""
        self.count += 1
        return f"{what}{self.count}"

    def put(self, line: str) -> None:
        """Append an instruction that gives no value."""
        self.text.append("  " + line)

    def let(self, instruction: str) -> str:
        """Append an instruction and return the name of its value."""
        name = "%" + self.fresh("v")
        self.text.append(f"  {name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Start a basic block."""
        self.text.append(f"{name}:")
        self.block = name

    def jump(self, name: str) -> None:
        """End the block by going to another."""
        self.put(f"br label %{name}")

    def declare(self, line: str) -> None:
        """Note an intrinsic the function calls."""
        self.declarations.add(f"declare {line}")

    # Arithmetic on 64-bit words ----------------------------------------------

    def add(self, left: str | int, right: str | int) -> str:
        """Sum of two words."""
        return self.let(f"add i64 {left}, {right}")

    def sub(self, left: str | int, right: str | int) -> str:
        """Difference of two words."""
        return self.let(f"sub i64 {left}, {right}")

    def mul(self, left: str | int, right: str | int) -> str:
        """Product of two words."""
        return self.let(f"mul i64 {left}, {right}")

    def compare(self, kind: str, left: str, right: str | int) -> str:
        """i1 of two words; kind as in icmp."""
        return self.let(f"icmp {kind} i64 {left}, {right}")

    def smaller(self, left: str, right: str | int) -> str:
        """Lesser of two signed words."""
        less = self.compare("slt", left, right)
        return self.let(f"select i1 {less}, i64 {left}, i64 {right}")

    def divide(self, number: str, size: str) -> tuple[str, str]:
        """Quotient and remainder of two words that are not negative."""
        quotient = self.let(f"udiv i64 {number}, {size}")
        return quotient, self.sub(number, self.mul(quotient, size))

    # Memory ------------------------------------------------------------------

    def moved(self, pointer: str, n_bytes: str | int) -> str:
        """Pointer moved by a number of bytes."""
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {n_bytes}")

    def at(self, kind: str, pointer: str, index: str | int) -> str:
        """Pointer to element `index` of an array."""
        return self.let(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int = 0) -> str:
        """Value in memory; aligned to its scalar type unless told."""
        return self.let(f"load {kind}, ptr {pointer}, align {align or TYPE_BYTES[kind]}")

    def store(self, kind: str, value: str | int, pointer: str, align: int = 0) -> None:
        """Value to memory."""
        self.put(f"store {kind} {value}, ptr {pointer}, align {align or TYPE_BYTES[kind]}")

    def words(self, names: Sequence[str], pointer: str = "%args") -> dict[str, str]:
        """Argument words in order; names that end in _at are pointers."""
        result: dict[str, str] = {}
        for position, name in enumerate(names):
            kind = "ptr" if name.endswith("_at") else "i64"
            result[name] = self.load(kind, self.at("i64", pointer, position))
        return result

    # Control -----------------------------------------------------------------

    @contextmanager
    def loop(
        self,
        first: str | int,
        end: str | int,
        carried: Sequence[tuple[str, str]] = (),
        step: str | int = 1,
    ) -> Iterator[Loop]:
        """for index in range(first, end, step); carried values are given as (type, first value)."""
        body, done = self.fresh("loop"), self.fresh("done")
        before = self.block
        enters = self.let(f"icmp slt i64 {first}, {end}")
        self.put(f"br i1 {enters}, label %{body}, label %{done}")
        self.label(body)
        names = ["%" + self.fresh("c") for _ in carried]
        loop = Loop("%" + self.fresh("i"), names)
        place = len(self.text)
        yield loop
        index_next = self.let(f"add i64 {loop.index}, {step}")
        more = self.let(f"icmp slt i64 {index_next}, {end}")
        latch = self.block
        self.put(f"br i1 {more}, label %{body}, label %{done}")
        nexts = list(loop.next)
        if len(nexts) != len(carried):
            raise ValueError(f"loop carries {len(carried)} values, its body gave {len(nexts)}")
        phis = [f"  {loop.index} = phi i64 [ {first}, %{before} ], [ {index_next}, %{latch} ]"]
        for name, (kind, start), after in zip(names, carried, nexts, strict=True):
            phis.append(f"  {name} = phi {kind} [ {start}, %{before} ], [ {after}, %{latch} ]")
        self.text[place:place] = phis
        self.label(done)
        loop.results = [
            self.let(f"phi {kind} [ {start}, %{before} ], [ {after}, %{latch} ]")
            for (kind, start), after in zip(carried, nexts, strict=True)
        ]

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Only where an i1 holds; nothing defined inside is seen after."""
        then, end = self.fresh("then"), self.fresh("end")
        self.put(f"br i1 {condition}, label %{then}, label %{end}")
        self.label(then)
        yield
        self.jump(end)
        self.label(end)

    def choice(self, condition: str, kinds: Sequence[str] = ()) -> Choice:
        """Begin the first of two branches that give values; then `otherwise`, then `end`."""
        return Choice(self, condition, kinds)

    # Functions ---------------------------------------------------------------

    def function(self, signature: str, linkage: str = "internal fastcc") -> str:
        """The function's text; the body has ended with a ret."""
        body = "\n".join(self.text)
        return f"define {linkage} {signature} nounwind {{\n{body}\n}}\n"


class Choice:
    """Branches of an if being written; `results` after its end."""

    def __init__(self, writer: Writer, condition: str, kinds: Sequence[str]) -> None:
        self.writer = writer
        self.kinds = kinds
        self.results: list[str] = []
        first, self.second, self.after = (writer.fresh(each) for each in ("yes", "no", "both"))
        writer.put(f"br i1 {condition}, label %{first}, label %{self.second}")
        writer.label(first)

    def otherwise(self, values: Sequence[str] = ()) -> None:
        """End the first branch with its values and begin the second."""
        self.first_values, self.first_block = list(values), self.writer.block
        self.writer.jump(self.after)
        self.writer.label(self.second)

    def end(self, values: Sequence[str] = ()) -> None:
        """End the second branch with its values."""
        writer, last = self.writer, self.writer.block
        writer.jump(self.after)
        writer.label(self.after)
        self.results = [
            writer.let(f"phi {kind} [ {one}, %{self.first_block} ], [ {other}, %{last} ]")
            for kind, one, other in zip(self.kinds, self.first_values, values, strict=True)
        ]


def kernel_of(family: str, writer: Writer, functions: str = "") -> tuple[str, str]:
    """Name and complete text of a kernel whose body was written, with the functions it calls."""
    declarations = "\n".join(sorted(writer.declarations))
    signature = "void @KERNEL(ptr %args, i64 %begin, i64 %end, ptr %scratch)"
    text = f"{declarations}\n{functions}{writer.function(signature, '')}"
    name = f"{family}_{sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@KERNEL(", f"@{name}(")
