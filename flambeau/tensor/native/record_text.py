"""LLVM text of recording one operator: closures.py, spelled out once more.

Keeps     does what the closure does while nothing surprises; anything else is handed, whole and
          before anything happened, to the closure itself. Nothing that can run Python stands
          between taking a slot and the append that commits.
Touches   writer.
Not here  histories (attach_text.py), writes (inplace_text.py), the tables' contents (library.py).

An operator's callable is an object with the words of `CALLABLE` behind its head, `TABLE` is one
for all. A way from operands to signature is an entry of the callable's cache, `ENTRY`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flambeau.tensor.native.writer import NONE, TRUE, TYPE_OFFSET, Writer

Offsets = Mapping[str, int]


def words(names: str, start: int = 0) -> dict[str, int]:
    """Offsets of words that follow one another."""
    return {name: start + 8 * n for n, name in enumerate(names.split())}


CALLABLE: Final = words(
    "vectorcall dict weak table cache python specials plan saves extra attach mark rest", 16
)
TABLE: Final = words(
    "tensor storage place node local zero empty stream touch versions rebased version learn late thread "
    "current codes sites special sequence dtype creation dim index nothing own unplaced conformed output leaf as_edges one no_grad"
)
ENTRY: Final = words("left right value signature layout attributes layouts flags")
ENTRY_BYTES: Final = 64
CACHE_BITS: Final = 6  # ways a callable keeps
PROBES: Final = 4
CODE_BITS: Final = 8
SITE_BITS: Final = 9
GOLDEN: Final = -7046029254386353131  # 2^64 over the golden ratio: spreads addresses
# Flags of an entry: the number is given at run time; results can carry gradients.
RUN_TIME: Final = 1
GRADIENT: Final = 2
NO_VALUE: Final = 0
VALUE_MASK: Final = 0x5A5A5A5A5A5A5A5A  # keeps the bits of 0.0 apart from NO_VALUE


def hashed(w: Writer, value: str, bits: int) -> str:
    """The upper bits of a multiplied word."""
    spread = w.new(f"mul i64 {value}, {GOLDEN}")
    return w.new(f"lshr i64 {spread}, {64 - bits}")


def site_text() -> str:
    """@site(table): code and offset of the first frame outside flambeau, a new reference."""
    w = Writer("define internal ptr @site(ptr %table)")
    frame, walked, code_place = w.place("frame"), w.owner("walked"), w.owner("code")
    fast_args = w.place("arguments", "ptr", 2)
    w.store(w.call("PyEval_GetFrame"), frame)
    w.label("look")
    here = w.load(frame)
    w.branch(w.is_null(here), "nowhere")
    code = w.call("PyFrame_GetCode", here)
    w.store(code, code_place)
    number = w.new(f"ptrtoint ptr {code} to i64")
    index = hashed(w, number, CODE_BITS)
    entry = w.at(w.load("%table", TABLE["codes"]), w.new(f"mul i64 {index}, 16"))
    w.branch(w.same(w.load(entry), code), "known", "learn")
    w.label("learn")
    w.store(code, fast_args)
    told = w.call("PyObject_Vectorcall", w.load("%table", TABLE["learn"]), fast_args, "1", "null")
    w.needs(told, "failed")
    w.call("Py_DecRef", told)
    w.branch(w.same(told, TRUE), "inside", "outside")
    w.label("known")
    flag = w.load(entry, 8, "i64")
    w.branch(w.new(f"icmp ne i64 {flag}, 0"), "inside", "outside")
    w.label("inside")
    back = w.call("PyFrame_GetBack", w.load(frame))
    w.call("Py_DecRef", w.take(code_place))
    w.call("Py_DecRef", w.take(walked))
    w.store(back, walked)
    w.store(back, frame)
    w.goto("look")
    w.label("outside")
    offset = w.new(f"sext i32 {w.call('PyFrame_GetLasti', w.load(frame))} to i64")
    code = w.load(code_place)
    number = w.new(f"ptrtoint ptr {code} to i64")
    mixed = w.new(f"add i64 {number}, {w.new(f'mul i64 {offset}, 2654435761')}")
    index = hashed(w, mixed, SITE_BITS)
    entry = w.at(w.load("%table", TABLE["sites"]), w.new(f"mul i64 {index}, 24"))
    w.branch(w.same(w.load(entry), code), "near", "make")
    w.label("near")
    w.branch(w.new(f"icmp eq i64 {w.load(entry, 8, 'i64')}, {offset}"), "found", "make")
    w.label("found")
    site = w.held(w.load(entry, 16))
    w.let_go()
    w.returns(f"ptr {site}")
    w.label("make")
    made = w.needs(w.call("PyTuple_New", "2"), "failed")
    position = w.call("PyLong_FromSsize_t", offset)
    w.call("PyTuple_SetItem", made, "0", w.held(code))
    w.call("PyTuple_SetItem", made, "1", position)
    old = w.load(entry, 16)
    w.store(code, entry)
    w.store(offset, entry, 8, "i64")
    w.store(w.held(made), entry, 16)
    w.call("Py_DecRef", old)
    w.let_go()
    w.returns(f"ptr {made}")
    w.label("nowhere")
    w.let_go()
    w.returns(f"ptr {w.held(NONE)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


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
    w.label("numbered")
    layout, offset = w.load("%view", o["View._layout"]), w.load("%view", o["View._offset"])
    storage_slot = w.load(storage, o["Storage.slot"])
    same_layout = w.same(layout, w.load(storage, o["Storage.layout"]))
    at_start = w.new(f"icmp eq i64 {w.call('PyLong_AsSsize_t', offset)}, 0")
    w.branch(w.new(f"and i1 {same_layout}, {at_start}"), "whole", "part")
    w.label("whole")
    replace(w, "%view", o["View._place"], w.held(storage))
    w.returns(f"ptr {w.held(storage_slot)}")

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
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    w.label("python")
    w.returns("ptr null")
    return w.text()


def replace(w: Writer, base: str, offset: int, value: str) -> None:
    """Set a slot to a reference it owns from now on."""
    before = w.load(base, offset)
    w.store(value, base, offset)
    w.call("Py_DecRef", before)


def stream_text() -> str:
    """@stream(table): the calling thread's Stream, borrowed. The thread's number, which is never
    given again, guards the kept one. The table holds it: a thread that ends drops its own before
    what else it keeps, and finalizers may still record."""
    w = Writer("define internal ptr @stream(ptr %table)")
    number = w.call("PyThreadState_GetID", w.call("PyThreadState_Get"))
    known = w.load("%table", TABLE["thread"], "i64")
    w.branch(w.new(f"icmp eq i64 {number}, {known}"), "same", "other")
    w.label("same")
    w.returns(f"ptr {w.load('%table', TABLE['current'])}")
    w.label("other")
    local, name = w.load("%table", TABLE["local"]), w.load("%table", TABLE["stream"])
    found = w.needs(w.call("PyObject_GetAttr", local, name), "failed")
    before = w.load("%table", TABLE["current"])
    w.store(number, "%table", TABLE["thread"], "i64")
    w.store(found, "%table", TABLE["current"])
    w.branch(w.is_null(before), "kept", "let_go")
    w.label("let_go")
    w.call("Py_DecRef", before)
    w.goto("kept")
    w.label("kept")
    w.returns(f"ptr {found}")
    w.label("failed")
    w.returns("ptr null")
    return w.text()


def tensor_text() -> str:
    """@is_tensor(table, object): whether it is a Tensor or of a class derived from it."""
    w = Writer("define internal i1 @is_tensor(ptr %table, ptr %object)")
    kind, wanted = w.load("%object", TYPE_OFFSET), w.load("%table", TABLE["tensor"])
    w.branch(w.same(kind, wanted), "yes", "derived")
    w.label("yes")
    w.returns("i1 true")
    w.label("derived")
    found = w.call("PyType_IsSubtype", kind, wanted)
    w.returns(f"i1 {w.new(f'icmp ne i32 {found}, 0')}")
    return w.text()


def value_text() -> str:
    """@special(specials, number): what tells a number that signatures name from all others.
    specials: a count, then doubles."""
    w = Writer("define internal i64 @special(ptr %specials, double %number)")
    index = w.place("index", "i64")
    count = w.load("%specials", 0, "i64")
    w.store("0", index, 0, "i64")
    w.label("look")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "none")
    n = w.new(f"add i64 {n}, 1")
    w.store(n, index, 0, "i64")
    candidate = w.load("%specials", w.new(f"mul i64 {n}, 8"), "double")
    w.branch(w.new(f"fcmp oeq double {candidate}, %number"), "found", "look")
    w.label("found")
    bits = w.new(f"bitcast double {candidate} to i64")
    w.returns(f"i64 {w.new(f'xor i64 {bits}, {VALUE_MASK}')}")
    w.label("none")
    w.returns(f"i64 {NO_VALUE}")
    return w.text()


def find_text() -> str:
    """@find(cache, left, right, value): the entry of a call, or null."""
    w = Writer("define internal ptr @find(ptr %cache, ptr %left, ptr %right, i64 %value)")
    left = w.new("ptrtoint ptr %left to i64")
    right = w.new("ptrtoint ptr %right to i64")
    mixed = w.new(f"add i64 {left}, {w.new(f'mul i64 {right}, 31')}")
    mixed = w.new(f"add i64 {mixed}, %value")
    first = w.at("%cache", w.new(f"mul i64 {hashed(w, mixed, CACHE_BITS)}, {ENTRY_BYTES}"))
    for probe in range(PROBES):
        entry = w.at(first, probe * ENTRY_BYTES)
        miss = f"miss{probe}"
        w.branch(w.same(w.load(entry, ENTRY["left"]), "%left"), f"left{probe}", miss)
        w.label(f"left{probe}")
        w.branch(w.same(w.load(entry, ENTRY["right"]), "%right"), f"right{probe}", miss)
        w.label(f"right{probe}")
        value = w.load(entry, ENTRY["value"], "i64")
        w.branch(w.new(f"icmp eq i64 {value}, %value"), f"found{probe}", miss)
        w.label(f"found{probe}")
        w.returns(f"ptr {entry}")
        w.label(miss)
    w.returns("ptr null")
    return w.text()


def operand_key(w: Writer, o: Offsets, value: str, number: str, right: str, special: str) -> None:
    """Find what the second operand, a tensor or a number, puts into the key: its layout or type in
    `right`, the number itself where signatures name it in `special`. `number`: 1 for a number."""
    overflow = w.place("overflow", "i32")
    double = w.place("double", "double")
    kind = w.load(value, TYPE_OFFSET)
    w.store(kind, right)
    w.store(str(NO_VALUE), special, 0, "i64")
    w.store("1", number, 0, "i64")
    w.branch(w.same(kind, "@PyFloat_Type"), "float", "not_float")
    w.label("float")
    w.store(w.call("PyFloat_AsDouble", value), double, 0, "double")
    w.goto("number")
    w.label("not_float")
    w.branch(w.same(kind, "@PyLong_Type"), "int", "not_int")
    w.label("int")
    whole = w.call("PyLong_AsLongLongAndOverflow", value, overflow)
    w.branch(w.new(f"icmp ne i32 {w.load(overflow, 0, 'i32')}, 0"), "python")
    w.store(w.new(f"sitofp i64 {whole} to double"), double, 0, "double")
    w.label("number")
    specials = w.load("%self", CALLABLE["specials"])
    w.branch(w.is_null(specials), "keyed", "compare")
    w.label("compare")
    named = w.local(f"i64 @special(ptr {specials}, double {w.load(double, 0, 'double')})")
    w.store(named, special, 0, "i64")
    w.goto("keyed")
    w.label("not_int")
    w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {value})"), "other", "python")
    w.label("other")
    w.store(w.needs(w.load(value, o["View._layout"]), "python"), right)
    w.store("0", number, 0, "i64")
    w.label("keyed")


def record_text(name: str, o: Offsets, *, binary: bool) -> str:
    """The callable of an operator of one tensor, or of a tensor and a tensor or number."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    out_place, storage_place = w.owner("out"), w.owner("storage")
    key_place, record_place = w.owner("key"), w.owner("record")
    site_place, numbers_place = w.owner("site"), w.owner("numbers")
    segment_place, slot_place = w.owner("segment"), w.owner("slot")
    other_place, signature_place = w.owner("other_slot"), w.owner("signature")
    layouts_place = w.owner("layouts")
    attach_arguments = w.place("attach_arguments", "ptr", 5)
    table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
    w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
    w.branch(w.is_null("%names"), "positional", "rest")
    w.label("positional")
    given = w.new("and i64 %count, 9223372036854775807")
    w.branch(w.new(f"icmp eq i64 {given}, {2 if binary else 1}"), "counted", "rest")
    w.label("counted")
    left = w.load("%arguments")
    other = w.load("%arguments", 8) if binary else "null"
    w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {left})"), "first", "python")
    w.label("first")
    layout = w.needs(w.load(left, o["View._layout"]), "python")
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
    out_layout = w.load(entry, ENTRY["layout"])
    attributes = w.load(entry, ENTRY["attributes"])
    layouts = w.load(entry, ENTRY["layouts"])
    flags = w.load(entry, ENTRY["flags"], "i64")

    # From here on Python may run, and the entry may be given to another call.
    stream = w.needs(w.local("ptr @stream(ptr %table)"), "failed")
    segment = w.load(stream, o["Stream.segment"])
    records = w.load(segment, o["Segment.records"])
    w.branch(w.same(w.load(segment, o["Segment.armed"]), signature), "python")
    limit = w.call("PyLong_AsSsize_t", w.load(segment, o["Segment.limit"]))
    room = w.new(f"icmp slt i64 {w.call('PyList_Size', records)}, {limit}")
    w.branch(room, "open", "python")
    w.label("open")
    w.store(w.held(signature), signature_place)
    w.store(w.held(layouts), layouts_place)
    w.store(w.held(segment), segment_place)
    slot = w.local(f"ptr @slot(ptr %table, ptr {segment}, ptr {left})")
    w.store(w.needs(slot, "failed"), slot_place)
    w.store(w.load("%table", TABLE["empty"]), numbers_place)
    w.call("Py_IncRef", w.load(numbers_place))
    if binary:
        w.branch(w.new(f"icmp eq i64 {w.load(number, 0, 'i64')}, 0"), "two", "one")
        w.label("two")
        slot = w.local(f"ptr @slot(ptr %table, ptr {segment}, ptr {other})")
        w.store(w.needs(slot, "failed"), other_place)
        w.store(w.needs(w.call("PyTuple_New", "4"), "failed"), key_place)
        w.goto("sites")
        w.label("one")
        w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), key_place)
        w.branch(w.new(f"icmp eq i64 {w.new(f'and i64 {flags}, {RUN_TIME}')}, 0"), "sites", "given")
        w.label("given")
        numbers = w.needs(w.call("PyTuple_New", "1"), "failed")
        w.call("PyTuple_SetItem", numbers, "0", w.held(other))
        w.call("Py_DecRef", w.load(numbers_place))
        w.store(numbers, numbers_place)
    else:
        w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), key_place)
    w.label("sites")
    set_site(w, o, stream, site_place)
    w.store(w.needs(new_object(w, "storage"), "failed"), storage_place)
    w.store(w.needs(new_object(w, "tensor"), "failed"), out_place)
    w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), record_place)

    # Nothing below runs Python before the record is in.
    fresh = w.load(segment, o["Segment.fresh"])
    position = w.call("PyLong_FromSsize_t", w.call("PyList_Size", fresh))
    w.needs(position, "failed")
    fill_result(w, o, segment, out_layout, position, w.load(storage_place), w.load(out_place))
    key = w.load(key_place)
    w.call("PyTuple_SetItem", key, "0", w.held(signature))
    w.call("PyTuple_SetItem", key, "1", w.take(slot_place))
    if binary:
        w.branch(w.is_null(w.load(other_place)), "last", "between")
        w.label("between")
        w.call("PyTuple_SetItem", key, "2", w.take(other_place))
        w.call("PyTuple_SetItem", key, "3", position)
        w.goto("keyed_record")
        w.label("last")
    w.call("PyTuple_SetItem", key, "2", position)
    w.label("keyed_record")
    append_record(w, o, segment, records, fresh, storage_place,
                  (record_place, key_place, numbers_place, site_place))  # fmt: skip
    settle(w, o, segment)
    w.branch(w.same(w.load(stream, o["Stream.grad_enabled"]), TRUE), "gradient", "no_gradient")
    w.label("gradient")
    tracked(w, o, left, "attach", "second")
    w.label("second")
    if binary:
        w.branch(w.new(f"icmp eq i64 {w.load(number, 0, 'i64')}, 0"), "second_tensor", "done")
        w.label("second_tensor")
        tracked(w, o, other, "attach", "done")
    else:
        w.goto("done")
    w.label("attach")
    w.branch(w.new(f"icmp eq i64 {w.new(f'and i64 {flags}, {GRADIENT}')}, 0"), "done", "attached")
    w.label("attached")
    # The record's site, kept alive by the record (a flush may have dropped it: hold it).
    site = w.load(site_place)
    second = f"ptr {other}, i64 {w.load(number, 0, 'i64')}" if binary else "ptr null, i64 1"
    status = w.local(
        f"i32 @attach(ptr %table, ptr %self, ptr {left}, {second}, ptr {w.load(out_place)}, "
        f"ptr {attributes}, ptr {layouts}, ptr {site})"
    )
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "done", "failed")
    w.label("no_gradient")
    w.branch(w.same(w.load(stream, o["Stream.inference"]), TRUE), "inference", "done")
    w.label("inference")
    w.store(w.load(out_place), attach_arguments)
    marked = w.call("PyObject_Vectorcall", w.load("%self", CALLABLE["mark"]), attach_arguments, "1",
                    "null")  # fmt: skip
    w.call("Py_DecRef", w.needs(marked, "failed"))
    w.label("done")
    result = w.take(out_place)
    w.let_go()
    w.returns(f"ptr {result}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    hand_over(w)
    hand_over(w, "rest")
    return w.text()


def hand_over(w: Writer, name: str = "python") -> None:
    """Block `python`: the closure does it all; nothing has happened yet. Block `rest`: the same
    for calls with other arguments."""
    w.label(name)
    python = w.load("%self", CALLABLE[name])
    # The argument behind the vector is the caller's to lend: pass it on.
    found = w.new(f"tail call ptr @PyObject_Vectorcall(ptr {python}, ptr %arguments, i64 %count, "
                  "ptr %names)")  # fmt: skip
    w.returns(f"ptr {found}")


def new_object(w: Writer, kind: str) -> str:
    """An object of a class without __init__; its slots are empty."""
    return w.call("PyType_GenericAlloc", w.load("%table", TABLE[kind]), "0")


def set_site(w: Writer, o: Offsets, stream: str, site_place: str) -> None:
    """Own the call site: the stream's where it says one, else the caller's."""
    told = w.load(stream, o["Stream.site"])
    w.branch(w.same(told, NONE), "walk", "told")
    w.label("told")
    w.store(w.held(told), site_place)
    w.goto("sited")
    w.label("walk")
    w.store(w.needs(w.local("ptr @site(ptr %table)"), "failed"), site_place)
    w.label("sited")


def append_record(
    w: Writer, o: Offsets, segment: str, records: str, fresh: str | None, storage_place: str,
    places: tuple[str, str, str, str],
) -> None:  # fmt: skip
    """Commit. The site stays held by its place too."""
    record_place, key_place, numbers_place, site_place = places
    record, key = w.load(record_place), w.take(key_place)
    # Tuples of names and numbers, part of no cycle: the collector need not look at them.
    w.call("PyObject_GC_UnTrack", key)
    w.call("PyTuple_SetItem", record, "0", key)
    w.call("PyTuple_SetItem", record, "1", w.take(numbers_place))
    w.call("PyTuple_SetItem", record, "2", w.held(w.load(site_place)))
    w.call("PyObject_GC_UnTrack", record)
    if fresh is not None:
        status = w.call("PyList_Append", fresh, w.load(storage_place))
        w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")
    status = w.call("PyList_Append", records, record)
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")


def settle(w: Writer, o: Offsets, segment: str) -> None:
    """Run a record that came after its segment was closed."""
    late_arguments = w.place("late_arguments", "ptr", 2)
    w.branch(w.same(w.load(segment, o["Segment.closed"]), TRUE), "late", "settled")
    w.label("late")
    w.store(segment, late_arguments)
    late = w.load("%table", TABLE["late"])
    ran = w.call("PyObject_Vectorcall", late, late_arguments, "1", "null")
    w.call("Py_DecRef", w.needs(ran, "failed"))
    w.label("settled")


def tracked(w: Writer, o: Offsets, tensor: str, yes: str, no: str) -> None:
    """Whether a tensor has a history or may have one through its base."""
    no_history = w.same(w.load(tensor, o["Tensor._autograd"]), NONE)
    no_base = w.same(w.load(tensor, o["Tensor._base"]), NONE)
    w.branch(w.new(f"and i1 {no_history}, {no_base}"), no, yes)


def fill_result(
    w: Writer, o: Offsets, segment: str, layout: str, position: str, storage: str, out: str
) -> None:
    """Fill the slots of a fresh storage and of the tensor over it."""
    zero = w.load("%table", TABLE["zero"])
    w.put(w.held(layout), storage, o["Storage.layout"])
    w.put(w.held(zero), storage, o["Storage.version"])
    w.put(w.held(segment), storage, o["Storage.segment"])
    w.put(w.held(position), storage, o["Storage.slot"])
    w.put(w.held(storage), out, o["View._storage"])
    w.put(w.held(storage), out, o["View._place"])
    w.put(w.held(layout), out, o["View._layout"])
    w.put(w.held(zero), out, o["View._offset"])
    w.put(w.held(NONE), out, o["Tensor._autograd"])
    w.put(w.held(NONE), out, o["Tensor._base"])
