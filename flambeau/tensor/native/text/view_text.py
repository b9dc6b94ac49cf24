"""LLVM text of making views: Binding.call_view and x[int], spelled out.

Keeps     views whose layouts are known by their key; families with in-place history are Python's.
Touches   writer, record_text, general_text (reading arguments, histories).
Not here  layouts of views (base/view_rules.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import CALLABLE, TABLE, VIEW_WAY, Offsets, new_object
from flambeau.tensor.native.text.general_text import Arguments, look_up
from flambeau.tensor.native.text.record_text import give_up
from flambeau.tensor.native.text.writer import NONE, TRUE, TYPE_OFFSET, Writer, item, loop, next_of

# What a key of a view leads to.


def make_view_text(o: Offsets) -> str:
    """@make_view(table, source, layout, offset): binding.view_of for a family whose versions the
    storage counts; null without an exception for others."""
    w = Writer("define internal ptr @make_view(ptr %table, ptr %source, ptr %layout, i64 %further)")
    made_place = w.owner("made")
    versions = w.call("PyObject_GetAttr", "%source", w.load("%table", TABLE["versions"]))
    w.needs(versions, "failed")
    w.call("Py_DecRef", versions)
    w.branch(w.same(versions, NONE), "shared", "failed")
    w.label("shared")
    storage = w.load("%source", o["View._storage"])
    before = w.call("PyLong_AsSsize_t", w.load("%source", o["View._offset"]))
    offset = w.new(f"add i64 {before}, %further")
    made = w.needs(new_object(w, "tensor"), "failed")
    w.store(made, made_place)
    number = w.needs(w.call("PyLong_FromSsize_t", offset), "failed")
    same_layout = w.same("%layout", w.load(storage, o["Storage.layout"]))
    at_start = w.new(f"icmp eq i64 {offset}, 0")
    whole = w.new(f"and i1 {same_layout}, {at_start}")
    place = w.new(f"select i1 {whole}, ptr {storage}, ptr {w.load('%table', TABLE['unplaced'])}")
    base = w.load("%source", o["Tensor._base"])
    is_base = w.same(base, NONE)
    w.put(w.held(storage), made, o["View._storage"])
    w.put(w.held("%layout"), made, o["View._layout"])
    w.put(number, made, o["View._offset"])
    w.put(w.held(place), made, o["View._place"])
    w.put(w.held(NONE), made, o["Tensor._autograd"])
    w.put(w.held(w.new(f"select i1 {is_base}, ptr %source, ptr {base}")), made, o["Tensor._base"])
    w.returns(f"ptr {w.take(made_place)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def plain_family_text(o: Offsets) -> str:
    """@plain_family(table, stream, source): 0 where a view gets no history, 1 where it gets one
    through its source, 2 where it is marked as made in no_grad mode, 3 where it gets its source's
    mark with the history, -1 where Python looks."""
    w = Writer("define internal i32 @plain_family(ptr %table, ptr %stream, ptr %source)")
    base = w.load("%source", o["Tensor._base"])
    own = w.load("%source", o["Tensor._autograd"])
    has_none = w.same(own, NONE)
    is_base = w.same(base, NONE)
    w.branch(w.new(f"and i1 {has_none}, {is_base}"), "no", "maybe")
    w.label("no")
    w.returns("i32 0")
    w.label("maybe")
    w.branch(w.same(w.load("%stream", o["Stream.grad_enabled"]), TRUE), "enabled", "disabled")
    w.label("disabled")
    w.branch(has_none, "no", "marked")
    w.label("marked")
    w.returns("i32 2")
    w.label("enabled")
    edge = w.needs(w.local("ptr @history(ptr %table, ptr %source)"), "python")
    creation = w.call("PyObject_GetAttr", "%source", w.load("%table", TABLE["creation"]))
    w.needs(creation, "python")
    w.call("Py_DecRef", creation)
    is_unmarked = w.same(creation, NONE)
    family = w.new(f"select i1 {is_base}, ptr %source, ptr {base}")
    stamp = w.call("PyObject_GetAttr", family, w.load("%table", TABLE["rebased"]))
    w.needs(stamp, "python")
    w.call("Py_DecRef", stamp)
    w.branch(w.same(stamp, NONE), "fresh", "python")
    w.label("fresh")
    w.branch(w.same(edge, NONE), "without", "yes")
    w.label("without")
    w.branch(is_unmarked, "no", "python")
    w.label("yes")
    w.returns(f"i32 {w.new(f'select i1 {is_unmarked}, i32 1, i32 3')}")
    w.label("python")
    w.returns("i32 -1")
    return w.text()


def _with_history(
    w: Writer, o: Offsets, source: str, out_place: str, history: str, attributes: str, layouts: str,
    operands: str,
) -> None:  # fmt: skip
    """Give a view its node where it gets one, and return it."""
    w.branch(w.new(f"icmp eq i32 {history}, 0"), "done", "some_history")
    w.label("some_history")
    name = w.load("%table", TABLE["creation"])
    w.branch(w.new(f"icmp eq i32 {history}, 2"), "mark", "not_marked")
    w.label("mark")
    status = w.call("PyObject_SetAttr", w.load(out_place), name, w.load("%table", TABLE["no_grad"]))
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "done", "failed")
    w.label("not_marked")
    w.branch(w.new(f"icmp eq i32 {history}, 3"), "pass_on", "attach")
    w.label("pass_on")
    mark = w.needs(w.call("PyObject_GetAttr", source, name), "failed")
    status = w.call("PyObject_SetAttr", w.load(out_place), name, mark)
    w.call("Py_DecRef", mark)
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "attach", "failed")
    w.label("attach")
    told_place = _told_site(w, o, "view")
    w.store(source, operands)
    status = w.local(
        f"i32 @attach_any(ptr %table, ptr %self, ptr {operands}, i64 1, ptr {w.load(out_place)}, "
        f"ptr {attributes}, ptr {layouts}, ptr {w.load(told_place)})"
    )
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "done", "failed")
    w.label("done")
    result = w.take(out_place)
    w.let_go()
    w.returns(f"ptr {result}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")


def view_text(name: str, o: Offsets) -> str:
    """The callable of a view operator: a tensor and attributes."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    s = Arguments(w)
    out_place, attributes_place = w.owner("out"), w.owner("attributes")
    layouts_place = w.owner("layouts")
    found = look_up(w, o, s)
    way = w.new(f"inttoptr i64 {w.call('PyLong_AsSsize_t', found)} to ptr")
    source = w.load(item(w, s.values, "0"))
    w.lines.append("  %stream = call ptr @stream(ptr %table)")
    w.needs("%stream", "surprise")
    history = w.local(f"i32 @plain_family(ptr %table, ptr %stream, ptr {source})")
    w.branch(w.new(f"icmp slt i32 {history}, 0"), "surprise")
    attributes = w.held(w.load(way, VIEW_WAY["attributes"]))
    w.store(attributes, attributes_place)
    several = w.load(way, VIEW_WAY["several"])
    w.branch(w.is_null(several), "one", "several")
    _several(w, o, several, history, source, out_place, attributes)
    w.label("one")
    layouts = w.held(w.load(way, VIEW_WAY["layouts"]))
    w.store(layouts, layouts_place)
    made = w.local(
        f"ptr @make_view(ptr %table, ptr {source}, ptr {w.load(way, VIEW_WAY['layout'])}, "
        f"i64 {w.load(way, VIEW_WAY['offset'], 'i64')})"
    )
    w.store(w.needs(made, "surprise"), out_place)
    _with_history(w, o, source, out_place, history, attributes, layouts, s.operands)
    give_up(w)
    return w.text()


