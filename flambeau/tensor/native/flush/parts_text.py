"""LLVM text of the parts of a flush: known plans, memory, addresses and numbers.

Keeps     none of them runs Python, but for @take where a block has to come from there.
Touches   writer, words.
Not here  the flush (text.py)."""

from __future__ import annotations

from flambeau.tensor.native.flush.words import (
    BLOCK,
    FACTORS,
    NUMBER,
    NUMBER_BYTES,
    PLACE_BYTES,
    PLAN,
    PLAN_BITS,
    PLAN_PROBES,
    ROW,
)
from flambeau.tensor.native.tables import TABLE, Offsets, hashed, new_object
from flambeau.tensor.native.text.writer import FALSE, NONE, TYPE_OFFSET, Writer, item, loop, next_of

# Words of memory.STATS.
_ALLOCATIONS, _CURRENT, _PEAK = 0, 8, 16


def keys_text() -> str:
    """@same_keys(words, records, count): whether records have these keys."""
    w = Writer("define internal i1 @same_keys(ptr %words, ptr %records, i64 %count)")
    record_index, at, slot_index = w.place("r", "i64"), w.place("at"), w.place("s", "i64")
    w.store("%words", at)
    r = loop(w, "record", record_index, "%count")
    key = w.call("PyTuple_GetItem", w.call("PyList_GetItem", "%records", r), "0")
    words = w.load(at)
    size = w.load(words, 0, "i64")
    length = w.call("PyTuple_Size", key)
    w.branch(w.new(f"icmp eq i64 {length}, {size}"), "sized", "no")
    w.label("sized")
    signature = w.call("PyTuple_GetItem", key, "0")
    w.branch(w.same(signature, w.load(words, 8)), "signed", "no")
    w.label("signed")
    s = loop(w, "slot", slot_index, size, "1")
    value = w.call("PyLong_AsSsize_t", w.call("PyTuple_GetItem", key, s))
    wanted = w.load(item(w, w.at(words, 8), s), 0, "i64")
    w.branch(w.new(f"icmp eq i64 {value}, {wanted}"), "slot_same", "no")
    w.label("slot_same")
    next_of(w, "slot", slot_index)
    w.store(w.at(item(w, words, size), 8), at)
    next_of(w, "record", record_index)
    w.returns("i1 true")
    w.label("no")
    w.returns("i1 false")
    return w.text()


def list_text() -> str:
    """@same_list(words, numbers, count): whether a list holds these numbers."""
    w = Writer("define internal i1 @same_list(ptr %words, ptr %numbers, i64 %count)")
    index = w.place("index", "i64")
    n = loop(w, "each", index, "%count")
    value = w.call("PyLong_AsSsize_t", w.call("PyList_GetItem", "%numbers", n))
    wanted = w.load(item(w, "%words", n), 0, "i64")
    w.branch(w.new(f"icmp eq i64 {value}, {wanted}"), "same", "no")
    w.label("same")
    next_of(w, "each", index)
    w.returns("i1 true")
    w.label("no")
    w.returns("i1 false")
    return w.text()


def covers_text(o: Offsets) -> str:
    """@covers(stored, fresh, count): whether a plan stores every storage that anybody but the
    segment's list holds. Nothing runs Python: the counts are of one moment."""
    w = Writer("define internal i1 @covers(ptr %stored, ptr %fresh, i64 %count)")
    index = w.place("index", "i64")
    n = loop(w, "each", index, "%count")
    storage = w.call("PyList_GetItem", "%fresh", n)
    block = w.load(storage, o["Storage.block"])
    empty = w.new(f"or i1 {w.is_null(block)}, {w.same(block, NONE)}")
    w.branch(empty, "pending", "no")
    w.label("pending")
    is_stored = w.new(f"icmp ne i64 {w.load(item(w, '%stored', n), 0, 'i64')}, 0")
    is_dead = w.new(f"icmp ule i32 {w.load(storage, 0, 'i32')}, 1")
    w.branch(w.new(f"or i1 {is_stored}, {is_dead}"), "covered", "no")
    w.label("covered")
    next_of(w, "each", index)
    w.returns("i1 true")
    w.label("no")
    w.returns("i1 false")
    return w.text()


