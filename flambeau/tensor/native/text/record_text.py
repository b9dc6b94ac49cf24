"""LLVM text of recording one operator: closures.py, spelled out once more.

Keeps     does what the closure does while nothing surprises; anything else is handed, whole and
          before anything happened, to the closure itself. Nothing that can run Python stands
          between taking a slot and the append that commits.
Touches   writer.
Not here  histories (attach_text.py), writes (inplace_text.py), contents of tables (library.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import (
    CACHE_BITS,
    CALLABLE,
    CODE_BITS,
    ENTRY,
    ENTRY_BYTES,
    GOLDEN,
    GRADIENT,
    NO_VALUE,
    PROBES,
    RUN_TIME,
    SITE_BITS,
    TABLE,
    VALUE_MASK,
    Offsets,
    hashed,
    new_object,
    words,
)
from flambeau.tensor.native.text.slots_text import slot_text, touch_text
from flambeau.tensor.native.text.writer import NONE, TRUE, TYPE_OFFSET, Writer

__all__ = [
    "CACHE_BITS", "CALLABLE", "CODE_BITS", "ENTRY", "ENTRY_BYTES", "GOLDEN", "GRADIENT", "NO_VALUE",
    "PROBES", "RUN_TIME", "SITE_BITS", "TABLE", "VALUE_MASK", "slot_text", "touch_text", "words",
]  # fmt: skip


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
    _make_site(w, offset, entry, code)
    w.label("nowhere")
    w.let_go()
    w.returns(f"ptr {w.held(NONE)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def _make_site(w: Writer, offset: str, entry: str, code: str) -> None:
    """A site that is not kept: make it and keep it."""
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


def value_text() -> str:
    """@special(specials, number): what tells a number that signatures name from all others.
    specials: a count, then doubles."""
    w = Writer("define internal i64 @special(ptr %specials, double %number)")
    index = w.place("index", "i64")
    count = w.load("%specials", 0, "i64")
    given = w.new("bitcast double %number to i64")
    w.store("0", index, 0, "i64")
    w.label("look")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "none")
    n = w.new(f"add i64 {n}, 1")
    w.store(n, index, 0, "i64")
    bits = w.load("%specials", w.new(f"mul i64 {n}, 8"), "i64")  # -0.0 is not 0
    w.branch(w.new(f"icmp eq i64 {bits}, {given}"), "found", "look")
    w.label("found")
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
    w.branch(w.local(f"i1 @is_plain(ptr %table, ptr {value})"), "other", "python")
    w.label("other")
    w.store(w.needs(w.load(value, o["View._layout"]), "python"), right)
    w.store("0", number, 0, "i64")
    w.label("keyed")


class _Recording:
    """The callable of an operator of one tensor, or of a tensor and a tensor or number, being
    written: places of its frame, and the values its parts share."""

    def __init__(self, w: Writer, o: Offsets, *, binary: bool) -> None:
        self.w, self.o, self.binary = w, o, binary
        self.out_place, self.storage_place = w.owner("out"), w.owner("storage")
        self.key_place, self.record_place = w.owner("key"), w.owner("record")
        self.site_place, self.numbers_place = w.owner("site"), w.owner("numbers")
        self.segment_place, self.slot_place = w.owner("segment"), w.owner("slot")
        self.other_place, self.signature_place = w.owner("other_slot"), w.owner("signature")
        self.layouts_place = w.owner("layouts")
        self.attach_arguments = w.place("attach_arguments", "ptr", 5)

    def read(self) -> None:
        """Take the arguments and find the way they go."""
        w, o = self.w, self.o
        table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
        w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
        w.branch(w.is_null("%names"), "positional", "rest")
        w.label("positional")
        given = w.new("and i64 %count, 9223372036854775807")
        w.branch(w.new(f"icmp eq i64 {given}, {2 if self.binary else 1}"), "counted", "rest")
        w.label("counted")
        self.left = w.load("%arguments")
        self.other = w.load("%arguments", 8) if self.binary else "null"
        w.branch(w.local(f"i1 @is_plain(ptr %table, ptr {self.left})"), "first", "python")
        w.label("first")
        layout = w.needs(w.load(self.left, o["View._layout"]), "python")
        self.number, self.right = w.place("number", "i64"), w.place("right")
        self.special = w.place("special_value", "i64")
        if self.binary:
            operand_key(w, o, self.other, self.number, self.right, self.special)
            key = f"ptr {w.load(self.right)}, i64 {w.load(self.special, 0, 'i64')}"
        else:
            key = f"ptr null, i64 {NO_VALUE}"
        cache = w.load("%self", CALLABLE["cache"])
        entry = w.needs(w.local(f"ptr @find(ptr {cache}, ptr {layout}, {key})"), "python")
        self.signature = w.load(entry, ENTRY["signature"])
        self.out_layout = w.load(entry, ENTRY["layout"])
        self.attributes = w.load(entry, ENTRY["attributes"])
        self.layouts = w.load(entry, ENTRY["layouts"])
        self.flags = w.load(entry, ENTRY["flags"], "i64")

    def touch(self) -> None:
        """Own everything that recording needs. From here on Python may run, and the entry may be
        given to another call."""
        w, o = self.w, self.o
        self.stream = w.needs(w.local("ptr @stream(ptr %table)"), "failed")
        self.segment = w.load(self.stream, o["Stream.segment"])
        self.records = w.load(self.segment, o["Segment.records"])
        w.branch(w.same(w.load(self.segment, o["Segment.armed"]), self.signature), "python")
        limit = w.call("PyLong_AsSsize_t", w.load(self.segment, o["Segment.limit"]))
        room = w.new(f"icmp slt i64 {w.call('PyList_Size', self.records)}, {limit}")
        w.branch(room, "open", "python")
        w.label("open")
        w.store(w.held(self.signature), self.signature_place)
        w.store(w.held(self.layouts), self.layouts_place)
        w.store(w.held(self.segment), self.segment_place)
        slot = w.local(f"ptr @slot(ptr %table, ptr {self.segment}, ptr {self.left})")
        w.store(w.needs(slot, "failed"), self.slot_place)
        w.store(w.load("%table", TABLE["empty"]), self.numbers_place)
        w.call("Py_IncRef", w.load(self.numbers_place))
        if self.binary:
            w.branch(w.new(f"icmp eq i64 {w.load(self.number, 0, 'i64')}, 0"), "two", "one")
            w.label("two")
            slot = w.local(f"ptr @slot(ptr %table, ptr {self.segment}, ptr {self.other})")
            w.store(w.needs(slot, "failed"), self.other_place)
            w.store(w.needs(w.call("PyTuple_New", "4"), "failed"), self.key_place)
            w.goto("sites")
            w.label("one")
            w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), self.key_place)
            run_time = w.new(f"and i64 {self.flags}, {RUN_TIME}")
            w.branch(w.new(f"icmp eq i64 {run_time}, 0"), "sites", "given")
            w.label("given")
            numbers = w.needs(w.call("PyTuple_New", "1"), "failed")
            w.call("PyTuple_SetItem", numbers, "0", w.held(self.other))
            w.call("Py_DecRef", w.load(self.numbers_place))
            w.store(numbers, self.numbers_place)
        else:
            w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), self.key_place)
        w.label("sites")
        set_site(w, o, self.stream, self.site_place)
        w.store(w.needs(new_object(w, "storage"), "failed"), self.storage_place)
        w.store(w.needs(new_object(w, "tensor"), "failed"), self.out_place)
        w.store(w.needs(w.call("PyTuple_New", "3"), "failed"), self.record_place)

    def commit(self) -> None:
        """Put the record in; nothing runs Python before it is."""
        w, o = self.w, self.o
        fresh = w.load(self.segment, o["Segment.fresh"])
        position = w.call("PyLong_FromSsize_t", w.call("PyList_Size", fresh))
        w.needs(position, "failed")
        storage, out = w.load(self.storage_place), w.load(self.out_place)
        fill_result(w, o, self.segment, self.out_layout, position, storage, out)
        key = w.load(self.key_place)
        w.call("PyTuple_SetItem", key, "0", w.held(self.signature))
        w.call("PyTuple_SetItem", key, "1", w.take(self.slot_place))
        if self.binary:
            w.branch(w.is_null(w.load(self.other_place)), "last", "between")
            w.label("between")
            w.call("PyTuple_SetItem", key, "2", w.take(self.other_place))
            w.call("PyTuple_SetItem", key, "3", position)
            w.goto("keyed_record")
            w.label("last")
        w.call("PyTuple_SetItem", key, "2", position)
        w.label("keyed_record")
        append_record(
            w, o, self.segment, self.records, fresh, self.storage_place,
            (self.record_place, self.key_place, self.numbers_place, self.site_place),
        )  # fmt: skip
        settle(w, o, self.segment)

    def give_history(self) -> None:
        """Attach a node, or mark what is made in inference mode."""
        w, o = self.w, self.o
        enabled = w.load(self.stream, o["Stream.grad_enabled"])
        w.branch(w.same(enabled, TRUE), "gradient", "no_gradient")
        w.label("gradient")
        tracked(w, o, self.left, "attach", "second")
        w.label("second")
        if self.binary:
            number = w.load(self.number, 0, "i64")
            w.branch(w.new(f"icmp eq i64 {number}, 0"), "second_tensor", "done")
            w.label("second_tensor")
            tracked(w, o, self.other, "attach", "done")
        else:
            w.goto("done")
        w.label("attach")
        wanted = w.new(f"and i64 {self.flags}, {GRADIENT}")
        w.branch(w.new(f"icmp eq i64 {wanted}, 0"), "done", "attached")
        w.label("attached")
        # The record's site, kept alive by the record (a flush may have dropped it: hold it).
        site = w.load(self.site_place)
        second = "ptr null, i64 1"
        if self.binary:
            second = f"ptr {self.other}, i64 {w.load(self.number, 0, 'i64')}"
        status = w.local(
            f"i32 @attach(ptr %table, ptr %self, ptr {self.left}, {second}, "
            f"ptr {w.load(self.out_place)}, ptr {self.attributes}, ptr {self.layouts}, ptr {site})"
        )
        w.branch(w.new(f"icmp eq i32 {status}, 0"), "done", "failed")
        w.label("no_gradient")
        w.branch(w.same(w.load(self.stream, o["Stream.inference"]), TRUE), "inference", "done")
        w.label("inference")
        w.store(w.load(self.out_place), self.attach_arguments)
        mark = w.load("%self", CALLABLE["mark"])
        marked = w.call("PyObject_Vectorcall", mark, self.attach_arguments, "1", "null")
        w.call("Py_DecRef", w.needs(marked, "failed"))


def record_text(name: str, o: Offsets, *, binary: bool) -> str:
    """The callable of an operator of one tensor, or of a tensor and a tensor or number."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    made = _Recording(w, o, binary=binary)
    made.read()
    made.touch()
    made.commit()
    made.give_history()
    w.label("done")
    result = w.take(made.out_place)
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


def give_up(w: Writer) -> None:
    """Block `surprise`: what was raised on the way is forgotten, and the closure does it all."""
    w.label("surprise")
    w.forgive("failed")
    w.let_go()
    w.goto("python")
    hand_over(w)


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
