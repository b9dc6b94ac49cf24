"""Stores of a vector: whole, the valid lanes of a partial one, or lane by lane.

Keeps     nothing is ever written past the end of a row; both halves of complex numbers are
          written at once where both are there.
Touches   frame, scopes, vectors.
Not here  when a store happens (rows.py, columns.py).
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau.base.errors import present
from flambeau.codegen.llvm_reader import SUFFIXES, Operand
from flambeau.codegen.loops import Nest, Phase, Store
from flambeau.codegen.nest_text.frame import (
    LINE_BYTES,
    Code,
    Frame,
    memory_type,
    reader_into,
    to_memory,
)
from flambeau.codegen.nest_text.scopes import RowScope
from flambeau.codegen.nest_text.vectors import VectorScope, valid_lanes


class VectorStore:
    """One value to be stored at the position of a VectorScope.

    Made while the scope's lines are being written, before any store of the iteration.
    """

    def __init__(self, scope: VectorScope, access: int, operand: Operand) -> None:
        frame = scope.frame
        self.scope = scope
        self.access = access
        self.scalar = memory_type(operand.dtype)
        self.text = to_memory(scope.reader, operand)
        gathered = frame.nest.accesses[access].index is not None
        self.by_lane = gathered or frame.nest.accesses[access].inner != "unit"
        self.second: VectorStore | None = None  # of pairs stored as one
        self.start = present(scope.outer, "the row of a vector").base(access)
        # -1 where out of range: such a lane is not stored.
        self.indices = scope.checked_indices(access, -1) if gathered else ""

    def address(self, code: Code) -> str:
        """Where the first lane goes (unit stores)."""
        position = self.scope.position
        if self.second is not None:
            position = code.value(f"shl i64 {position}, 1")
        return code.value(f"getelementptr {self.scalar}, ptr {self.start}, i64 {position}")


def sorted_out(
    frame: Frame, stores: list[VectorStore]
) -> tuple[list[VectorStore], list[VectorStore], list[VectorStore]]:
    """(unit stores, first halves whose `second` is stored with them, what goes lane by lane)."""
    halves = {frame.nest.accesses[each.access].half: each for each in stores}
    first_halves: list[VectorStore] = []
    joined: set[VectorStore] = set()
    for half, each in halves.items():
        second = None if half is None or half[1] == 2 else halves.get((half[0], 2))
        if second is not None:
            each.second = second
            first_halves.append(each)
            joined |= {each, second}
    rest = [each for each in stores if each.by_lane and each not in joined]
    return [each for each in stores if not each.by_lane], first_halves, rest


def may_pass_caches(nest: Nest, phase: Phase) -> list[int]:
    """Accesses that the loop of a phase may store past the caches; see past_caches."""
    found = []
    for each in phase.loop:
        if isinstance(each, Store):
            access = nest.accesses[each.access]
            if access.half is not None or access.dtype.itemsize < 4:
                return []
            if access.inner == "unit" and access.index is None:
                found.append(each.access)
    return found


def past_caches(frame: Frame, row: RowScope, stores: list[VectorStore], first: str) -> str:
    """i1, known before the loop: whether stores from position `first` on are not to go through the
    caches, or nothing where they never are. A line that is written whole need not be read first
    then; but it is not there for who reads it next, so only what the caches would not keep anyway
    is stored so, and nothing that the kernel also reads."""
    if not stores or any(each.second or each.scalar in ("i8", "i16") for each in stores):
        return ""
    reader = row.reader
    holds = frame.is_large([each.access for each in stores])
    for each in stores:
        start = reader.emit(f"getelementptr {each.scalar}, ptr {each.start}, i64 {first}")
        bits = reader.emit(f"ptrtoint ptr {start} to i64")
        low = reader.emit(f"and i64 {bits}, {LINE_BYTES - 1}")
        whole = reader.emit(f"icmp eq i64 {low}, 0")
        holds = reader.emit(f"and i1 {holds}, {whole}")
    return holds


def store_past_caches(
    code: Code, stores: list[VectorStore], holds: str, beside: Callable[[Code], None]
) -> None:
    """Every lane of every unit store; not through the caches where the i1 `holds` does, and then
    with what `beside` writes."""
    streamed, plain, after = (code.module.fresh(each) for each in ("past", "plain", "stored"))
    code.branch(holds, streamed, plain)
    code.label(streamed)
    beside(code)
    for each in stores:
        full, address = each.scope.reader.type_of(each.scalar), each.address(code)
        code.do(f"store {full} {each.text}, ptr {address}, align {LINE_BYTES}, !nontemporal !0")
    code.jump(after)
    code.label(plain)
    store_whole(code, stores)
    code.jump(after)
    code.label(after)


def store_whole(code: Code, stores: list[VectorStore]) -> None:
    """Every lane of every unit store and pair."""
    for each in stores:
        reader = each.scope.reader
        full = reader.type_of(each.scalar)
        if each.second is not None:
            lanes = reader.lanes
            order = ", ".join(f"i32 {n}, i32 {lanes + n}" for n in range(lanes))
            text = code.value(
                f"shufflevector {full} {each.text}, {full} {each.second.text}, "
                f"<{2 * lanes} x i32> <{order}>"
            )
            whole = f"<{2 * lanes} x {each.scalar}>"
            code.do(f"store {whole} {text}, ptr {each.address(code)}, align 1")
            continue
        code.do(f"store {full} {each.text}, ptr {each.address(code)}, align 1")


def store_part(code: Code, frame: Frame, stores: list[VectorStore], left: str) -> None:
    """The first `left` lanes (fewer than all) of unit stores and pairs."""
    pairs = [(each, each.second) for each in stores if each.second is not None]
    store_by_lane(code, frame, [one for pair in pairs for one in pair], left)
    stores = [each for each in stores if each.second is None]
    # AVX-512 masks stores at no cost; AVX2 has masks for 32 and 64 bits alone, slow on some CPUs.
    masked = [each for each in stores if frame.lanes == 32 and each.scalar not in ("i8", "i16")]
    if masked:
        _store_masked(code, frame, masked, left)
    _store_pieces(code, frame, [each for each in stores if each not in masked], left)


def _store_masked(code: Code, frame: Frame, stores: list[VectorStore], left: str) -> None:
    reader = reader_into(frame, code.lines, frame.lanes)
    valid = valid_lanes(reader, left)
    mask = reader.type_of("i1")
    for each in stores:
        full = reader.type_of(each.scalar)
        name = f"@llvm.masked.store.v{frame.lanes}{SUFFIXES[each.scalar]}.p0"
        frame.module.declares[name] = f"declare void {name}({full}, ptr, i32 immarg, {mask})"
        address = each.address(code)
        code.do(f"call void {name}({full} {each.text}, ptr {address}, i32 1, {mask} {valid})")


def _store_pieces(code: Code, frame: Frame, stores: list[VectorStore], left: str) -> None:
    """Halves, quarters ... of the vector, by the bits of `left`."""
    if not stores:
        return
    slots, addresses = [], []
    for each in stores:
        full = each.scope.reader.type_of(each.scalar)
        slots.append(frame.slot(full))
        code.do(f"store {full} {each.text}, ptr {slots[-1]}")
        addresses.append(each.address(code))
    size = frame.lanes // 2
    while size:
        copy, after = frame.module.fresh("copy"), frame.module.fresh("copied")
        bit = code.value(f"and i64 {left}, {size}")
        code.branch(code.value(f"icmp ne i64 {bit}, 0"), copy, after)
        code.label(copy)
        done = code.value(f"and i64 {left}, {-2 * size}")
        for each, slot, address in zip(stores, slots, addresses, strict=True):
            of = each.scalar if size == 1 else f"<{size} x {each.scalar}>"
            source = code.value(f"getelementptr {each.scalar}, ptr {slot}, i64 {done}")
            target = code.value(f"getelementptr {each.scalar}, ptr {address}, i64 {done}")
            part = code.value(f"load {of}, ptr {source}, align 1")
            code.do(f"store {of} {part}, ptr {target}, align 1")
        code.jump(after)
        code.label(after)
        size //= 2


def store_by_lane(code: Code, frame: Frame, stores: list[VectorStore], left: str) -> None:
    """The first min(left, lanes) lanes of stores that are not unit, in order of the lanes."""
    if not stores:
        return
    count = code.smaller(left, str(frame.lanes))
    slots, index_slots = [], []
    for each in stores:
        slots.append(frame.slot(each.scope.reader.type_of(each.scalar)))
        code.do(f"store {each.scope.reader.type_of(each.scalar)} {each.text}, ptr {slots[-1]}")
        index_slots.append("")
        if each.indices:
            longs = each.scope.reader.type_of("i64")
            index_slots[-1] = frame.slot(longs)
            code.do(f"store {longs} {each.indices}, ptr {index_slots[-1]}")
    before = code.block
    loop, after = frame.module.fresh("lane"), frame.module.fresh("stored")
    code.jump(loop)
    code.label(loop)
    lane, following = "%" + frame.module.fresh("n"), "%" + frame.module.fresh("n")
    code.do(f"{lane} = phi i64 [0, %{before}], [{following}, %{loop}]")
    for each, slot, index_slot in zip(stores, slots, index_slots, strict=True):
        access = frame.nest.accesses[each.access]
        inner = code.value(f"add i64 {each.scope.position}, {lane}")
        address = each.start
        if access.inner == "pair":
            element = code.value(f"shl i64 {inner}, 1")
            address = code.value(f"getelementptr {each.scalar}, ptr {address}, i64 {element}")
        elif access.inner == "strided":
            moved = code.value(f"mul i64 {inner}, {frame.word(f'inner_stride.{each.access}')}")
            address = code.value(f"getelementptr i8, ptr {address}, i64 {moved}")
        elif access.inner == "unit" and not access.row_level:
            address = code.value(f"getelementptr {each.scalar}, ptr {address}, i64 {inner}")
        if index_slot:
            where = code.value(f"getelementptr i64, ptr {index_slot}, i64 {lane}")
            index = code.value(f"load i64, ptr {where}")
            moved = code.value(f"mul i64 {index}, {frame.word(f'index_stride.{each.access}')}")
            address = code.value(f"getelementptr i8, ptr {address}, i64 {moved}")
            bad = code.value(f"icmp slt i64 {index}, 0")
            address = code.value(f"select i1 {bad}, ptr {frame.sink()}, ptr {address}")
        source = code.value(f"getelementptr {each.scalar}, ptr {slot}, i64 {lane}")
        one = code.value(f"load {each.scalar}, ptr {source}, align 1")
        code.do(f"store {each.scalar} {one}, ptr {address}, align 1")
    code.do(f"{following} = add i64 {lane}, 1")
    code.branch(code.value(f"icmp slt i64 {following}, {count}"), loop, after)
    code.label(after)
