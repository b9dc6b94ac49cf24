"""LLVM text of a view's slot in the open segment: Segment.touch, spelled out.

Keeps     between two looks at a list's length nothing runs Python: no allocation the collector
          counts, no call of a Python function.
Touches   writer, tables.
Not here  recording itself (record_text.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import TABLE, Offsets, new_object
from flambeau.tensor.native.text.writer import NONE, TYPE_OFFSET, Writer


def slot_text(o: Offsets) -> str:
    """@slot(table, segment, view): the view's slot, a new reference; touches it where needed."""
    w = Writer("define internal ptr @slot(ptr %table, ptr %segment, ptr %view)")
    arguments = w.place("arguments", "ptr", 2)
    place = w.needs(w.load("%view", o["View._place"]), "touch")
    kind = w.load(place, TYPE_OFFSET)
    w.branch(w.same(kind, w.load("%table", TABLE["storage"])), "whole", "part")
    w.label("whole")
    segment = w.load(place, o["Storage.segment"])
    w.branch(w.same(segment, "%segment"), "known_whole", "touch")
    w.label("known_whole")
    slot = w.needs(w.load(place, o["Storage.slot"]), "touch")
    w.returns(f"ptr {w.held(slot)}")
    w.label("part")
    w.branch(w.same(kind, w.load("%table", TABLE["place"])), "is_place", "touch")
    w.label("is_place")
    segment = w.load(place, o["Place.segment"])
    w.branch(w.same(segment, "%segment"), "known_part", "touch")
    w.label("known_part")
    slot = w.needs(w.load(place, o["Place.slot"]), "touch")
    w.returns(f"ptr {w.held(slot)}")
    w.label("touch")
    slot = w.local("ptr @touch(ptr %table, ptr %segment, ptr %view)")
    w.branch(w.is_null(slot), "maybe_python", "touched")
    w.label("touched")
    w.returns(f"ptr {slot}")
    w.label("maybe_python")
    w.needs_no_error("failed")
    w.store("%segment", arguments)
    w.store("%view", arguments, 8)
    name = w.load("%table", TABLE["touch"])
    w.returns(f"ptr {w.call('PyObject_VectorcallMethod', name, arguments, '2', 'null')}")
    w.label("failed")
    w.returns("ptr null")
    return w.text()


def append_number(w: Writer, numbers: str, value: str) -> None:
    """Append an integer to a list."""
    number = w.needs(w.call("PyLong_FromSsize_t", value), "failed")
    status = w.call("PyList_Append", numbers, number)
    w.call("Py_DecRef", number)
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")


def touch_text(o: Offsets) -> str:
    """@touch(table, segment, view): Segment.touch, spelled out; null without an exception where
    the memory is shared with the outside or another segment has work on it."""
    w = Writer("define internal ptr @touch(ptr %table, ptr %segment, ptr %view)")
    slot_place, key_place, made_place = w.owner("slot"), w.owner("key"), w.owner("made")
    code_place = w.place("code", "i64")
    storage = w.needs(w.load("%view", o["View._storage"]), "python")
    external = w.load(storage, o["Storage.external"])
    w.branch(w.is_null(external), "inside_memory", "maybe_outside")
    w.label("maybe_outside")
    w.branch(w.same(external, NONE), "inside_memory", "python")
    w.label("inside_memory")
    touched = w.load("%segment", o["Segment.touched"])
    offsets = w.load("%segment", o["Segment.offsets"])
    zero = w.load("%table", TABLE["zero"])
    own = w.load(storage, o["Storage.segment"])
    w.branch(w.same(own, "%segment"), "numbered", "maybe_take")
    w.label("maybe_take")
    w.branch(w.same(own, NONE), "take", "python")
    w.label("take")
    _take(w, o, slot_place, touched, storage, offsets, zero)
    w.label("numbered")
    layout, offset = w.load("%view", o["View._layout"]), w.load("%view", o["View._offset"])
    storage_slot = w.load(storage, o["Storage.slot"])
    same_layout = w.same(layout, w.load(storage, o["Storage.layout"]))
    at_start = w.new(f"icmp eq i64 {w.call('PyLong_AsSsize_t', offset)}, 0")
    w.branch(w.new(f"and i1 {same_layout}, {at_start}"), "whole", "part")
    w.label("whole")
    replace(w, "%view", o["View._place"], w.held(storage))
    w.returns(f"ptr {w.held(storage_slot)}")

    _touch_part(
        w, o, key_place, slot_place, storage_slot, code_place, touched, made_place, layout,
        offset, offsets,
    )  # fmt: skip
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    w.label("python")
    w.returns("ptr null")
    return w.text()


