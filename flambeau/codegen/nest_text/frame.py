"""The frame of a kernel's text: its words, stack slots, and the walk over units and rows.

Keeps     divisions happen once per call; from row to row pointers move by additions.
Touches   loops, llvm_reader.
Not here  what a row does (rows.py, columns.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.llvm_reader import SCALAR_TYPES, LlvmReader, Module, Operand
from flambeau.codegen.loops import BLOCK, ROW_BLOCK, Nest

COLUMN_KINDS: Final = ("columns", "column_blocks")
BLOCK_KINDS: Final = ("blocks", "column_blocks")
# Bytes of a result that caches do not keep until it is read.
LARGE_BYTES: Final = 16 << 20
LINE_BYTES: Final = 64


def memory_type(of: dtype) -> str:
    """LLVM type of one element in memory."""
    return "i8" if of is dtypes.bool_ else SCALAR_TYPES[of]


def to_memory(reader: LlvmReader, operand: Operand) -> str:
    """Name of the operand in the form that memory holds."""
    if operand.dtype is not dtypes.bool_:
        return operand.text
    return reader.emit(f"zext {reader.type_of('i1')} {operand.text} to {reader.type_of('i8')}")


def from_memory(reader: LlvmReader, text: str, of: dtype) -> Operand:
    """Operand for a value just loaded."""
    if of is not dtypes.bool_:
        return Operand(text, of)
    zero = reader.splat("0", "i8")
    return reader.operand(f"icmp ne {reader.type_of('i8')} {text}, {zero}", of)


class Code:
    """Lines of blocks in order; `block` is the label that a phi names for what comes next."""

    __slots__ = ("block", "lines", "module")

    def __init__(self, module: Module, block: str = "entry") -> None:
        self.lines: list[str] = []
        self.module = module
        self.block = block

    def value(self, instruction: str) -> str:
        """Writes an instruction; its result's name."""
        name = "%" + self.module.fresh("n")
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Writes an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Begins a block."""
        self.lines.append(f"{name}:")
        self.block = name

    def jump(self, name: str) -> None:
        """Ends the block."""
        self.lines.append(f"  br label %{name}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Ends the block."""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def smaller(self, left: str, right: str) -> str:
        """The smaller of two i64."""
        holds = self.value(f"icmp slt i64 {left}, {right}")
        return self.value(f"select i1 {holds}, i64 {left}, i64 {right}")

    def absorb(self, lines: list[str]) -> None:
        """Takes over instructions written elsewhere, and empties their list. The block goes on
        after them, unless they begin blocks of their own."""
        for line in reversed(lines):
            if not line.startswith(" "):
                self.block = line.removesuffix(":")
                break
        self.lines += lines
        lines.clear()

    def append(self, region: Code) -> None:
        """Takes over whole blocks; goes on in the last of them."""
        self.lines += region.lines
        self.block = region.block


def _divided(code: Code, number: str, by: str) -> tuple[str, str]:
    """Quotient and remainder of two i64 that are not negative."""
    quotient = code.value(f"udiv i64 {number}, {by}")
    return quotient, code.value(f"sub i64 {number}, {code.value(f'mul i64 {quotient}, {by}')}")