def _several(
    w: Writer, o: Offsets, several: str, history: str, source: str, out_place: str, attributes: str
) -> None:
    """A tuple of views: (layout, offset) pairs say which. Python gives them their one node."""
    index, known_place = w.place("view_index", "i64"), w.owner("known")
    w.label("several")
    w.branch(w.new(f"icmp eq i32 {history}, 2"), "surprise")
    w.store(w.held(several), known_place)
    count = w.call("PyTuple_Size", several)
    made = w.needs(w.call("PyTuple_New", count), "surprise")
    w.store(made, out_place)
    n = loop(w, "view", index, count)
    pair = w.call("PyTuple_GetItem", several, n)
    further = w.call("PyLong_AsSsize_t", w.call("PyTuple_GetItem", pair, "1"))
    layout = w.call("PyTuple_GetItem", pair, "0")
    one = w.local(f"ptr @make_view(ptr %table, ptr {source}, ptr {layout}, i64 {further})")
    w.call("PyTuple_SetItem", made, n, w.needs(one, "surprise"))
    next_of(w, "view", index)
    w.branch(w.new(f"icmp eq i32 {history}, 0"), "done", "parts_history")
    w.label("parts_history")
    told_place = _told_site(w, o, "parts")
    given_place, arguments = w.owner("parts_source"), w.place("parts_arguments", "ptr", 4)
    given = w.needs(w.call("PyTuple_New", "1"), "failed")
    w.store(given, given_place)
    w.call("PyTuple_SetItem", given, "0", w.held(source))
    for position, value in enumerate((attributes, given, made, w.load(told_place))):
        w.store(value, arguments, 8 * position)
    attach = w.load("%self", CALLABLE["attach"])
    attached = w.call("PyObject_Vectorcall", attach, arguments, "4", "null")
    w.call("Py_DecRef", w.needs(attached, "failed"))
    w.goto("done")


