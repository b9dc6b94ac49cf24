"""LLVM text of recording a write into an operand: inplace.call_inplace, spelled out.

Keeps     a target without history, whose memory nobody outside sees, and operands that do not share
          part of it; whatever else is handed, whole and before anything happened, to Python.
Touches   writer, record_text.
Not here  torch's refusals (gradients/recording/inplace.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import CALLABLE, ENTRY, NO_VALUE, RUN_TIME, TABLE, Offsets
from flambeau.tensor.native.text.record_text import (
    append_record,
    hand_over,
    operand_key,
    set_site,
    settle,
)
from flambeau.tensor.native.text.writer import NONE, TRUE, Writer


def bind_text(name: str) -> str:
    """Makes a method of a native callable: its tp_descr_get."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %object, ptr %kind)")
    w.branch(w.is_null("%object"), "class", "maybe")
    w.label("maybe")
    w.branch(w.same("%object", NONE), "class", "instance")
    w.label("class")
    w.returns(f"ptr {w.held('%self')}")
    w.label("instance")
    w.returns(f"ptr {w.call('PyMethod_New', '%self', '%object')}")
    return w.text()


def inplace_text(name: str, o: Offsets, *, binary: bool) -> str:
    """The callable of an operator's in-place form: of a tensor, and a tensor or number."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    key_place, record_place = w.owner("key"), w.owner("record")
    site_place, numbers_place = w.owner("site"), w.owner("numbers")
    segment_place, slot_place = w.owner("segment"), w.owner("slot")
    other_place, signature_place = w.owner("other_slot"), w.owner("signature")
    table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
    w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
    w.branch(w.is_null("%names"), "positional", "python")
    w.label("positional")
    given = w.new("and i64 %count, 9223372036854775807")
    w.branch(w.new(f"icmp eq i64 {given}, {2 if binary else 1}"), "counted", "python")
    w.label("counted")
    target = w.load("%arguments")
    other = w.load("%arguments", 8) if binary else "null"
    w.branch(w.local(f"i1 @is_plain(ptr %table, ptr {target})"), "first", "python")
    w.label("first")
    layout = w.needs(w.load(target, o["View._layout"]), "python")
    storage = w.needs(w.load(target, o["View._storage"]), "python")
    number, right = w.place("number", "i64"), w.place("right")
    special = w.place("special_value", "i64")
    if binary:
        operand_key(w, o, other, number, right, special)
        key = f"ptr {w.load(right)}, i64 {w.load(special, 0, 'i64')}"
    else:
        key = f"ptr null, i64 {NO_VALUE}"
    cache = w.load("%self", CALLABLE["cache"])
    entry = w.needs(w.local(f"ptr @find(ptr {cache}, ptr {layout}, {key})"), "python")
    signature = w.load(entry, ENTRY["signature"])
    flags = w.load(entry, ENTRY["flags"], "i64")
    _refuse(w, o, target, other if binary else None, storage, number)

    segment = w.load("%stream", o["Stream.segment"])
    records = w.load(segment, o["Segment.records"])
    w.branch(w.same(w.load(segment, o["Segment.armed"]), signature), "python")
    limit = w.call("PyLong_AsSsize_t", w.load(segment, o["Segment.limit"]))
    room = w.new(f"icmp slt i64 {w.call('PyList_Size', records)}, {limit}")
    w.branch(room, "open", "python")
    w.label("open")
    w.store(w.held(signature), signature_place)
    w.store(w.held(segment), segment_place)
    slot = w.local(f"ptr @slot(ptr %table, ptr {segment}, ptr {target})")
    w.store(w.needs(slot, "failed"), slot_place)
    w.store(w.held(w.load("%table", TABLE["empty"])), numbers_place)
    _own_slots(w, binary, other_place, key_place, numbers_place, other, segment, number, flags)
    w.label("sites")
    set_site(w, o, "%stream", site_place)
    w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), record_place)
    _fill_key(w, binary, key_place, signature, slot_place, other_place)
    append_record(w, o, segment, records, None, "",
                  (record_place, key_place, numbers_place, site_place))  # fmt: skip
    settle(w, o, segment)
    bump(w, o, storage, site_place)
    w.let_go()
    w.returns(f"ptr {w.held(target)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    hand_over(w)
    return w.text()


def _fill_key(
    w: Writer, binary: bool, key_place: str, signature: str, slot_place: str, other_place: str
) -> None:
    """The signature and the slots."""
    key_tuple = w.load(key_place)
    w.call("PyTuple_SetItem", key_tuple, "0", w.held(signature))
    w.call("PyTuple_SetItem", key_tuple, "1", w.take(slot_place))
    if binary:
        w.branch(w.is_null(w.load(other_place)), "keyed_record", "between")
        w.label("between")
        w.call("PyTuple_SetItem", key_tuple, "2", w.take(other_place))
        w.label("keyed_record")


def bump(w: Writer, o: Offsets, storage: str, site_place: str) -> None:
    """Count the write, as saved.bump."""
    version = w.call("PyLong_AsSsize_t", w.load(storage, o["Storage.version"]))
    counted = w.call("PyLong_FromSsize_t", w.new(f"add i64 {version}, 1"))
    for value, slot_name in (
        (w.needs(counted, "failed"), "version"), (w.take(site_place), "write_site")
    ):  # fmt: skip
        before = w.load(storage, o[f"Storage.{slot_name}"])
        w.store(value, storage, o[f"Storage.{slot_name}"])
        w.call("Py_DecRef", before)


def _own_slots(
    w: Writer, binary: bool, other_place: str, key_place: str, numbers_place: str, other: str,
    segment: str, number: str, flags: str,
) -> None:  # fmt: skip
    """Slots of the other operand, the key's tuple, the run-time number."""
    if binary:
        w.branch(w.new(f"icmp eq i64 {w.load(number, 0, 'i64')}, 0"), "two", "one")
        w.label("two")
        slot = w.local(f"ptr @slot(ptr %table, ptr {segment}, ptr {other})")
        w.store(w.needs(slot, "failed"), other_place)
        w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), key_place)
        w.goto("sites")
        w.label("one")
        w.store(w.needs(w.call("PyTuple_New", "2"), "failed"), key_place)
        w.branch(w.new(f"icmp eq i64 {w.new(f'and i64 {flags}, {RUN_TIME}')}, 0"), "sites", "given")
        w.label("given")
        numbers = w.needs(w.call("PyTuple_New", "1"), "failed")
        w.call("PyTuple_SetItem", numbers, "0", w.held(other))
        w.call("Py_DecRef", w.load(numbers_place))
        w.store(numbers, numbers_place)
    else:
        w.store(w.needs(w.call("PyTuple_New", "2"), "failed"), key_place)