class Frame:
    """One kernel function under construction.

    entry   scalar reader whose lines run once per call (words, constants, scratch rows)
    """

    def __init__(self, nest: Nest, lanes: int, has_avx512: bool = False) -> None:
        self.nest = nest
        self.lanes = lanes
        self.module = Module(has_avx512)
        self.entry = LlvmReader(1, self.module)
        self.allocas: list[str] = []
        self._positions = {name: i for i, name in enumerate(nest.argument_names)}
        self._words: dict[str, str] = {}
        self._lane_strides: dict[int, list[str]] = {}
        self._scratch: list[str] = []
        self._sink: str | None = None
        self.pointer_slots: list[str] = []
        self.index_slots: list[str] = []
        self._unit = self._part = ""
        self._passes_caches = ""  # i1: some stores may have gone past the caches
        self._is_large: dict[tuple[int, ...], str] = {}
        if nest.n_outer:
            self.pointer_slots = [self.slot("ptr") for _ in nest.accesses]
            self.index_slots = [self.slot("i64") for _ in range(nest.n_outer)]

    # ---- words, slots

    def slot(self, of: str, count: int = 1) -> str:
        """Stack memory that lives as long as the call; what holds rows is aligned to lines."""
        name = "%" + self.module.fresh("slot")
        aligned = f", align {LINE_BYTES}" if count >= 256 else ""
        self.allocas.append(f"  {name} = alloca {of}, i64 {count}{aligned}")
        return name

    def word_address(self, name: str) -> str:
        """Address of a run-time word."""
        return self.entry.emit(f"getelementptr i64, ptr %args, i64 {self._positions[name]}")

    def word(self, name: str) -> str:
        """A run-time word, loaded once per call; pointers as ptr, the rest as i64."""
        found = self._words.get(name)
        if found is None:
            of = "ptr" if name.startswith(("pointer.", "error.")) else "i64"
            found = self.entry.emit(f"load {of}, ptr {self.word_address(name)}")
            self._words[name] = found
        return found

    def last(self) -> str:
        """The last valid position along inner."""
        found = self._words.get("last")
        if found is None:
            found = self.entry.emit(f"sub i64 {self.word('inner_size')}, 1")
            self._words["last"] = found
        return found

    def lane_strides(self, access: int) -> list[str]:
        """lane * inner stride for every lane of a strided access."""
        found = self._lane_strides.get(access)
        if found is None:
            stride = self.word(f"inner_stride.{access}")
            found = ["0", stride]
            for lane in range(2, self.lanes):
                found.append(self.entry.emit(f"mul i64 {stride}, {lane}"))
            self._lane_strides[access] = found
        return found

    def is_large(self, stores: list[int]) -> str:
        """i1: what these accesses store is more than caches keep, and none of it is also read."""
        found = self._is_large.get(tuple(stores))
        if found is not None:
            return found
        entry, nest = self.entry, self.nest
        count = self.word("inner_size")
        for d in range(nest.n_outer):
            count = entry.emit(f"mul i64 {count}, {self.word(f'outer_size.{d}')}")
        size = min(nest.accesses[each].dtype.itemsize for each in stores)
        holds = entry.emit(f"icmp uge i64 {count}, {LARGE_BYTES // size}")
        for store in stores:
            for other, access in enumerate(nest.accesses):
                if other not in stores and not access.row_level:
                    pair = f"{self.word(f'pointer.{store}')}, {self.word(f'pointer.{other}')}"
                    apart = entry.emit(f"icmp ne ptr {pair}")
                    holds = entry.emit(f"and i1 {holds}, {apart}")
        if self._passes_caches:
            self._passes_caches = entry.emit(f"or i1 {self._passes_caches}, {holds}")
        else:
            self._passes_caches = holds
        self._is_large[tuple(stores)] = holds
        return holds

    def has_next(self, code: Code) -> str:
        """i1: the unit after this one is asked for, too, and its row is the next one of the last
        outer dimension."""
        unit = code.value(f"load i64, ptr {self._unit}")
        holds = code.value(f"icmp slt i64 {code.value(f'add i64 {unit}, 1')}, %end")
        last = self.nest.n_outer - 1
        index = code.value(f"load i64, ptr {self.index_slots[last]}")
        size = self.word(f"outer_size.{last}")
        inside = code.value(f"icmp slt i64 {code.value(f'add i64 {index}, 1')}, {size}")
        return code.value(f"and i1 {holds}, {inside}")

    def sink(self) -> str:
        """Where stores go that must not happen."""
        if self._sink is None:
            self._sink = self.slot("i64")
        return self._sink

    def scratch_row(self, number: int) -> str:
        """Start of a scratch row; see Nest.scratch_bytes."""
        if not self._scratch:
            self._scratch.append("%scratch")
            for of in self.nest.scratch[:-1]:
                padded = self.entry.emit(f"add i64 {self.word('inner_size')}, 32")
                n_bytes = self.entry.emit(f"mul i64 {padded}, {of.itemsize}")
                n_bytes = self.entry.emit(f"add i64 {n_bytes}, 63")
                n_bytes = self.entry.emit(f"and i64 {n_bytes}, -64")
                start = self._scratch[-1]
                self._scratch.append(
                    self.entry.emit(f"getelementptr i8, ptr {start}, i64 {n_bytes}")
                )
        return self._scratch[number]

    # ---- units and rows

    def write_rows(self, code: Code, body: Callable[[Code, str, str, str], None]) -> None:
        """Writes the loop over units; body(code, first, stop, part) writes one row's work.

        first, stop   range along inner (maps, columns kinds)
        part          number of the block (blocks) or reduced block (column_blocks), else ""
        """
        kind = self.nest.kind
        if kind in BLOCK_KINDS:
            self._write_single_units(code, body)
        elif self.nest.is_map or kind == "columns":
            self._write_merged_units(code, body)
        else:
            self._start(code, "%begin")
            self._unit = self.slot("i64")
            code.do(f"store i64 %begin, ptr {self._unit}")
            code.jump("row")
            code.label("row")
            body(code, "0", self.word("inner_size"), "")
            unit = code.value(f"load i64, ptr {self._unit}")
            unit = code.value(f"add i64 {unit}, 1")
            code.do(f"store i64 {unit}, ptr {self._unit}")
            self._next_row(code, unit)

    def _write_merged_units(self, code: Code, body: Callable[[Code, str, str, str], None]) -> None:
        """Neighbouring blocks of one row are one range along inner."""
        size, width = self.word("inner_size"), self.word("inner_block")
        if not self.nest.n_outer:
            first = code.value(f"mul i64 %begin, {width}")
            stop = code.smaller(code.value(f"mul i64 %end, {width}"), size)
            body(code, first, stop, "")
            code.jump("exit")
            return
        n_parts = self._n_parts(code, size, width)
        self._begin(code, *_divided(code, "%begin", n_parts))
        unit = code.value(f"load i64, ptr {self._unit}")
        part = code.value(f"load i64, ptr {self._part}")
        left = code.value(f"sub i64 %end, {unit}")
        here = code.smaller(code.value(f"sub i64 {n_parts}, {part}"), left)
        code.do(f"store i64 {code.value(f'add i64 {unit}, {here}')}, ptr {self._unit}")
        code.do(f"store i64 0, ptr {self._part}")
        first = code.value(f"mul i64 {part}, {width}")
        stop = code.value(f"mul i64 {code.value(f'add i64 {part}, {here}')}, {width}")
        body(code, first, code.smaller(stop, size), "")
        self._next_row(code, code.value(f"load i64, ptr {self._unit}"))

    def _write_single_units(self, code: Code, body: Callable[[Code, str, str, str], None]) -> None:
        """Every unit alone: (row, block) or (row, column block, reduced block), last fastest."""
        size, width = self.word("inner_size"), self.word("inner_block")
        columns = self.nest.kind == "column_blocks"
        if columns:
            n_sides = self._n_parts(code, size, width)
            n_parts = self._n_parts(code, self.word("reduced_size"), str(ROW_BLOCK))
        else:
            n_parts = self._n_parts(code, size, str(BLOCK))
        row, part = _divided(code, "%begin", n_parts)
        side_slot = ""
        if columns:
            row, side = _divided(code, row, n_sides)
            side_slot = self.slot("i64")
            code.do(f"store i64 {side}, ptr {side_slot}")
        self._begin(code, row, part)
        part = code.value(f"load i64, ptr {self._part}")
        if columns:
            side = code.value(f"load i64, ptr {side_slot}")
            first = code.value(f"mul i64 {side}, {width}")
            stop = code.smaller(code.value(f"add i64 {first}, {width}"), size)
        else:
            first = code.value(f"mul i64 {part}, {BLOCK}")
            stop = code.smaller(code.value(f"add i64 {first}, {BLOCK}"), size)
        body(code, first, stop, part)
        unit = code.value(f"load i64, ptr {self._unit}")
        unit = code.value(f"add i64 {unit}, 1")
        code.do(f"store i64 {unit}, ptr {self._unit}")
        self._advance(code, self._part, n_parts, "part")
        if columns:
            self._advance(code, side_slot, n_sides, "side")
        self._next_row(code, unit)

    def _begin(self, code: Code, row: str, part: str) -> None:
        """Begin the loop over units at one part of a row."""
        self._start(code, row)
        self._unit, self._part = self.slot("i64"), self.slot("i64")
        code.do(f"store i64 %begin, ptr {self._unit}")
        code.do(f"store i64 {part}, ptr {self._part}")
        code.jump("row")
        code.label("row")

    def _advance(self, code: Code, slot: str, count: str, name: str) -> None:
        """slot += 1; goes on below only when it came round."""
        old = code.value(f"load i64, ptr {slot}")
        new = code.value(f"add i64 {old}, 1")
        round_ = code.value(f"icmp eq i64 {new}, {count}")
        code.do(f"store i64 {code.value(f'select i1 {round_}, i64 0, i64 {new}')}, ptr {slot}")
        code.branch(round_, f"{name}.round", f"{name}.more")
        code.label(f"{name}.more")
        unit = code.value(f"load i64, ptr {self._unit}")
        code.branch(code.value(f"icmp slt i64 {unit}, %end"), "row", "exit")
        code.label(f"{name}.round")

    @staticmethod
    def _n_parts(code: Code, size: str, width: str) -> str:
        padded = code.value(f"add i64 {size}, {code.value(f'sub i64 {width}, 1')}")
        return code.value(f"udiv i64 {padded}, {width}")

    def _start(self, code: Code, row: str) -> None:
        """Index and pointer slots of a row, by division."""
        n_outer = self.nest.n_outer
        if not n_outer:
            return
        indices = [""] * n_outer
        for d in range(n_outer - 1, 0, -1):
            size = self.word(f"outer_size.{d}")
            row, indices[d] = _divided(code, row, size)
        indices[0] = row
        for slot, index in zip(self.index_slots, indices, strict=True):
            code.do(f"store i64 {index}, ptr {slot}")
        for a, slot in enumerate(self.pointer_slots):
            offset = "0"
            for d, index in enumerate(indices):
                moved = code.value(f"mul i64 {index}, {self.word(f'stride.{a}.{d}')}")
                offset = code.value(f"add i64 {offset}, {moved}")
            start = self.word(f"pointer.{a}")
            pointer = code.value(f"getelementptr i8, ptr {start}, i64 {offset}")
            code.do(f"store ptr {pointer}, ptr {slot}")

    def _next_row(self, code: Code, unit: str) -> None:
        """Moves the slots to the next row while units are left; last dimension fastest."""
        n_outer = self.nest.n_outer
        if not n_outer:
            code.jump("exit")
            return
        code.branch(code.value(f"icmp slt i64 {unit}, %end"), f"step.{n_outer - 1}", "exit")
        for d in range(n_outer - 1, -1, -1):
            code.label(f"step.{d}")
            if d < n_outer - 1:
                code.do(f"store i64 0, ptr {self.index_slots[d + 1]}")
            index = code.value(f"load i64, ptr {self.index_slots[d]}")
            index = code.value(f"add i64 {index}, 1")
            code.do(f"store i64 {index}, ptr {self.index_slots[d]}")
            for a, slot in enumerate(self.pointer_slots):
                move = self.word(f"stride.{a}.{d}")
                if d < n_outer - 1:
                    size, inside = self.word(f"outer_size.{d + 1}"), f"stride.{a}.{d + 1}"
                    back = code.value(f"mul i64 {size}, {self.word(inside)}")
                    move = code.value(f"sub i64 {move}, {back}")
                old = code.value(f"load ptr, ptr {slot}")
                new = code.value(f"getelementptr i8, ptr {old}, i64 {move}")
                code.do(f"store ptr {new}, ptr {slot}")
            if d:
                more = code.value(f"icmp slt i64 {index}, {self.word(f'outer_size.{d}')}")
                code.branch(more, "row", f"step.{d - 1}")
            else:
                code.jump("row")

    def text(self, name: str, code: Code) -> str:
        """The whole module."""
        lines = [
            f"define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{",
            "entry:",
            *self.allocas,
            *self.entry.lines,
            "  %some = icmp slt i64 %begin, %end",
            "  br i1 %some, label %start, label %exit",
            "start:",
            *code.lines,
            "exit:",
            *self._leaving(),
            "  ret void",
            "}",
            *self.module.declares.values(),
            "!0 = !{i32 1}",
            '!1 = !{!"branch_weights", i32 2000, i32 1}',
            '!2 = !{!"branch_weights", i32 1, i32 2000}',
            "",
        ]
        return "\n".join(lines)

    def _leaving(self) -> list[str]:
        """What went past the caches is seen by all before the units count as done."""
        if not self._passes_caches:
            return []
        name = "@llvm.x86.sse.sfence"
        self.module.declares[name] = f"declare void {name}()"
        return [
            f"  br i1 {self._passes_caches}, label %settle, label %leave",
            "settle:",
            f"  call void {name}()",
            "  br label %leave",
            "leave:",
        ]


def reader_into(frame: Frame, lines: list[str], lanes: int) -> LlvmReader:
    """A reader that writes into lines already begun."""
    reader = LlvmReader(lanes, frame.module)
    reader.lines = lines
    return reader
