"""LLVM text of calling any operator of fresh results: Binding.__call__, spelled out.

Keeps     what a call's arguments say of its signature makes a key, and a dictionary knows the way;
          whatever is not plain is handed, whole and before anything happened, to Python.
Touches   writer, record_text, attach_text (tables and helpers).
Not here  what the key holds beside this text (callables.py spells the same in Python)."""

from __future__ import annotations

from typing import Final

from flambeau.tensor.native.tables import (
    CALLABLE,
    IS_ATTRIBUTE,
    IS_SEQUENCE,
    IS_TENSOR,
    MAXIMUM_PARAMETERS,
    NO_VALUE,
    ROW,
    ROW_BYTES,
    SHAPE,
    TABLE,
    WAY,
    Offsets,
    new_object,
)
from flambeau.tensor.native.text.attach_any_text import attach_any_text, build_node
from flambeau.tensor.native.text.record_text import (
    append_record,
    fill_result,
    give_up,
    set_site,
    settle,
)
from flambeau.tensor.native.text.writer import (
    NONE,
    TRUE,
    TYPE_OFFSET,
    Writer,
    item,
    loop,
    next_of,
    push,
)

__all__ = ["MAXIMUM_PARAMETERS", "attach_any_text", "build_node", "general_text"]

MAXIMUM_TENSORS: Final = 64


class Arguments:
    """Places of a general call while its arguments are read."""

    def __init__(self, w: Writer) -> None:
        self.values = w.place("values", "ptr", MAXIMUM_PARAMETERS)
        self.tensors = w.place("tensors", "ptr", MAXIMUM_TENSORS)
        self.numbers = w.place("given_numbers", "ptr", MAXIMUM_PARAMETERS)
        self.operands = w.place("operands", "ptr", MAXIMUM_PARAMETERS)
        self.n_tensors = w.place("n_tensors", "i64")
        self.n_numbers = w.place("n_numbers", "i64")
        self.n_operands = w.place("n_operands", "i64")
        self.index = w.place("index", "i64")
        self.inner = w.place("inner", "i64")
        self.key = w.owner("call_key")
        self.sequence = w.owner("sequence")
        self.packed = w.owner("packed")


