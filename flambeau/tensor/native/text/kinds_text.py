"""LLVM text of asking what an object is.

Keeps     a tensor's own class is one comparison.
Touches   writer.
Not here  who takes calls over (arguments/taken_over.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import CALLABLE, TABLE, Offsets
from flambeau.tensor.native.text.writer import FALSE, NONE, TYPE_OFFSET, Writer, item, loop, next_of

_SIMPLE = ("PyLong_Type", "PyFloat_Type", "PyBool_Type", "PyUnicode_Type")


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


def plain_text(o: Offsets) -> str:
    """@is_plain(table, object): whether it is a tensor that takes no calls over, or may not now,
    while no mode does either. What is seen at sight is apart, small enough to stand in its
    callers."""
    w = Writer("define internal i1 @is_plain_closely(ptr %table, ptr %kind) noinline")
    plain = w.load("%table", TABLE["plain"])
    w.branch(w.is_null(plain), "no")
    found = w.call("PyType_IsSubtype", "%kind", plain)
    w.branch(w.new(f"icmp eq i32 {found}, 0"), "no")
    stream = w.needs(w.local("ptr @stream(ptr %table)"), "failed")
    w.branch(w.same(w.load(stream, o["Stream.asks"]), FALSE), "yes")
    name = w.load("%table", TABLE["taker"])
    taker = w.needs(w.call("PyObject_GetAttr", "%kind", name), "failed")
    w.call("Py_DecRef", taker)
    w.branch(w.same(taker, w.load("%table", TABLE["disabled"])), "yes", "no")
    w.label("yes")
    w.returns("i1 true")
    w.label("failed")
    w.call("PyErr_Clear")
    w.goto("no")
    w.label("no")
    w.returns("i1 false")
    closely = w.text()
    w = Writer("define internal i1 @is_plain(ptr %table, ptr %object)")
    kind = w.load("%object", TYPE_OFFSET)
    w.branch(w.same(kind, w.load("%table", TABLE["plain"])), "yes")
    w.branch(w.same(kind, w.load("%table", TABLE["parameter"])), "yes", "closely")
    w.label("closely")
    w.returns(f"i1 {w.local(f'i1 @is_plain_closely(ptr %table, ptr {kind})')}")
    w.label("yes")
    w.returns("i1 true")
    return closely + w.text()


def simple_text() -> str:
    """@is_simple(table, object): whether it is of a class that takes no calls over, for sure."""
    w = Writer("define internal i1 @is_simple(ptr %table, ptr %object)")
    w.branch(w.same("%object", NONE), "yes")
    kind = w.load("%object", TYPE_OFFSET)
    for word in ("plain", "parameter", "dtype"):
        w.branch(w.same(kind, w.load("%table", TABLE[word])), "yes")
    for name in _SIMPLE:
        w.branch(w.same(kind, f"@{name}"), "yes")
    w.returns("i1 false")
    w.label("yes")
    w.returns("i1 true")
    return w.text()


def guard_text(name: str) -> str:
    """The callable of a function written in Python: calls it where nobody takes the call over at
    sight; `rest` looks closer, and sees modes."""
    from flambeau.tensor.native.text.record_text import hand_over

    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    index, inner, total = (w.place(each, "i64") for each in ("index", "inner", "total"))
    w.lines.append(f"  %table = load ptr, ptr {w.at('%self', CALLABLE['table'])}, align 8")
    w.branch(w.is_null(w.load("%table", TABLE["plain"])), "rest")
    given = w.new("and i64 %count, 9223372036854775807")
    w.store(given, total, 0, "i64")
    w.branch(w.is_null("%names"), "counted", "named")
    w.label("named")
    w.store(w.new(f"add i64 {given}, {w.call('PyTuple_Size', '%names')}"), total, 0, "i64")
    w.label("counted")
    n = loop(w, "each", index, w.load(total, 0, "i64"))
    value = w.load(item(w, "%arguments", n))
    w.branch(w.local(f"i1 @is_simple(ptr %table, ptr {value})"), "each_next", "several")
    w.label("several")
    kind = w.load(value, TYPE_OFFSET)
    w.branch(w.same(kind, "@PyTuple_Type"), "tuple", "not_tuple")
    w.label("not_tuple")
    w.branch(w.same(kind, "@PyList_Type"), "list", "rest")
    for kind, size, get in (
        ("tuple", "PyTuple_Size", "PyTuple_GetItem"), ("list", "PyList_Size", "PyList_GetItem"),
    ):  # fmt: skip
        w.label(kind)
        m = loop(w, f"{kind}_part", inner, w.call(size, value))
        part = w.call(get, value, m)
        w.branch(w.local(f"i1 @is_simple(ptr %table, ptr {part})"), f"{kind}_part_next", "rest")
        w.label(f"{kind}_part_next")
        next_of(w, f"{kind}_part", inner)
        w.goto("each_next")
    w.label("each_next")
    next_of(w, "each", index)
    w.goto("python")
    hand_over(w)
    hand_over(w, "rest")
    return w.text()