def _take(
    w: Writer, o: Offsets, slot_place: str, touched: str, storage: str, offsets: str,
    zero: str,
) -> None:  # fmt: skip
    """A storage that was there before: a slot for its whole view."""
    inputs = w.load("%segment", o["Segment.inputs"])
    number = w.new(f"sub i64 -1, {w.call('PyList_Size', inputs)}")
    position = w.new(f"sub i64 -1, {w.call('PyList_Size', touched)}")
    w.store(w.needs(w.call("PyLong_FromSsize_t", position), "failed"), slot_place)
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', inputs, storage)}, 0"), "failed")
    doubled = w.new(f"shl i64 {number}, 1")
    append_number(w, touched, w.new(f"add i64 {doubled}, 1"))
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', offsets, zero)}, 0"), "failed")
    replace(w, storage, o["Storage.slot"], w.take(slot_place))
    replace(w, storage, o["Storage.segment"], w.held("%segment"))


def _touch_part(
    w: Writer, o: Offsets, key_place: str, slot_place: str, storage_slot: str, code_place: str,
    touched: str, made_place: str, layout: str, offset: str, offsets: str,
) -> None:  # fmt: skip
    """A view that does not cover its storage: its slot and a place of its own."""
    w.label("part")
    key = w.needs(w.call("PyTuple_New", "3"), "failed")
    w.store(key, key_place)
    for place, value in enumerate((storage_slot, layout, offset)):
        w.call("PyTuple_SetItem", key, str(place), w.held(value))
    views = w.load("%segment", o["Segment.views"])
    found = w.call("PyDict_GetItemWithError", views, key)
    w.branch(w.is_null(found), "new_view", "old_view")
    w.label("old_view")
    w.store(w.held(found), slot_place)
    w.goto("place")
    w.label("new_view")
    position = w.new(f"sub i64 -1, {w.call('PyList_Size', touched)}")
    w.store(w.needs(w.call("PyLong_FromSsize_t", position), "failed"), slot_place)
    own_slot = w.call("PyLong_AsSsize_t", storage_slot)
    w.store(own_slot, code_place, 0, "i64")
    w.branch(w.new(f"icmp sge i64 {own_slot}, 0"), "coded", "coded_input")
    w.label("coded_input")
    at = w.new(f"sub i64 -1, {own_slot}")
    word = w.call("PyLong_AsSsize_t", w.needs(w.call("PyList_GetItem", touched, at), "failed"))
    w.store(w.new(f"ashr i64 {word}, 1"), code_place, 0, "i64")
    w.label("coded")
    append_number(w, touched, w.new(f"shl i64 {w.load(code_place, 0, 'i64')}, 1"))
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', offsets, offset)}, 0"), "failed")
    status = w.call("PyDict_SetItem", views, key, w.load(slot_place))
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")
    w.label("place")
    made = w.needs(new_object(w, "place"), "failed")
    w.store(made, made_place)
    w.put(w.held("%segment"), made, o["Place.segment"])
    w.put(w.held(w.load(slot_place)), made, o["Place.slot"])
    places = w.load("%segment", o["Segment.places"])
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', places, made)}, 0"), "failed")
    replace(w, "%view", o["View._place"], w.take(made_place))
    w.call("Py_DecRef", w.take(key_place))
    w.returns(f"ptr {w.take(slot_place)}")


def replace(w: Writer, base: str, offset: int, value: str) -> None:
    """Set a slot to a reference it owns from now on."""
    before = w.load(base, offset)
    w.store(value, base, offset)
    w.call("Py_DecRef", before)