def general_text(name: str, o: Offsets) -> str:
    """The callable of an operator with any parameters and fresh results."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    s = Arguments(w)
    found = look_up(w, o, s)
    # The number keeps alive what it points at: Python may run below, and the dictionary change.
    found_place = w.owner("found_way")
    w.store(w.held(found), found_place)
    way = w.new(f"inttoptr i64 {w.call('PyLong_AsSsize_t', found)} to ptr")
    told_place = w.owner("told")
    check = w.load(way, WAY["check"])
    w.branch(w.is_null(check), "checked", "check")
    w.label("check")
    count = w.load(s.n_tensors, 0, "i64")
    told = w.call("PyObject_Vectorcall", check, s.tensors, count, "null")
    w.store(w.needs(told, "failed"), told_place)
    w.label("checked")
    _record(w, o, s, way, told_place)
    give_up(w)
    return w.text()


def look_up(w: Writer, o: Offsets, s: Arguments) -> str:
    """What is known of calls with these layouts and attributes, by their key; borrowed."""
    w.lines.append(f"  %table = load ptr, ptr {w.at('%self', CALLABLE['table'])}, align 8")
    w.lines.append(f"  %shape = load ptr, ptr {w.at('%self', CALLABLE['extra'])}, align 8")
    arrange(w, s)
    read(w, o, s)
    dictionary = w.load("%self", CALLABLE["cache"])
    found = w.call("PyDict_GetItemWithError", dictionary, w.load(s.key))
    w.needs(found, "surprise")
    return found


def arrange(w: Writer, s: Arguments) -> None:
    """Every parameter's value in order: given by place, by name, or its default."""
    count = w.load("%shape", SHAPE["count"], "i64")
    positional = w.load("%shape", SHAPE["positional"], "i64")
    given = w.new("and i64 %count, 9223372036854775807")
    given_place = w.place("given", "i64")
    w.store(given, given_place, 0, "i64")
    _pack(w, s, given_place)
    given = w.load(given_place, 0, "i64")
    w.branch(w.new(f"icmp sgt i64 {given}, {positional}"), "surprise")
    w.branch(w.is_null(w.load(s.packed)), "place", "sizes_placed")
    w.label("sizes_placed")
    w.store(w.load("%arguments"), s.values)
    w.store(w.load(s.packed), s.values, 8)
    w.goto("placed_end")
    w.label("place")
    n = loop(w, "placed", s.index, given)
    w.store(w.load(item(w, "%arguments", n)), item(w, s.values, n))
    next_of(w, "placed", s.index)
    n = loop(w, "missing", s.index, count, given)
    w.store("null", item(w, s.values, n))
    next_of(w, "missing", s.index)
    w.branch(w.is_null("%names"), "defaults", "named")
    w.label("named")
    n_names = w.call("PyTuple_Size", "%names")
    k = loop(w, "each_name", s.index, n_names)
    name = w.call("PyTuple_GetItem", "%names", k)
    n = loop(w, "search", s.inner, count)
    row = w.at(w.at("%shape", SHAPE["rows"]), w.new(f"mul i64 {n}, {ROW_BYTES}"))
    w.branch(w.same(w.load(row, ROW["name"]), name), "search_found", "search_on")
    w.label("search_found")
    place = item(w, s.values, n)
    w.branch(w.is_null(w.load(place)), "name_free", "surprise")
    w.label("name_free")
    behind = w.new("and i64 %count, 9223372036854775807")
    at = w.new(f"add i64 {behind}, {w.load(s.index, 0, 'i64')}")
    w.store(w.load(item(w, "%arguments", at)), place)
    w.goto("name_done")
    w.label("search_on")
    next_of(w, "search", s.inner)
    w.goto("surprise")
    w.label("name_done")
    next_of(w, "each_name", s.index)
    w.label("defaults")
    n = loop(w, "default", s.index, count)
    place = item(w, s.values, n)
    w.branch(w.is_null(w.load(place)), "absent", "default_next")
    w.label("absent")
    row = w.at(w.at("%shape", SHAPE["rows"]), w.new(f"mul i64 {n}, {ROW_BYTES}"))
    w.store(w.needs(w.load(row, ROW["default"]), "surprise"), place)
    w.label("default_next")
    next_of(w, "default", s.index)


def _pack(w: Writer, s: Arguments, given_place: str) -> None:
    """Sizes given one by one, where the callable takes them so, are a tuple."""
    w.branch(w.new(f"icmp eq i64 {w.load('%shape', SHAPE['packs'], 'i64')}, 0"), "unpacked")
    given = w.load(given_place, 0, "i64")
    w.branch(w.new(f"icmp sge i64 {given}, 2"), "maybe_pack", "unpacked")
    w.label("maybe_pack")
    kind = w.load(w.load("%arguments", 8), TYPE_OFFSET)
    w.branch(w.same(kind, "@PyLong_Type"), "pack", "unpacked")
    w.label("pack")
    length = w.new(f"sub i64 {given}, 1")
    w.store(w.needs(w.call("PyTuple_New", length), "surprise"), s.packed)
    n = loop(w, "size", s.index, length)
    at = w.new(f"add i64 {n}, 1")
    w.call("PyTuple_SetItem", w.load(s.packed), n, w.held(w.load(item(w, "%arguments", at))))
    next_of(w, "size", s.index)
    w.store("2", given_place, 0, "i64")
    w.label("unpacked")