def _refuse(
    w: Writer, o: Offsets, target: str, other: str | None, storage: str, number: str
) -> None:
    """Hand over what is not a plain write; afterwards %stream is the thread's."""
    external = w.load(storage, o["Storage.external"])
    w.branch(w.is_null(external), "inside_memory", "maybe_outside")
    w.label("maybe_outside")
    w.branch(w.same(external, NONE), "inside_memory", "python")
    w.label("inside_memory")
    versions = w.call("PyObject_GetAttr", target, w.load("%table", TABLE["versions"]))
    w.needs(versions, "failed")
    w.call("Py_DecRef", versions)
    w.branch(w.same(versions, NONE), "own_versions", "python")
    w.label("own_versions")
    if other is not None:
        w.branch(w.new(f"icmp ne i64 {w.load(number, 0, 'i64')}, 0"), "apart", "compare_memory")
        w.label("compare_memory")
        w.branch(w.same(other, target), "apart", "other_view")
        w.label("other_view")
        w.branch(w.same(w.load(other, o["View._storage"]), storage), "python", "apart")
        w.label("apart")
    w.lines.append("  %stream = call ptr @stream(ptr %table)")
    w.needs("%stream", "failed")
    w.branch(w.same(w.load("%stream", o["Stream.grad_enabled"]), TRUE), "watched", "free")
    w.label("watched")
    _plain_history(w, o, target, "target_plain")
    w.label("target_plain")
    if other is not None:
        w.branch(w.new(f"icmp ne i64 {w.load(number, 0, 'i64')}, 0"), "free", "watch_other")
        w.label("watch_other")
        _plain_history(w, o, other, "free")
    w.label("free")


def _plain_history(w: Writer, o: Offsets, tensor: str, yes: str) -> None:
    """Go on at `yes` where neither the tensor nor its base has a history."""
    w.branch(w.same(w.load(tensor, o["Tensor._autograd"]), NONE), f"{yes}_base", "python")
    w.label(f"{yes}_base")
    base = w.load(tensor, o["Tensor._base"])
    w.branch(w.same(base, NONE), yes, f"{yes}_of")
    w.label(f"{yes}_of")
    w.branch(w.same(w.load(base, o["Tensor._autograd"]), NONE), yes, "python")
