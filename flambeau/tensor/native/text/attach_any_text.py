"""LLVM text of giving the result of any operator its history: recording/record.py's general call,
spelled out for up to three tensors, none of them in a sequence.

Keeps     a node's slots are filled as there; whatever else is handed to the plan's own attach.
Touches   writer, tables.
Not here  the shortest calls (attach_text.py), what a plan saves (gradients/recording/plan.py)."""

from __future__ import annotations

from flambeau.tensor.native.tables import (
    CALLABLE,
    MAXIMUM_PARAMETERS,
    TABLE,
    Offsets,
    new_object,
)
from flambeau.tensor.native.text.writer import NONE, Writer, item, loop, next_of, push


def attach_any_text(o: Offsets) -> str:
    """@attach_any(table, self, operands, count, out, attributes, layouts, site): the history of a
    result of up to three tensors; 0, or -1 with an exception set.

    The callable's `saves` points at: a word of bits of which operands are tensors, then, by which
    of these need a gradient, a word of bits of which operands (and the result) are saved."""
    w = Writer(
        "define internal i32 @attach_any(ptr %table, ptr %self, ptr %operands, i64 %count, "
        "ptr %out, ptr %attributes, ptr %layouts, ptr %site)"
    )
    node_place, saved_place, edges_place = w.owner("node"), w.owner("saved"), w.owner("edges")
    given_place = w.owner("given")
    arguments = w.place("arguments", "ptr", 4)
    index, edge_count = w.place("index", "i64"), w.place("edge_count", "i64")
    case, holds = w.place("case", "i64"), w.place("holds", "i64")
    edge_list = w.place("edge_list", "ptr", MAXIMUM_PARAMETERS)
    w.needs(w.load("%self", CALLABLE["plan"]), "python")
    special = w.call("PyList_Size", w.load("%table", TABLE["special"]))
    w.branch(w.new(f"icmp ne i64 {special}, 0"), "python")
    saves = w.load("%self", CALLABLE["saves"])
    roles = w.load(saves, 0, "i64")
    for place in (edge_count, case, holds):
        w.store("0", place, 0, "i64")

    _edges(w, index, edge_list, edge_count, case, roles)
    which = w.load(case, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {which}, 0"), "fine")
    masks = w.at(saves, w.new(f"mul i64 {which}, 8"))
    mask = w.load(masks, 0, "i64")  # case 0 needs no word: its place holds the roles
    n_edges = w.load(edge_count, 0, "i64")
    w.store(w.needs(w.call("PyTuple_New", n_edges), "failed"), edges_place)
    n = loop(w, "fill_edge", index, n_edges)
    w.call("PyTuple_SetItem", w.load(edges_place), n, w.held(w.load(item(w, edge_list, n))))
    next_of(w, "fill_edge", index)

    w.store(w.needs(new_object(w, "node"), "failed"), node_place)
    w.store(w.needs(w.call("PyTuple_New", w.new("add i64 %count, 1")), "failed"), saved_place)
    _save_operands(w, edge_count, index, holds, roles, saved_place, mask, edge_list)
    w.branch(_bit(w, mask, "%count"), "save_out", "save_no_out")
    w.label("save_no_out")
    w.call("PyTuple_SetItem", w.load(saved_place), "%count", w.held(NONE))
    w.branch(w.new(f"icmp eq i64 {w.load(holds, 0, 'i64')}, 0"), "as_list", "build")
    w.label("as_list")
    # A list holds no tensor: such a node can run again.
    listed = w.needs(w.call("PySequence_List", w.load(saved_place)), "failed")
    w.call("Py_DecRef", w.load(saved_place))
    w.store(listed, saved_place)
    w.goto("build")
    w.label("save_out")
    made = w.needs(w.local("ptr @result_entry(ptr %table, ptr %out)"), "failed")
    w.call("PyTuple_SetItem", w.load(saved_place), "%count", made)
    w.label("build")
    build_node(w, o, node_place, edges_place, saved_place)
    w.label("fine")
    w.let_go()
    w.returns("i32 0")

    w.label("python")
    w.needs_no_error("failed")
    _give_to_python(w, given_place, index, arguments)
    w.goto("fine")
    w.label("failed")
    w.let_go()
    w.returns("i32 -1")
    return w.text()


def _give_to_python(w: Writer, given_place: str, index: str, arguments: str) -> None:
    """Call the plan's own attach."""
    w.store(w.needs(w.call("PyTuple_New", "%count"), "failed"), given_place)
    n = loop(w, "give", index, "%count")
    w.call("PyTuple_SetItem", w.load(given_place), n, w.held(w.load(item(w, "%operands", n))))
    next_of(w, "give", index)
    for position, value in enumerate(("%attributes", w.load(given_place), "%out", "%site")):
        w.store(value, arguments, 8 * position)
    attach = w.load("%self", CALLABLE["attach"])
    done = w.call("PyObject_Vectorcall", attach, arguments, "4", "null")
    w.call("Py_DecRef", w.needs(done, "failed"))


def _save_operands(
    w: Writer, edge_count: str, index: str, holds: str, roles: str, saved_place: str,
    mask: str, edge_list: str,
) -> None:  # fmt: skip
    """What the gradient reads of the operands."""
    w.store("0", edge_count, 0, "i64")
    n = loop(w, "save", index, "%count")
    value = w.load(item(w, "%operands", n))
    w.branch(_bit(w, roles, n), "save_role", "save_number")
    w.label("save_number")
    chosen = w.new(f"select i1 {_bit(w, mask, n)}, ptr {value}, ptr {NONE}")
    w.call("PyTuple_SetItem", w.load(saved_place), n, w.held(chosen))
    w.goto("save_next")
    w.label("save_role")
    at = w.load(edge_count, 0, "i64")
    w.store(w.new(f"add i64 {at}, 1"), edge_count, 0, "i64")
    w.branch(_bit(w, mask, n), "save_operand", "save_none")
    w.label("save_none")
    w.call("PyTuple_SetItem", w.load(saved_place), n, w.held(NONE))
    w.goto("save_next")
    w.label("save_operand")
    w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {value})"), "save_tensor", "save_plain")
    w.label("save_plain")
    some = w.new(f"zext i1 {w.new(f'icmp ne ptr {value}, {NONE}')} to i64")
    w.store(w.new(f"or i64 {w.load(holds, 0, 'i64')}, {some}"), holds, 0, "i64")
    w.call("PyTuple_SetItem", w.load(saved_place), n, w.held(value))
    w.goto("save_next")
    w.label("save_tensor")
    w.store("1", holds, 0, "i64")
    edge = w.load(item(w, edge_list, at))
    made = w.local(f"ptr @entry(ptr %table, ptr {value}, ptr {edge})")
    w.call("PyTuple_SetItem", w.load(saved_place), n, w.needs(made, "failed"))
    w.label("save_next")
    next_of(w, "save", index)