def read(w: Writer, o: Offsets, s: Arguments) -> None:
    """Take the values apart: tensors, run-time numbers, operands of gradients, the key."""
    overflow, double = w.place("overflow", "i32"), w.place("double", "double")
    count = w.load("%shape", SHAPE["count"], "i64")
    w.store(w.needs(w.call("PyTuple_New", w.new(f"shl i64 {count}, 1")), "failed"), s.key)
    for place in (s.n_tensors, s.n_numbers, s.n_operands):
        w.store("0", place, 0, "i64")
    n = loop(w, "value", s.index, count)
    row = w.at(w.at("%shape", SHAPE["rows"]), w.new(f"mul i64 {n}, {ROW_BYTES}"))
    kind = w.load(row, ROW["kind"], "i64")
    value = w.load(item(w, s.values, n))
    of = w.load(value, TYPE_OFFSET)
    first = w.new(f"shl i64 {n}, 1")
    second = w.new(f"or i64 {first}, 1")
    w.branch(w.new(f"icmp eq i64 {kind}, {IS_ATTRIBUTE}"), "attribute", "operand")

    w.label("attribute")
    for name in ("PyLong_Type", "PyUnicode_Type", "PyBool_Type", "PyFloat_Type"):
        w.branch(w.same(of, f"@{name}"), "plain_attribute")
    w.branch(w.same(of, w.load("%table", TABLE["dtype"])), "plain_attribute")
    w.branch(w.same(of, "@PyTuple_Type"), "tuple_attribute")
    w.branch(w.same(value, NONE), "plain_attribute", "surprise")
    # Of equal tuples one may hold 1.0 or True where another holds 1: Python tells them apart.
    w.label("tuple_attribute")
    m = loop(w, "element", s.inner, w.call("PyTuple_Size", value))
    kind_of = w.load(w.call("PyTuple_GetItem", value, m), TYPE_OFFSET)
    w.branch(w.same(kind_of, "@PyLong_Type"), "element_next", "surprise")
    w.label("element_next")
    next_of(w, "element", s.inner)
    w.goto("plain_attribute")
    w.label("plain_attribute")
    w.call("PyTuple_SetItem", w.load(s.key), first, w.held(value))
    w.call("PyTuple_SetItem", w.load(s.key), second, w.held(of))
    w.goto("value_next")

    w.label("operand")
    push(w, s.operands, s.n_operands, value)
    w.branch(w.new(f"icmp eq i64 {kind}, {IS_SEQUENCE}"), "sequence", "single")
    w.label("single")
    w.branch(w.same(value, NONE), "none", "not_none")
    w.label("none")
    w.branch(w.new(f"icmp eq i64 {w.load(row, ROW['optional'], 'i64')}, 0"), "surprise")
    w.call("PyTuple_SetItem", w.load(s.key), first, w.held(NONE))
    w.call("PyTuple_SetItem", w.load(s.key), second, w.held(NONE))
    w.goto("value_next")
    _read_operand(w, o, double, value, overflow, first, row, second, of, s, kind)
    w.label("sequence")
    _read_sequence(w, o, s, value, first, second)
    w.label("value_next")
    next_of(w, "value", s.index)


def _read_operand(
    w: Writer, o: Offsets, double: str, value: str, overflow: str, first: str, row: str,
    second: str, of: str, s: Arguments, kind: str,
) -> None:  # fmt: skip
    """A number or a tensor."""
    w.label("not_none")
    w.branch(w.same(of, "@PyFloat_Type"), "float", "not_float")
    w.label("float")
    w.store(w.call("PyFloat_AsDouble", value), double, 0, "double")
    w.goto("number")
    w.label("not_float")
    w.branch(w.same(of, "@PyLong_Type"), "int", "not_int")
    w.label("int")
    whole = w.call("PyLong_AsLongLongAndOverflow", value, overflow)
    w.branch(w.new(f"icmp ne i32 {w.load(overflow, 0, 'i32')}, 0"), "surprise")
    w.store(w.new(f"sitofp i64 {whole} to double"), double, 0, "double")
    w.label("number")
    w.call("PyTuple_SetItem", w.load(s.key), first, w.held(of))
    specials = w.load(row, ROW["specials"])
    w.branch(w.is_null(specials), "run_time", "compare")
    w.label("compare")
    named = w.local(f"i64 @special(ptr {specials}, double {w.load(double, 0, 'double')})")
    w.branch(w.new(f"icmp eq i64 {named}, {NO_VALUE}"), "run_time", "named_number")
    w.label("named_number")
    w.call("PyTuple_SetItem", w.load(s.key), second, w.held(value))
    w.goto("value_next")
    w.label("run_time")
    push(w, s.numbers, s.n_numbers, value)
    w.call("PyTuple_SetItem", w.load(s.key), second, w.held(NONE))
    w.goto("value_next")
    w.label("not_int")
    w.branch(w.new(f"icmp ne i64 {kind}, {IS_TENSOR}"), "surprise")
    w.branch(w.local(f"i1 @is_plain(ptr %table, ptr {value})"), "tensor", "surprise")
    w.label("tensor")
    layout = w.needs(w.load(value, o["View._layout"]), "surprise")
    w.call("PyTuple_SetItem", w.load(s.key), first, w.held(layout))
    w.call("PyTuple_SetItem", w.load(s.key), second, w.held(NONE))
    push(w, s.tensors, s.n_tensors, value)
    w.goto("value_next")


