"""LLVM text of giving a result its history: recording/record.py's common call, spelled out.

Keeps     one output, one or two tensors, none of them a view, no hooks on saving: a node's slots
          are filled as there; whatever else is handed to the plan's own attach.
Touches   writer, record_text (tables).
Not here  what a plan saves (gradients/recording/plan.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import CALLABLE, TABLE, Offsets, new_object
from flambeau.tensor.native.text.attach_any_text import build_node
from flambeau.tensor.native.text.writer import NONE, Writer


def entry_text(o: Offsets) -> str:
    """@entry(table, tensor, history): a tensor as saved.entry keeps it."""
    w = Writer("define internal ptr @entry(ptr %table, ptr %tensor, ptr %history)")
    counter_place, version_place = w.owner("counter"), w.owner("version")
    storage = w.load("%tensor", o["View._storage"])
    versions = w.call("PyObject_GetAttr", "%tensor", w.load("%table", TABLE["versions"]))
    w.store(w.needs(versions, "failed"), counter_place)
    w.branch(w.same(versions, NONE), "shared", "apart")
    w.label("shared")
    w.call("Py_DecRef", versions)
    w.store(w.held(storage), counter_place)
    w.store(w.held(w.load(storage, o["Storage.version"])), version_place)
    w.goto("pack")
    w.label("apart")
    found = w.call("PyObject_GetAttr", versions, w.load("%table", TABLE["version"]))
    w.store(w.needs(found, "failed"), version_place)
    w.label("pack")
    made = w.needs(w.call("PyTuple_New", "6"), "failed")
    values = [
        w.held(storage),
        w.held(w.load("%tensor", o["View._layout"])),
        w.held(w.load("%tensor", o["View._offset"])),
        w.held("%history"),
        w.take(counter_place),
        w.take(version_place),
    ]
    for position, value in enumerate(values):
        w.call("PyTuple_SetItem", made, str(position), value)
    w.returns(f"ptr {made}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def history_text(o: Offsets) -> str:
    """@history(table, tensor): members.history, borrowed; null where Python has to look: a view
    that is behind its base, or that becomes a leaf."""
    w = Writer("define internal ptr @history(ptr %table, ptr %tensor)")
    own = w.load("%tensor", o["Tensor._autograd"])
    base = w.load("%tensor", o["Tensor._base"])
    w.branch(w.same(base, NONE), "own", "view")
    w.label("view")
    no_history = w.same(own, NONE)
    base_plain = w.same(w.load(base, o["Tensor._autograd"]), NONE)
    becomes_leaf = w.new(f"and i1 {no_history}, {w.new(f'xor i1 {base_plain}, true')}")
    w.branch(becomes_leaf, "python")
    name = w.load("%table", TABLE["rebased"])
    mine = w.needs(w.call("PyObject_GetAttr", "%tensor", name), "python")
    w.call("Py_DecRef", mine)
    theirs = w.needs(w.call("PyObject_GetAttr", base, name), "python")
    w.call("Py_DecRef", theirs)
    w.branch(w.same(mine, theirs), "own", "python")
    w.label("own")
    w.returns(f"ptr {own}")
    w.label("python")
    w.returns("ptr null")
    return w.text()


def result_text(o: Offsets) -> str:
    """@result_entry(table, out): the result itself, saved by its own node."""
    w = Writer("define internal ptr @result_entry(ptr %table, ptr %out)")
    storage = w.load("%out", o["View._storage"])
    made = w.needs(w.call("PyTuple_New", "6"), "failed")
    for position, value in enumerate((
        storage, w.load("%out", o["View._layout"]), w.load("%out", o["View._offset"]),
        w.load("%table", TABLE["own"]), storage, w.load(storage, o["Storage.version"]),
    )):  # fmt: skip
        w.call("PyTuple_SetItem", made, str(position), w.held(value))
    w.returns(f"ptr {made}")
    w.label("failed")
    w.returns("ptr null")
    return w.text()


def attach_text(o: Offsets, *, binary: bool) -> str:
    """@attach(table, self, left, other, is_number, out, attributes, layouts, site): 0, or -1 with
    an exception set."""
    w = Writer(
        "define internal i32 @attach(ptr %table, ptr %self, ptr %left, ptr %other, i64 %number, "
        "ptr %out, ptr %attributes, ptr %layouts, ptr %site)"
    )
    node_place, saved_place, edges_place = w.owner("node"), w.owner("saved"), w.owner("edges")
    arguments, right_edge = w.place("arguments", "ptr", 5), w.place("right_edge")
    position_place = w.place("position", "i64")
    w.needs(w.load("%self", CALLABLE["plan"]), "python")
    special = w.call("PyList_Size", w.load("%table", TABLE["special"]))
    w.branch(w.new(f"icmp ne i64 {special}, 0"), "python")
    left_edge = w.needs(w.local("ptr @history(ptr %table, ptr %left)"), "python")
    w.store(NONE, right_edge)
    if binary:
        w.branch(w.new("icmp ne i64 %number, 0"), "edges_known", "right_tensor")
        w.label("right_tensor")
        found = w.needs(w.local("ptr @history(ptr %table, ptr %other)"), "python")
        w.store(found, right_edge)
    w.label("edges_known")
    right = w.load(right_edge)
    left_needs = w.new(f"zext i1 {w.new(f'icmp ne ptr {left_edge}, {NONE}')} to i64")
    right_needs = w.new(f"zext i1 {w.new(f'icmp ne ptr {right}, {NONE}')} to i64")
    case = w.new(f"add i64 {left_needs}, {w.new(f'shl i64 {right_needs}, 1')}")
    w.branch(w.new(f"icmp eq i64 {case}, 0"), "fine")
    shift = w.new(f"mul i64 {case}, 3")
    masks = w.load("%self", CALLABLE["saves"], "i64")
    mask = w.new(f"and i64 {w.new(f'lshr i64 {masks}, {shift}')}, 7")
    w.store(w.needs(new_object(w, "node"), "failed"), node_place)
    edges = w.needs(w.call("PyTuple_New", "2" if binary else "1"), "failed")
    w.call("PyTuple_SetItem", edges, "0", w.held(left_edge))
    if binary:
        w.call("PyTuple_SetItem", edges, "1", w.held(right))
    w.store(edges, edges_place)
    extra = w.load("%self", CALLABLE["extra"])
    n_extra = w.call("PyTuple_Size", extra)
    w.branch(w.new(f"icmp eq i64 {mask}, 0"), "saves_none", "saves_some")

    lead = 2 if binary else 1
    _save_nothing(w, saved_place, lead, extra, n_extra, position_place)
    _save_some(w, binary, saved_place, extra, n_extra, lead, position_place, left_edge, right, mask)
    w.label("build")
    build_node(w, o, node_place, edges_place, saved_place)
    w.label("fine")
    w.let_go()
    w.returns("i32 0")

    w.label("python")
    w.needs_no_error("failed")
    given = ["%attributes", "%left", *(["%other"] if binary else []), "%out", "%site"]
    for position, value in enumerate(given):
        w.store(value, arguments, 8 * position)
    attach = w.load("%self", CALLABLE["attach"])
    done = w.call("PyObject_Vectorcall", attach, arguments, str(len(given)), "null")
    w.call("Py_DecRef", w.needs(done, "failed"))
    w.goto("fine")
    w.label("failed")
    w.let_go()
    w.returns("i32 -1")
    return w.text()


def _save_some(
    w: Writer, binary: bool, saved_place: str, extra: str, n_extra: str, lead: int,
    position_place: str, left_edge: str, right: str, mask: str,
) -> None:  # fmt: skip
    """What the gradient reads: operands and the result."""
    w.label("saves_some")
    length = w.new(f"add i64 {n_extra}, {lead + 1}")
    w.store(w.needs(w.call("PyTuple_New", length), "failed"), saved_place)
    _fill(w, "PyTuple_SetItem", extra, n_extra, lead, position_place, saved_place)
    slots = [("0", 1, f"ptr @entry(ptr %table, ptr %left, ptr {left_edge})", "left")]
    if binary:
        slots.append(("1", 2, f"ptr @entry(ptr %table, ptr %other, ptr {right})", "right"))
    last = w.new(f"add i64 {n_extra}, {lead}")
    slots.append((last, 4, "ptr @result_entry(ptr %table, ptr %out)", "out"))
    for position, bit, make, name in slots:
        w.branch(w.new(f"icmp eq i64 {w.new(f'and i64 {mask}, {bit}')}, 0"), f"skip_{name}",
                 f"save_{name}")  # fmt: skip
        w.label(f"skip_{name}")
        w.call("PyTuple_SetItem", w.load(saved_place), position, w.held(NONE))
        w.goto(f"after_{name}")
        w.label(f"save_{name}")
        if name == "right":
            w.branch(w.new("icmp ne i64 %number, 0"), "plain_right", "tensor_right")
            w.label("plain_right")
            w.call("PyTuple_SetItem", w.load(saved_place), position, w.held("%other"))
            w.goto(f"after_{name}")
            w.label("tensor_right")
        made = w.needs(w.local(make), "failed")
        w.call("PyTuple_SetItem", w.load(saved_place), position, made)
        w.label(f"after_{name}")


def _save_nothing(
    w: Writer, saved_place: str, lead: int, extra: str, n_extra: str, position_place: str
) -> None:
    """A node that saves no tensor; numbers an operator has stay."""
    w.label("saves_none")
    w.branch(w.new(f"icmp eq i64 {n_extra}, 0"), "nothing", "numbers")
    w.label("nothing")
    w.store(w.held(w.load("%table", TABLE["nothing"])), saved_place)
    w.goto("build")
    w.label("numbers")
    length = w.new(f"add i64 {n_extra}, {lead + 1}")
    w.store(w.needs(w.call("PyList_New", length), "failed"), saved_place)
    _fill(w, "PyList_SetItem", extra, n_extra, lead, position_place, saved_place)
    for position in (*range(lead), w.new(f"add i64 {n_extra}, {lead}")):
        w.call("PyList_SetItem", w.load(saved_place), str(position), w.held(NONE))
    w.goto("build")


def _fill(
    w: Writer, setter: str, extra: str, count: str, lead: int, position_place: str, saved: str
) -> None:
    """Put the numbers an operator has besides its operands behind `lead` places."""
    name = setter.removesuffix("_SetItem")
    w.store("0", position_place, 0, "i64")
    w.label(f"more_{name}")
    position = w.load(position_place, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {position}, {count}"), f"filled_{name}", f"fill_{name}")
    w.label(f"fill_{name}")
    value = w.held(w.call("PyTuple_GetItem", extra, position))
    w.call(setter, w.load(saved), w.new(f"add i64 {position}, {lead}"), value)
    w.store(w.new(f"add i64 {position}, 1"), position_place, 0, "i64")
    w.goto(f"more_{name}")
    w.label(f"filled_{name}")