def _told_site(w: Writer, o: Offsets, name: str) -> str:
    """A place with the call site: the one that the stream is told, or the caller's."""
    site_place = w.owner(f"{name}_site")
    told_place = w.place(f"{name}_told_site")
    told = w.load("%stream", o["Stream.site"])
    w.store(told, told_place)
    w.branch(w.same(told, NONE), f"{name}_walk", f"{name}_sited")
    w.label(f"{name}_walk")
    w.store(w.needs(w.local("ptr @site(ptr %table)"), "failed"), site_place)
    w.store(w.load(site_place), told_place)
    w.label(f"{name}_sited")
    return told_place


def getitem_text(name: str, o: Offsets) -> str:
    """x[int]; the callable's cache is the key of the layout's memo for such views."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    out_place, attributes_place = w.owner("out"), w.owner("attributes")
    layouts_place = w.owner("layouts")
    overflow, operands = w.place("overflow", "i32"), w.place("operands", "ptr")
    at_place = w.place("at", "i64")
    w.lines.append(f"  %table = load ptr, ptr {w.at('%self', CALLABLE['table'])}, align 8")
    w.branch(w.is_null("%names"), "positional", "python")
    w.label("positional")
    given = w.new("and i64 %count, 9223372036854775807")
    w.branch(w.new(f"icmp eq i64 {given}, 2"), "two", "python")
    w.label("two")
    source, key = w.load("%arguments"), w.load("%arguments", 8)
    w.branch(w.same(w.load(key, TYPE_OFFSET), "@PyLong_Type"), "int", "python")
    w.label("int")
    w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {source})"), "tensor", "python")
    w.label("tensor")
    place = w.call("PyLong_AsLongLongAndOverflow", key, overflow)
    w.branch(w.new(f"icmp ne i32 {w.load(overflow, 0, 'i32')}, 0"), "python")
    layout = w.needs(w.load(source, o["View._layout"]), "python")
    memo = w.load(layout, o["Layout.memo"])
    found = w.call("PyDict_GetItemWithError", memo, w.load("%self", CALLABLE["cache"]))
    w.needs(found, "python")
    seen = w.call("PyTuple_GetItem", found, "0")
    size = w.call("PyLong_AsSsize_t", w.call("PyTuple_GetItem", found, "1"))
    stride = w.call("PyLong_AsSsize_t", w.call("PyTuple_GetItem", found, "2"))
    negative = w.new(f"icmp slt i64 {place}, 0")
    wrapped = w.new(f"add i64 {place}, {size}")
    w.store(w.new(f"select i1 {negative}, i64 {wrapped}, i64 {place}"), at_place, 0, "i64")
    at = w.load(at_place, 0, "i64")
    # As unsigned numbers, one comparison says that it is neither negative nor too large.
    w.branch(w.new(f"icmp ult i64 {at}, {size}"), "inside", "python")
    w.label("inside")
    w.lines.append("  %stream = call ptr @stream(ptr %table)")
    w.needs("%stream", "surprise")
    history = w.local(f"i32 @plain_family(ptr %table, ptr %stream, ptr {source})")
    w.branch(w.new(f"icmp slt i32 {history}, 0"), "surprise")
    further = w.new(f"mul i64 {at}, {stride}")
    made = w.local(f"ptr @make_view(ptr %table, ptr {source}, ptr {seen}, i64 {further})")
    w.store(w.needs(made, "surprise"), out_place)
    has_node = w.new(f"icmp ne i32 {w.new(f'and i32 {history}, 1')}, 0")
    w.branch(has_node, "name", "named")
    w.label("name")
    attributes = w.needs(w.call("PyDict_New"), "failed")
    w.store(attributes, attributes_place)
    dim, zero = w.load("%table", TABLE["dim"]), w.load("%table", TABLE["zero"])
    w.call("PyDict_SetItem", attributes, dim, zero)
    w.call("PyDict_SetItem", attributes, w.load("%table", TABLE["index"]), key)
    layouts = w.needs(w.call("PyTuple_New", "1"), "failed")
    w.call("PyTuple_SetItem", layouts, "0", w.held(layout))
    w.store(layouts, layouts_place)
    w.label("named")
    _with_history(w, o, source, out_place, history, w.load(attributes_place),
                  w.load(layouts_place), operands)  # fmt: skip
    give_up(w)
    return w.text()