def _read_sequence(
    w: Writer, o: Offsets, s: Arguments, value: str, first: str, second: str
) -> None:
    """A list or tuple of tensors: its layouts are the key's part."""
    w.branch(w.is_null(w.load(s.sequence)), "first_sequence", "surprise")
    w.label("first_sequence")
    # Python says what it thinks of others: a tensor's rows, a generator, which runs once.
    of = w.load(value, TYPE_OFFSET)
    listed = w.new(f"or i1 {w.same(of, '@PyTuple_Type')}, {w.same(of, '@PyList_Type')}")
    w.branch(listed, "listed", "surprise")
    w.label("listed")
    sequence = w.needs(w.call("PySequence_Tuple", value), "surprise")
    w.store(sequence, s.sequence)
    # Gradients get the tuple: the list may change.
    last = w.new(f"sub i64 {w.load(s.n_operands, 0, 'i64')}, 1")
    w.store(sequence, item(w, s.operands, last))
    length = w.call("PyTuple_Size", sequence)
    total = w.new(f"add i64 {length}, {w.load(s.n_tensors, 0, 'i64')}")
    w.branch(w.new(f"icmp sgt i64 {total}, {MAXIMUM_TENSORS - MAXIMUM_PARAMETERS}"), "surprise")
    layouts = w.needs(w.call("PyTuple_New", length), "failed")
    w.call("PyTuple_SetItem", w.load(s.key), first, layouts)
    w.call("PyTuple_SetItem", w.load(s.key), second, w.held(NONE))
    n = loop(w, "part", s.inner, length)
    each = w.call("PyTuple_GetItem", sequence, n)
    w.branch(w.local(f"i1 @is_plain(ptr %table, ptr {each})"), "part_tensor", "surprise")
    w.label("part_tensor")
    layout = w.needs(w.load(each, o["View._layout"]), "surprise")
    w.call("PyTuple_SetItem", layouts, n, w.held(layout))
    push(w, s.tensors, s.n_tensors, each)
    next_of(w, "part", s.inner)


def _record(w: Writer, o: Offsets, s: Arguments, way: str, told_place: str) -> None:
    """Record the call and give its results a history, and the bounds that its check told."""
    out_place = w.owner("out")
    key_place, record_place = w.owner("key"), w.owner("record")
    site_place, numbers_place = w.owner("site"), w.owner("numbers")
    segment_place, signature_place = w.owner("segment"), w.owner("signature")
    layouts_place = w.owner("layouts")
    n_outputs = w.place("n_outputs", "i64")
    signature = w.load(way, WAY["signature"])
    layout, several = w.load(way, WAY["layout"]), w.load(way, WAY["several"])
    stream = w.needs(w.local("ptr @stream(ptr %table)"), "failed")
    segment = w.load(stream, o["Stream.segment"])
    records = w.load(segment, o["Segment.records"])
    w.branch(w.same(w.load(segment, o["Segment.armed"]), signature), "surprise")
    limit = w.call("PyLong_AsSsize_t", w.load(segment, o["Segment.limit"]))
    room = w.new(f"icmp slt i64 {w.call('PyList_Size', records)}, {limit}")
    w.branch(room, "open", "surprise")
    w.label("open")
    w.store(w.held(signature), signature_place)
    w.store(w.held(w.load(way, WAY["layouts"])), layouts_place)
    w.store(w.held(segment), segment_place)
    w.store("1", n_outputs, 0, "i64")
    w.branch(w.is_null(several), "counted", "count_outputs")
    w.label("count_outputs")
    w.store(w.call("PyTuple_Size", several), n_outputs, 0, "i64")
    w.goto("counted")
    w.label("counted")
    n_tensors, key = _own_slots(w, key_place, numbers_place, s, segment, n_outputs)
    set_site(w, o, stream, site_place)
    w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), record_place)
    fresh = w.load(segment, o["Segment.fresh"])
    w.branch(w.is_null(several), "one_result", "several_results")
    _one_result(w, o, segment, layout, out_place, fresh, (key, n_tensors), told_place)
    _several_results(
        w, o, segment, several, out_place, fresh, (key, n_tensors), (s.index, n_outputs)
    )
    w.label("results")
    w.call("PyTuple_SetItem", key, "0", w.held(signature))
    append_record(w, o, segment, records, None, "",
                  (record_place, key_place, numbers_place, site_place))  # fmt: skip
    settle(w, o, segment)
    _give_history(w, o, out_place, way, stream, s, site_place)
    _return(w, way, out_place)


