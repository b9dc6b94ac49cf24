"""LLVM text of what a node's vjp gets: gradients/recording/plan.py's arguments, spelled out.

Keeps     either all arguments are collected, each a new reference, or none are held.
Touches   writer, tables.
Not here  calling vjp and handing on what it returns (walk_text.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import (
    ATTRIBUTE,
    GRAD,
    LAYOUT,
    LAYOUTS,
    PROGRAM,
    SAVED,
    SEQUENCE_NEEDS,
    TABLE,
    Offsets,
    new_object,
)
from flambeau.tensor.native.text.writer import FALSE, NONE, TRUE, TYPE_OFFSET, Writer


def unpack_text(o: Offsets) -> str:
    """@unpack(table, entry, node): saved.unpack; null without an exception where the value was
    written since, or the entry is another kind of tuple."""
    w = Writer("define internal ptr @unpack(ptr %table, ptr %entry, ptr %node)")
    w.branch(w.new(f"icmp ne i64 {w.call('PyTuple_Size', '%entry')}, 6"), "surprise")
    storage, layout, offset, history, counter, version = (
        w.call("PyTuple_GetItem", "%entry", str(n)) for n in range(6)
    )
    w.branch(w.same(counter, storage), "shared", "surprise")
    w.label("shared")
    now = w.call("PyLong_AsSsize_t", w.load(storage, o["Storage.version"]))
    then = w.call("PyLong_AsSsize_t", version)
    w.branch(w.new(f"icmp eq i64 {now}, {then}"), "current", "surprise")
    w.label("current")
    made = w.needs(new_object(w, "tensor"), "surprise")
    w.put(w.held(storage), made, o["View._storage"])
    w.put(w.held(layout), made, o["View._layout"])
    w.put(w.held(offset), made, o["View._offset"])
    w.put(w.held(NONE), made, o["Tensor._base"])
    own = w.same(history, w.load("%table", TABLE["own"]))
    chosen = w.new(f"select i1 {own}, ptr %node, ptr {history}")
    w.put(w.held(chosen), made, o["Tensor._autograd"])
    # As tensor.new_tensor: a view of the whole storage has the storage for its place.
    same_layout = w.same(layout, w.load(storage, o["Storage.layout"]))
    at_start = w.new(f"icmp eq i64 {w.call('PyLong_AsSsize_t', offset)}, 0")
    whole = w.new(f"and i1 {same_layout}, {at_start}")
    unplaced = w.load("%table", TABLE["unplaced"])
    w.put(w.held(w.new(f"select i1 {whole}, ptr {storage}, ptr {unplaced}")), made,
          o["View._place"])  # fmt: skip
    w.returns(f"ptr {made}")
    w.label("surprise")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def needs_text(o: Offsets) -> str:
    """@needs(edges): which edges lead somewhere, a tuple of bools."""
    w = Writer("define internal ptr @needs(ptr %edges)")
    index = w.place("index", "i64")
    count = w.call("PyTuple_Size", "%edges")
    made = w.needs(w.call("PyTuple_New", count), "failed")
    w.store("0", index, 0, "i64")
    w.label("more")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "full", "fill")
    w.label("fill")
    empty = w.same(w.call("PyTuple_GetItem", "%edges", n), NONE)
    flag = w.new(f"select i1 {empty}, ptr {FALSE}, ptr {TRUE}")
    w.call("PyTuple_SetItem", made, n, w.held(flag))
    w.store(w.new(f"add i64 {n}, 1"), index, 0, "i64")
    w.goto("more")
    w.label("full")
    w.returns(f"ptr {made}")
    w.label("failed")
    w.returns("ptr null")
    return w.text()


def arguments_text(o: Offsets) -> str:
    """@collect(table, program, node, cotangent, vector): what vjp gets, each a new reference;
    the number of them, 0 where Python has to do it, -1 with an exception set."""
    w = Writer(
        "define internal i64 @collect(ptr %table, ptr %program, ptr %node, ptr %cotangent, "
        "ptr %vector)"
    )
    index = w.place("index", "i64")
    saved = w.load("%node", o["OperatorNode.saved"])
    count = w.load("%program", PROGRAM["count"], "i64")
    w.store(w.held(w.load("%program", PROGRAM["functions"])), "%vector")
    w.store("0", index, 0, "i64")
    w.label("next")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "all", "one")
    w.label("one")
    pair = w.at(w.at("%program", PROGRAM["pairs"]), w.new(f"mul i64 {n}, 16"))
    kind, key = w.load(pair, 0, "i64"), w.load(pair, 8)
    number = w.load(pair, 8, "i64")
    value = w.place("value")
    w.branch(w.new(f"icmp eq i64 {kind}, {GRAD}"), "grad", "not_grad")
    w.label("grad")
    w.store(w.held("%cotangent"), value)
    w.goto("have")
    w.label("not_grad")
    w.branch(w.new(f"icmp eq i64 {kind}, {SAVED}"), "saved", "not_saved")
    w.label("saved")
    item = w.place("item")
    w.branch(w.same(w.load(saved, TYPE_OFFSET), "@PyTuple_Type"), "in_tuple", "in_list")
    w.label("in_tuple")
    w.store(w.needs(w.call("PyTuple_GetItem", saved, number), "failed"), item)
    w.goto("item")
    w.label("in_list")
    w.store(w.needs(w.call("PyList_GetItem", saved, number), "failed"), item)
    w.label("item")
    found = w.load(item)
    item_kind = w.load(found, TYPE_OFFSET)
    w.branch(w.same(item_kind, "@PyTuple_Type"), "packed", "plain")
    w.label("packed")
    tensor = w.local(f"ptr @unpack(ptr %table, ptr {found}, ptr %node)")
    w.store(w.needs(tensor, "python"), value)
    w.goto("have")
    w.label("plain")
    is_none = w.same(found, NONE)
    is_float = w.same(item_kind, "@PyFloat_Type")
    is_int = w.same(item_kind, "@PyLong_Type")
    is_plain = w.new(f"or i1 {is_none}, {w.new(f'or i1 {is_float}, {is_int}')}")
    w.branch(is_plain, "number", "python")
    w.label("number")
    w.store(w.held(found), value)
    w.goto("have")
    _collect_other(w, o, value, number, index, key, n, kind, count)
    for label, status in (("python", 0), ("failed", -1)):
        w.label(label)
        collected = w.new(f"add i64 {w.load(index, 0, 'i64')}, 1")
        w.lines.append(f"  call void @drop(ptr %vector, i64 {collected})")
        w.returns(f"i64 {status}")
    return w.text()


def _collect_other(
    w: Writer, o: Offsets, value: str, number: str, index: str, key: str, n: str, kind: str,
    count: str,
) -> None:  # fmt: skip
    """An attribute, a layout or what is needed."""
    w.label("not_saved")
    w.branch(w.new(f"icmp eq i64 {kind}, {ATTRIBUTE}"), "attribute", "not_attribute")
    w.label("attribute")
    attributes = w.load("%node", o["OperatorNode.attributes"])
    found = w.needs(w.call("PyDict_GetItemWithError", attributes, key), "python")
    w.store(w.held(found), value)
    w.goto("have")
    w.label("not_attribute")
    w.branch(w.new(f"icmp eq i64 {kind}, {LAYOUT}"), "layout", "not_layout")
    w.label("layout")
    found = w.call("PyTuple_GetItem", w.load("%node", o["Node.layouts"]), number)
    w.store(w.held(w.needs(found, "failed")), value)
    w.goto("have")
    w.label("not_layout")
    w.branch(w.new(f"icmp eq i64 {kind}, {LAYOUTS}"), "layouts", "needed")
    w.label("layouts")
    w.store(w.held(w.load("%node", o["Node.layouts"])), value)
    w.goto("have")
    w.label("needed")
    flags = w.local(f"ptr @needs(ptr {w.load('%node', o['Node.edges'])})")
    w.store(w.needs(flags, "failed"), value)
    w.branch(w.new(f"icmp eq i64 {kind}, {SEQUENCE_NEEDS}"), "nested", "have")
    w.label("nested")
    around = w.needs(w.call("PyTuple_New", "1"), "failed")
    w.call("PyTuple_SetItem", around, "0", flags)
    w.store(around, value)
    w.label("have")
    next_n = w.new(f"add i64 {n}, 1")
    w.store(w.load(value), w.at("%vector", w.new(f"mul i64 {next_n}, 8")))
    w.store(next_n, index, 0, "i64")
    w.goto("next")
    w.label("all")
    w.returns(f"i64 {w.new(f'add i64 {count}, 1')}")


def drop_text() -> str:
    """@drop(vector, count): let go of collected arguments."""
    w = Writer("define internal void @drop(ptr %vector, i64 %count)")
    index = w.place("index", "i64")
    w.store("0", index, 0, "i64")
    w.label("more")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, %count"), "done", "one")
    w.label("one")
    w.call("Py_DecRef", w.load(w.at("%vector", w.new(f"mul i64 {n}, 8"))))
    w.store(w.new(f"add i64 {n}, 1"), index, 0, "i64")
    w.goto("more")
    w.label("done")
    w.returns("void")
    return w.text()