def find_text(o: Offsets) -> str:
    """@find_plan(table, segment, threads): what is known of a plan of the segment, or null."""
    w = Writer("define internal ptr @find_plan(ptr %table, ptr %segment, i64 %threads)")
    probe_place = w.place("probe", "i64")
    records = w.load("%segment", o["Segment.records"])
    fresh, touched = (
        w.load("%segment", o["Segment.fresh"]),
        w.load("%segment", o["Segment.touched"]),
    )
    count = w.call("PyList_Size", records)
    sizes = {
        "count": count,
        "inputs": w.call("PyList_Size", w.load("%segment", o["Segment.inputs"])),
        "fresh": w.call("PyList_Size", fresh), "n_touched": w.call("PyList_Size", touched),
        "threads": "%threads",
    }  # fmt: skip
    values = dict(sizes)
    for name, index in (("first", "0"), ("last", w.new(f"sub i64 {count}, 1"))):
        key = w.call("PyTuple_GetItem", w.call("PyList_GetItem", records, index), "0")
        signature = w.call("PyTuple_GetItem", key, "0")
        values[name] = w.new(f"ptrtoint ptr {signature} to i64")
    mix = "0"
    for name, value in values.items():
        mix = w.new(f"add i64 {mix}, {w.new(f'mul i64 {value}, {FACTORS[name]}')}")
    start = w.new(f"mul i64 {hashed(w, mix, PLAN_BITS)}, {PLACE_BYTES}")
    places = w.at(w.load("%table", TABLE["plans"]), start)
    probe = loop(w, "probe", probe_place, str(PLAN_PROBES))
    place = w.at(places, w.new(f"mul i64 {probe}, {PLACE_BYTES}"))
    w.branch(w.new(f"icmp eq i64 {w.load(place, 0, 'i64')}, {mix}"), "near", "other")
    w.label("near")
    plan = w.needs(w.load(place, 8), "other")
    for name, value in sizes.items():
        fits = w.new(f"icmp eq i64 {w.load(plan, PLAN[name], 'i64')}, {value}")
        w.branch(fits, f"fits_{name}", "other")
        w.label(f"fits_{name}")
    keys = w.load(plan, PLAN["keys"])
    w.branch(w.local(f"i1 @same_keys(ptr {keys}, ptr {records}, i64 {count})"), "keyed", "other")
    w.label("keyed")
    words = w.load(plan, PLAN["touched"])
    same = w.local(f"i1 @same_list(ptr {words}, ptr {touched}, i64 {sizes['n_touched']})")
    w.branch(same, "touches", "other")
    w.label("touches")
    stored = w.load(plan, PLAN["stored"])
    covers = w.local(f"i1 @covers(ptr {stored}, ptr {fresh}, i64 {sizes['fresh']})")
    w.branch(covers, "found", "other")
    w.label("found")
    w.returns(f"ptr {plan}")
    w.label("other")
    next_of(w, "probe", probe_place)
    w.returns("ptr null")
    return w.text()


def still_text(o: Offsets) -> str:
    """@still(plan, segment): whether a segment that had this plan has it still: its lists only
    ever grow."""
    w = Writer("define internal i1 @still(ptr %plan, ptr %segment)")
    for name, kept in (("records", "count"), ("inputs", "inputs"), ("fresh", "fresh"),
                       ("touched", "n_touched")):  # fmt: skip
        size = w.call("PyList_Size", w.load("%segment", o[f"Segment.{name}"]))
        same = w.new(f"icmp eq i64 {size}, {w.load('%plan', PLAN[kept], 'i64')}")
        w.branch(same, f"same_{name}", "no")
        w.label(f"same_{name}")
    stored, fresh = w.load("%plan", PLAN["stored"]), w.load("%segment", o["Segment.fresh"])
    count = w.load("%plan", PLAN["fresh"], "i64")
    w.returns(f"i1 {w.local(f'i1 @covers(ptr {stored}, ptr {fresh}, i64 {count})')}")
    w.label("no")
    w.returns("i1 false")
    return w.text()