def _return(w: Writer, way: str, out_place: str) -> None:
    """End of the call: the result, or results by their names."""
    w.label("done")
    named, arguments = w.load(way, WAY["named"]), w.place("named_arguments", "ptr", 2)
    w.branch(w.is_null(named), "unnamed", "named_results")
    w.label("named_results")
    w.store(w.load(out_place), arguments)
    made = w.needs(w.call("PyObject_Vectorcall", named, arguments, "1", "null"), "failed")
    w.call("Py_DecRef", w.load(out_place))
    w.store(made, out_place)
    w.goto("unnamed")
    w.label("unnamed")
    result = w.take(out_place)
    w.let_go()
    w.returns(f"ptr {result}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")


def _set_bounds(w: Writer, o: Offsets, told_place: str, storage: str) -> None:
    """Note the bounds that a check told, if it did."""
    told = w.load(told_place)
    w.branch(w.is_null(told), "filled")
    w.branch(w.same(told, NONE), "filled", "bounded")
    w.label("bounded")
    w.put(w.take(told_place), storage, o["Storage.bounds"])
    w.label("filled")


def _one_result(
    w: Writer, o: Offsets, segment: str, layout: str, out_place: str, fresh: str,
    slots: tuple[str, str], told_place: str,
) -> None:  # fmt: skip
    """A tensor over a fresh storage. Once it is there, no Python runs before the record is in."""
    storage_place = w.owner("storage")
    w.label("one_result")
    w.store(w.needs(new_object(w, "storage"), "failed"), storage_place)
    w.store(w.needs(new_object(w, "tensor"), "failed"), out_place)
    _fill(w, o, segment, layout, w.load(storage_place), w.load(out_place), fresh, slots)
    _set_bounds(w, o, told_place, w.load(storage_place))
    w.goto("results")


def _several_results(
    w: Writer, o: Offsets, segment: str, several: str, out_place: str, fresh: str,
    slots: tuple[str, str], counts: tuple[str, str],
) -> None:  # fmt: skip
    """A tuple of tensors of the layouts `several`; all objects are made before one is filled."""
    storages_place = w.owner("storages")
    (key, n_tensors), (index, n_outputs) = slots, counts
    w.label("several_results")
    count = w.load(n_outputs, 0, "i64")
    storages = w.needs(w.call("PyTuple_New", count), "failed")
    w.store(storages, storages_place)
    outs = w.needs(w.call("PyTuple_New", count), "failed")
    w.store(outs, out_place)
    n = loop(w, "make", index, count)
    w.call("PyTuple_SetItem", storages, n, w.needs(new_object(w, "storage"), "failed"))
    w.call("PyTuple_SetItem", outs, n, w.needs(new_object(w, "tensor"), "failed"))
    next_of(w, "make", index)
    n = loop(w, "fill", index, count)
    layout, storage, out = (w.call("PyTuple_GetItem", of, n) for of in (several, storages, outs))
    slot = w.new(f"add i64 {n_tensors}, {n}")
    _fill(w, o, segment, layout, storage, out, fresh, (key, slot))
    next_of(w, "fill", index)
    w.goto("results")


