"""LLVM text of what an update of many tensors does to each: a slot, a counted write.

Keeps     does what stream.record and saved.bump do, tensor by tensor.
Touches   writer, slots_text, inplace_text.
Not here  the record itself (engine/stream.py), the update (optim/update.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import CALLABLE, TABLE, Offsets
from flambeau.tensor.native.text.inplace_text import bump
from flambeau.tensor.native.text.writer import NONE, Writer, loop, next_of


def _begun(name: str) -> Writer:
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
    w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
    return w


def slots_text(name: str) -> str:
    """slots(segment, views): a list of the views' slots in the segment."""
    w = _begun(name)
    index, made_place, views_place = w.place("index", "i64"), w.owner("made"), w.owner("views")
    slot_place = w.owner("slot")
    # A list that nobody else changes: touching a view may run Python.
    views = w.needs(w.call("PySequence_Tuple", w.load("%arguments", 8)), "failed")
    w.store(views, views_place)
    made = w.needs(w.call("PyList_New", "0"), "failed")
    w.store(made, made_place)
    segment = w.load("%arguments")
    n = loop(w, "view", index, w.call("PyTuple_Size", views))
    view = w.call("PyTuple_GetItem", views, n)
    slot = w.local(f"ptr @slot(ptr %table, ptr {segment}, ptr {view})")
    w.store(w.needs(slot, "failed"), slot_place)
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', made, slot)}, 0"), "failed")
    w.call("Py_DecRef", w.take(slot_place))
    next_of(w, "view", index)
    w.call("Py_DecRef", w.take(views_place))
    w.returns(f"ptr {w.take(made_place)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def bumps_text(name: str, o: Offsets) -> str:
    """bumps(tensors, site, python): count a write of each tensor; those that count elsewhere than
    in their storage are handed to python(tensor, site)."""
    w = _begun(name)
    index, site_place = w.place("index", "i64"), w.owner("site")
    arguments = w.place("given", "ptr", 2)
    tensors, site = w.load("%arguments"), w.load("%arguments", 8)
    n = loop(w, "tensor", index, w.call("PyTuple_Size", tensors))
    tensor = w.call("PyTuple_GetItem", tensors, n)
    versions = w.call("PyObject_GetAttr", tensor, w.load("%table", TABLE["versions"]))
    w.needs(versions, "failed")
    w.call("Py_DecRef", versions)
    w.branch(w.same(versions, NONE), "own", "other")
    w.label("own")
    w.store(w.held(site), site_place)
    bump(w, o, w.load(tensor, o["View._storage"]), site_place)
    w.goto("next")
    w.label("other")
    w.store(tensor, arguments)
    w.store(site, arguments, 8)
    python = w.load("%arguments", 16)
    done = w.call("PyObject_Vectorcall", python, arguments, "2", "null")
    w.call("Py_DecRef", w.needs(done, "failed"))
    w.goto("next")
    w.label("next")
    next_of(w, "tensor", index)
    w.returns(f"ptr {w.held(NONE)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()