def _edges(w: Writer, index: str, edge_list: str, edge_count: str, case: str, roles: str) -> None:
    """Where the operands come from, and by a bit each, which of them need a gradient."""
    n = loop(w, "edge", index, "%count")
    value = w.load(item(w, "%operands", n))
    w.branch(_bit(w, roles, n), "role", "edge_next")
    w.label("role")
    w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {value})"), "has_edge", "no_edge")
    w.label("no_edge")
    push(w, edge_list, edge_count, NONE)
    w.goto("edge_next")
    w.label("has_edge")
    edge = w.needs(w.local(f"ptr @history(ptr %table, ptr {value})"), "python")
    wanted = w.new(f"icmp ne ptr {edge}, {NONE}")
    bit = w.new(f"shl i64 {w.new(f'zext i1 {wanted} to i64')}, {w.load(edge_count, 0, 'i64')}")
    w.store(w.new(f"or i64 {w.load(case, 0, 'i64')}, {bit}"), case, 0, "i64")
    push(w, edge_list, edge_count, edge)
    w.label("edge_next")
    next_of(w, "edge", index)


def build_node(w: Writer, o: Offsets, node_place: str, edges_place: str, saved_place: str) -> None:
    """Fill a node's slots and make it the history of %out."""
    number = w.needs(w.call("PyIter_Next", w.load("%table", TABLE["sequence"])), "failed")
    node = w.load(node_place)
    w.put(w.held(w.load("%self", CALLABLE["plan"])), node, o["OperatorNode.plan"])
    w.put(w.held("%attributes"), node, o["OperatorNode.attributes"])
    w.put(w.take(edges_place), node, o["Node.edges"])
    w.put(w.held("%layouts"), node, o["Node.layouts"])
    w.put(w.held(NONE), node, o["Node.extras"])
    w.put(w.held("%site"), node, o["Node.site"])
    w.put(number, node, o["Node.sequence"])
    w.put(w.take(saved_place), node, o["OperatorNode.saved"])
    before = w.load("%out", o["Tensor._autograd"])
    w.put(w.take(node_place), "%out", o["Tensor._autograd"])
    w.call("Py_DecRef", before)


def _bit(w: Writer, word: str, number: str) -> str:
    """Whether a bit of a word is set."""
    shifted = w.new(f"lshr i64 {word}, {number}")
    return w.new(f"icmp ne i64 {w.new(f'and i64 {shifted}, 1')}, 0")