def _fill(
    w: Writer, o: Offsets, segment: str, layout: str, storage: str, out: str, fresh: str,
    slots: tuple[str, str],
) -> None:  # fmt: skip
    """Fill a fresh storage and the tensor over it; its number is the key's, behind the slots."""
    key, before = slots
    position = w.needs(w.call("PyLong_FromSsize_t", w.call("PyList_Size", fresh)), "failed")
    fill_result(w, o, segment, layout, position, storage, out)
    w.call("PyTuple_SetItem", key, w.new(f"add i64 {before}, 1"), position)
    status = w.call("PyList_Append", fresh, storage)
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")


def _own_slots(
    w: Writer, key_place: str, numbers_place: str, s: Arguments, segment: str, n_outputs: str
) -> tuple[str, str]:
    """Slots of the tensors and the run-time numbers."""
    n_tensors = w.load(s.n_tensors, 0, "i64")
    n_slots = w.new(f"add i64 {n_tensors}, {w.load(n_outputs, 0, 'i64')}")
    key = w.needs(w.call("PyTuple_New", w.new(f"add i64 {n_slots}, 1")), "failed")
    w.store(key, key_place)
    n = loop(w, "slots", s.index, n_tensors)
    view = w.load(item(w, s.tensors, n))
    slot = w.local(f"ptr @slot(ptr %table, ptr {segment}, ptr {view})")
    w.call("PyTuple_SetItem", key, w.new(f"add i64 {n}, 1"), w.needs(slot, "failed"))
    next_of(w, "slots", s.index)
    n_numbers = w.load(s.n_numbers, 0, "i64")
    numbers = w.needs(w.call("PyTuple_New", n_numbers), "failed")
    w.store(numbers, numbers_place)
    n = loop(w, "number_in", s.index, n_numbers)
    w.call("PyTuple_SetItem", numbers, n, w.held(w.load(item(w, s.numbers, n))))
    next_of(w, "number_in", s.index)
    return n_tensors, key


def _give_history(
    w: Writer, o: Offsets, out_place: str, way: str, stream: str, s: Arguments, site_place: str
) -> None:
    """Attach a node where an operand has a history, or mark what is made in inference mode."""
    mark_arguments = w.place("mark_arguments", "ptr", 2)
    w.branch(w.same(w.load(stream, o["Stream.grad_enabled"]), TRUE), "gradient", "no_gradient")
    w.label("gradient")
    flags = w.load(way, WAY["flags"], "i64")
    w.branch(w.new(f"icmp eq i64 {flags}, 0"), "done")
    n = loop(w, "tracked", s.index, w.load(s.n_tensors, 0, "i64"))
    view = w.load(item(w, s.tensors, n))
    no_history = w.same(w.load(view, o["Tensor._autograd"]), NONE)
    no_base = w.same(w.load(view, o["Tensor._base"]), NONE)
    w.branch(w.new(f"and i1 {no_history}, {no_base}"), "tracked_next", "attach")
    w.label("tracked_next")
    next_of(w, "tracked", s.index)
    w.goto("done")
    w.label("attach")
    status = w.local(
        f"i32 @attach_any(ptr %table, ptr %self, ptr {s.operands}, "
        f"i64 {w.load(s.n_operands, 0, 'i64')}, ptr {w.load(out_place)}, "
        f"ptr {w.load(way, WAY['attributes'])}, ptr {w.load(way, WAY['layouts'])}, "
        f"ptr {w.load(site_place)})"
    )
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "done", "failed")
    w.label("no_gradient")
    w.branch(w.same(w.load(stream, o["Stream.inference"]), TRUE), "inference", "done")
    w.label("inference")
    w.store(w.load(out_place), mark_arguments)
    marked = w.call("PyObject_Vectorcall", w.load("%self", CALLABLE["mark"]), mark_arguments, "1",
                    "null")  # fmt: skip
    w.call("Py_DecRef", w.needs(marked, "failed"))