def segment_text(o: Offsets) -> str:
    """@new_segment(table, stream): an empty Segment, or null with an exception set."""
    w = Writer("define internal ptr @new_segment(ptr %table, ptr %stream)")
    made_place = w.owner("made")
    w.store(w.needs(new_object(w, "segment"), "failed"), made_place)
    made = w.load(made_place)
    for name in ("records", "fresh", "inputs", "touched", "offsets", "places"):
        w.put(w.needs(w.call("PyList_New", "0"), "failed"), made, o[f"Segment.{name}"])
    w.put(w.needs(w.call("PyDict_New"), "failed"), made, o["Segment.views"])
    zero, limit = w.load("%table", TABLE["zero"]), w.load("%table", TABLE["limit"])
    for name, value in {
        "stream": "%stream", "limit": limit, "armed": NONE, "closed": FALSE, "direct": FALSE,
        "flushed": zero, "last_uses": NONE, "run": NONE,
        "weighed": w.load("%table", TABLE["weighed"]),
    }.items():  # fmt: skip
        w.put(w.held(value), made, o[f"Segment.{name}"])
    w.returns(f"ptr {w.take(made_place)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def take_text() -> str:
    """@take(table, row): a block, or null, maybe with an exception set. memory.allocate."""
    w = Writer("define internal ptr @take(ptr %table, ptr %row)")
    made_place, number_place = w.owner("made"), w.owner("number")
    arguments = w.place("arguments", "ptr", 2)
    n_bytes = w.load("%row", ROW["n_bytes"], "i64")
    free = w.needs(w.load("%row", ROW["free"]), "python")
    count = w.call("PyList_Size", free)
    w.branch(w.new(f"icmp eq i64 {count}, 0"), "python")
    w.store(w.needs(new_object(w, "block"), "failed"), made_place)
    made = w.load(made_place)
    # No list yet: should it die here, it gives nothing back.
    last = w.new(f"sub i64 {count}, 1")
    address = w.call("PyLong_AsSsize_t", w.call("PyList_GetItem", free, last))
    status = w.call("PyList_SetSlice", free, last, count, "null")
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")
    counts = w.load("%table", TABLE["memory_counts"])
    w.store(address, made, BLOCK["address"], "i64")
    w.store(n_bytes, made, BLOCK["n_bytes"], "i64")
    w.store(free, made, BLOCK["free"])
    w.store(counts, made, BLOCK["counts"])
    w.store(w.new(f"add i64 {w.load(counts, _ALLOCATIONS, 'i64')}, 1"), counts, _ALLOCATIONS, "i64")
    current = w.new(f"add i64 {w.load(counts, _CURRENT, 'i64')}, {n_bytes}")
    w.store(current, counts, _CURRENT, "i64")
    peak = w.load(counts, _PEAK, "i64")
    more = w.new(f"icmp sgt i64 {current}, {peak}")
    w.store(w.new(f"select i1 {more}, i64 {current}, i64 {peak}"), counts, _PEAK, "i64")
    w.returns(f"ptr {w.take(made_place)}")
    w.label("python")
    w.store(w.needs(w.call("PyLong_FromSsize_t", n_bytes), "failed"), number_place)
    w.store(w.load(number_place), arguments)
    allocate = w.load("%table", TABLE["allocate"])
    block = w.call("PyObject_Vectorcall", allocate, arguments, "1", "null")
    w.let_go()
    w.returns(f"ptr {block}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def free_text(name: str) -> str:
    """tp_dealloc of blocks."""
    w = Writer(f"define void @{name}(ptr %self)")
    free = w.needs(w.load("%self", BLOCK["free"]), "gone")
    number = w.needs(w.call("PyLong_FromSsize_t", w.load("%self", BLOCK["address"], "i64")), "lost")
    status = w.call("PyList_Append", free, number)
    w.call("Py_DecRef", number)
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "lost")
    w.label("count")
    counts = w.load("%self", BLOCK["counts"])
    current = w.load(counts, _CURRENT, "i64")
    n_bytes = w.load("%self", BLOCK["n_bytes"], "i64")
    w.store(w.new(f"sub i64 {current}, {n_bytes}"), counts, _CURRENT, "i64")
    w.goto("gone")
    w.label("lost")
    w.call("PyErr_Clear")
    w.goto("count")
    w.label("gone")
    kind = w.load("%self", TYPE_OFFSET)
    w.call("PyObject_Free", "%self")
    w.call("Py_DecRef", kind)
    w.returns("void")
    return w.text()


def address_text(o: Offsets) -> str:
    """@address(table, block): where a storage's block lies; 0 where only Python knows."""
    w = Writer("define internal i64 @address(ptr %table, ptr %block)")
    w.branch(w.is_null("%block"), "unknown")
    kind = w.load("%block", TYPE_OFFSET)
    w.branch(w.same(kind, w.load("%table", TABLE["block"])), "native", "python")
    w.label("native")
    w.returns(f"i64 {w.load('%block', BLOCK['address'], 'i64')}")
    w.label("python")
    for name, owner in (("own_block", "Block"), ("large_block", "Block"),
                        ("outside_block", "OutsideBlock")):  # fmt: skip
        w.branch(w.same(kind, w.load("%table", TABLE[name])), f"is_{name}", f"not_{name}")
        w.label(f"is_{name}")
        number = w.needs(w.load("%block", o[f"{owner}.address"]), "unknown")
        w.returns(f"i64 {w.call('PyLong_AsSsize_t', number)}")
        w.label(f"not_{name}")
    w.goto("unknown")
    w.label("unknown")
    w.returns("i64 0")
    return w.text()


def addresses_text(o: Offsets) -> str:
    """@addresses(table, plan, inputs, blocks, out): fill the run's addresses; whether all are
    known."""
    w = Writer(
        "define internal i1 @addresses(ptr %table, ptr %plan, ptr %inputs, ptr %blocks, ptr %out)"
    )
    index = w.place("index", "i64")
    w.store(w.load("%table", TABLE["error"], "i64"), "%out", 0, "i64")
    w.store("0", "%out", 8, "i64")
    arena = w.load("%plan", PLAN["arena"], "i64")
    w.branch(w.new(f"icmp slt i64 {arena}, 0"), "no_arena")
    block = w.load(item(w, "%blocks", arena))
    w.store(w.local(f"i64 @address(ptr %table, ptr {block})"), "%out", 8, "i64")
    w.label("no_arena")
    count = w.load("%plan", PLAN["inputs"], "i64")
    n = loop(w, "input", index, count)
    storage = w.call("PyList_GetItem", "%inputs", n)
    block = w.load(storage, o["Storage.block"])
    address = w.local(f"i64 @address(ptr %table, ptr {block})")
    w.branch(w.new(f"icmp eq i64 {address}, 0"), "unknown")
    w.store(address, w.at(item(w, "%out", n), 16), 0, "i64")
    next_of(w, "input", index)
    rest = w.at(item(w, "%out", count), 16)
    n = loop(w, "stored", index, w.load("%plan", PLAN["n_stored"], "i64"))
    address = w.local(f"i64 @address(ptr %table, ptr {w.load(item(w, '%blocks', n))})")
    w.store(address, item(w, rest, n), 0, "i64")
    next_of(w, "stored", index)
    w.returns("i1 true")
    w.label("unknown")
    w.returns("i1 false")
    return w.text()


def numbers_text() -> str:
    """@numbers(plan, offsets, records, out): fill the run's numbers; false, maybe with an
    exception set, where one is not what it was."""
    w = Writer("define internal i1 @numbers(ptr %plan, ptr %offsets, ptr %records, ptr %out)")
    index, overflow = w.place("index", "i64"), w.place("overflow", "i32")
    count = w.load("%plan", PLAN["n_touched"], "i64")
    n = loop(w, "offset", index, count)
    value = w.call("PyLong_AsSsize_t", w.call("PyList_GetItem", "%offsets", n))
    w.store(value, item(w, "%out", n), 0, "i64")
    next_of(w, "offset", index)
    rest, numbers = item(w, "%out", count), w.load("%plan", PLAN["numbers"])
    n = loop(w, "number", index, w.load("%plan", PLAN["n_numbers"], "i64"))
    row = w.at(numbers, w.new(f"mul i64 {n}, {NUMBER_BYTES}"))
    record = w.call("PyList_GetItem", "%records", w.load(row, NUMBER["record"], "i64"))
    values = w.needs(w.call("PyTuple_GetItem", record, "1"), "failed")
    number = w.call("PyTuple_GetItem", values, w.load(row, NUMBER["place"], "i64"))
    w.needs(number, "failed")
    is_double = w.new(f"icmp ne i64 {w.load(row, NUMBER['is_double'], 'i64')}, 0")
    out = item(w, rest, n)
    w.branch(is_double, "double", "whole")
    w.label("double")
    is_float = w.same(w.load(number, TYPE_OFFSET), "@PyFloat_Type")
    is_int = w.same(w.load(number, TYPE_OFFSET), "@PyLong_Type")
    w.branch(w.new(f"or i1 {is_float}, {is_int}"), "float", "failed")
    w.label("float")
    w.store(w.call("PyFloat_AsDouble", number), out, 0, "double")
    w.branch(is_int, "huge", "next")
    w.label("huge")
    w.needs_no_error("failed")
    w.goto("next")
    w.label("whole")
    is_int = w.same(w.load(number, TYPE_OFFSET), "@PyLong_Type")
    is_bool = w.same(w.load(number, TYPE_OFFSET), "@PyBool_Type")
    w.branch(w.new(f"or i1 {is_int}, {is_bool}"), "int", "failed")
    w.label("int")
    w.store(w.call("PyLong_AsLongLongAndOverflow", number, overflow), out, 0, "i64")
    w.branch(w.new(f"icmp ne i32 {w.load(overflow, 0, 'i32')}, 0"), "failed", "next")
    w.label("next")
    next_of(w, "number", index)
    w.returns("i1 true")
    w.label("failed")
    w.returns("i1 false")
    return w.text()


def parts_text(o: Offsets) -> str:
    """Everything @flush calls."""
    return "".join((
        keys_text(), list_text(), covers_text(o), find_text(o), still_text(o), segment_text(o),
        take_text(), address_text(o), addresses_text(o), numbers_text(),
    ))  # fmt: skip
