"""LLVM text of the backward pass over ordinary nodes: gradients/backward.py, spelled out.

Keeps     an operator's node with one output, no hooks, a cotangent that has arrived: its vjp is
          called and what it returns is handed on, in the same order as there. Before any other
          node the walk comes back to Python with nothing done to that node. A node whose vjp
          failed is told, so that Python can say where.
Touches   writer, record_text (tables).
Not here  hooks, targets, leaves (backward.py), what vjp gets (gradients/recording/plan.py)."""

from __future__ import annotations

from typing import Final

from flambeau.tensor.native.tables import (
    CALLABLE,
    MAXIMUM_ARGUMENTS,
    PROGRAM,
    TABLE,
    Offsets,
    words,
)
from flambeau.tensor.native.text.collect_text import (
    arguments_text,
    drop_text,
    needs_text,
    unpack_text,
)
from flambeau.tensor.native.text.writer import FALSE, NONE, TRUE, TYPE_OFFSET, Writer

__all__ = [
    "arguments_text", "discover_text", "drop_text", "hand_on_text", "leaf_text", "needs_text",
    "unpack_text", "walk_text",
]  # fmt: skip

# Arguments of the walk.
WALK: Final = words("order arrived waiting keep_graph stream add finish_leaf failed")


def hand_on_text(o: Offsets) -> str:
    """@hand_on(table, words, node, index, edge, value): add a cotangent to what has arrived at an
    edge; 0, or -1 with an exception set."""
    w = Writer(
        "define internal i32 @hand_on(ptr %table, ptr %words, ptr %node, i64 %index, ptr %edge, "
        "ptr %given)"
    )
    arguments, number_place = w.place("arguments", "ptr", 4), w.owner("number")
    value_place, sum_place = w.owner("value"), w.owner("sum")
    w.store(w.held("%given"), value_place)
    layout = w.call("PyTuple_GetItem", w.load("%node", o["Node.layouts"]), "%index")
    w.needs(layout, "failed")
    w.branch(w.local("i1 @is_tensor(ptr %table, ptr %given)"), "tensor", "conform")
    w.label("tensor")
    w.branch(w.same(w.load("%given", o["View._layout"]), layout), "fits", "conform")
    w.label("conform")
    number = w.needs(w.call("PyLong_FromSsize_t", "%index"), "failed")
    w.store(number, number_place)
    for position, argument in enumerate(("%given", layout, "%node", number)):
        w.store(argument, arguments, 8 * position)
    conformed = w.call("PyObject_Vectorcall", w.load("%table", TABLE["conformed"]), arguments, "4",
                       "null")  # fmt: skip
    w.needs(conformed, "failed")
    w.call("Py_DecRef", w.load(value_place))
    w.store(conformed, value_place)
    w.label("fits")
    output = w.same(w.load("%edge", TYPE_OFFSET), w.load("%table", TABLE["output"]))
    w.branch(output, "several", "single")
    w.label("several")
    w.store("%edge", arguments)
    w.store(w.load(value_place), arguments, 8)
    added = w.call("PyObject_Vectorcall", w.load("%words", WALK["add"]), arguments, "2", "null")
    w.call("Py_DecRef", w.needs(added, "failed"))
    w.goto("fine")
    w.label("single")
    arrived = w.load("%words", WALK["arrived"])
    earlier = w.call("PyDict_GetItemWithError", arrived, "%edge")
    w.branch(w.is_null(earlier), "put", "add")
    w.label("add")
    total = w.needs(w.call("PyNumber_Add", earlier, w.load(value_place)), "failed")
    w.store(total, sum_place)
    w.branch(w.new(f"icmp eq i32 {w.call('PyDict_SetItem', arrived, '%edge', total)}, 0"), "fine",
             "failed")  # fmt: skip
    w.label("put")
    status = w.call("PyDict_SetItem", arrived, "%edge", w.load(value_place))
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "fine", "failed")
    w.label("fine")
    w.let_go()
    w.returns("i32 0")
    w.label("failed")
    w.let_go()
    w.returns("i32 -1")
    return w.text()


def leaf_text() -> str:
    """@counted(words, leaf): one consumer of a leaf less; 1 when none is left, -1 on error."""
    w = Writer("define internal i32 @counted(ptr %words, ptr %leaf)")
    waiting = w.load("%words", WALK["waiting"])
    left = w.needs(w.call("PyDict_GetItemWithError", waiting, "%leaf"), "failed")
    count = w.new(f"sub i64 {w.call('PyLong_AsSsize_t', left)}, 1")
    number = w.needs(w.call("PyLong_FromSsize_t", count), "failed")
    status = w.call("PyDict_SetItem", waiting, "%leaf", number)
    w.call("Py_DecRef", number)
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")
    last = w.new(f"icmp eq i64 {count}, 0")
    w.returns(f"i32 {w.new(f'zext i1 {last} to i32')}")
    w.label("failed")
    w.returns("i32 -1")
    return w.text()


def walk_text(name: str, o: Offsets) -> str:
    """walk(order, arrived, waiting, keep_graph, stream, add, finish_leaf, failed): runs ordinary
    nodes from the end of `order`; True where Python has to take the next one, False where none is
    left."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %words, i64 %count, ptr %names)")
    node_place, cotangent_place = w.owner("node"), w.owner("cotangent")
    found_place, ready_place = w.owner("found"), w.owner("ready")
    room = w.place("room", "ptr", MAXIMUM_ARGUMENTS + 2)
    index = w.place("index", "i64")
    table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
    w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
    vector = w.at(room, 8)  # a bound method puts its object before the arguments
    order, arrived = w.load("%words", WALK["order"]), w.load("%words", WALK["arrived"])
    stream = w.load("%words", WALK["stream"])
    w.label("next")
    length = w.call("PyList_Size", order)
    w.branch(w.new(f"icmp eq i64 {length}, 0"), "finished")
    last = w.new(f"sub i64 {length}, 1")
    node = w.held(w.call("PyList_GetItem", order, last))
    w.store(node, node_place)
    ordinary = w.same(w.load(node, TYPE_OFFSET), w.load("%table", TABLE["node"]))
    w.branch(ordinary, "operator", "python")
    w.label("operator")
    w.branch(w.same(w.load(node, o["Node.extras"]), NONE), "no_hooks", "python")
    w.label("no_hooks")
    plan = w.load(node, o["OperatorNode.plan"])
    program_number = w.needs(w.load(plan, o["PlanProgram.program"]), "python")
    program = w.new(f"inttoptr i64 {w.call('PyLong_AsSsize_t', program_number)} to ptr")
    w.branch(w.is_null(program), "python")
    saved = w.load(node, o["OperatorNode.saved"])
    w.branch(w.same(saved, NONE), "python")
    cotangent = w.call("PyDict_GetItemWithError", arrived, node)
    w.needs(cotangent, "python")
    w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {cotangent})"), "collect", "python")
    w.label("collect")
    w.store(w.held(cotangent), cotangent_place)
    given = w.local(
        f"i64 @collect(ptr %table, ptr {program}, ptr {node}, ptr {cotangent}, ptr {vector})"
    )
    w.branch(w.new(f"icmp slt i64 {given}, 0"), "failed")
    w.branch(w.new(f"icmp eq i64 {given}, 0"), "python")

    _call_vjp(
        w, o, order, last, length, arrived, node, stream, program, found_place,
        cotangent_place, vector, given,
    )  # fmt: skip
    _as_tuple(w, program, plan, node, found_place)
    _release(w, o, node)
    _distribute(w, o, program, index, node_place, found_place, ready_place)
    w.call("Py_DecRef", w.take(found_place))
    w.branch(w.is_null(w.load(ready_place)), "ran", "leaves")
    w.label("leaves")
    _finish_leaves(w, index, ready_place)
    w.label("ran")
    w.call("Py_DecRef", w.take(node_place))
    w.goto("next")

    _ends(w, node_place)
    return w.text()


def _ends(w: Writer, node_place: str) -> None:
    """What walk returns: True, False or, with an exception set, nothing."""
    w.label("python")
    w.needs_no_error("failed")
    w.let_go()
    w.returns(f"ptr {w.held(TRUE)}")
    w.label("finished")
    w.returns(f"ptr {w.held(FALSE)}")
    w.label("told")
    # Python adds a note to the exception that is set, about this node.
    w.call("PyList_Append", w.load("%words", WALK["failed"]), w.load(node_place))
    w.label("failed")
    w.let_go()
    w.returns("ptr null")


def _release(w: Writer, o: Offsets, node: str) -> None:
    """Drop what the node saved, where the graph is not kept."""
    w.branch(w.same(w.load("%words", WALK["keep_graph"]), TRUE), "keep", "release")
    w.label("release")
    saved_now = w.load(node, o["OperatorNode.saved"])
    w.branch(w.same(w.load(saved_now, TYPE_OFFSET), "@PyTuple_Type"), "forget", "keep")
    w.label("forget")
    w.store(w.held(NONE), node, o["OperatorNode.saved"])
    w.call("Py_DecRef", saved_now)
    w.label("keep")


def _call_vjp(
    w: Writer, o: Offsets, order: str, last: str, length: str, arrived: str, node: str,
    stream: str, program: str, found_place: str, cotangent_place: str, vector: str, given: str,
) -> None:  # fmt: skip
    """Take the node off the order and call its vjp."""
    # Taken: nothing but the vjp's arguments holds the cotangent from here on.
    w.call("PyList_SetSlice", order, last, length, "null")
    w.call("PyDict_DelItem", arrived, node)
    w.call("Py_DecRef", w.take(cotangent_place))
    site_before = w.load(stream, o["Stream.site"])
    w.store(w.held(w.load(node, o["Node.site"])), stream, o["Stream.site"])
    w.call("Py_DecRef", site_before)
    flagged = w.new(f"or i64 {given}, -9223372036854775808")
    vjp = w.load(program, PROGRAM["vjp"])
    w.store(w.call("PyObject_Vectorcall", vjp, vector, flagged, "null"), found_place)
    w.lines.append(f"  call void @drop(ptr {vector}, i64 {given})")
    w.needs(w.load(found_place), "told")


def _as_tuple(w: Writer, program: str, plan: str, node: str, found_place: str) -> None:
    """See that vjp's answer is a tuple with one cotangent an operand."""
    arguments = w.place("as_arguments", "ptr", 3)
    found = w.load(found_place)
    w.branch(w.same(w.load(found, TYPE_OFFSET), "@PyTuple_Type"), "is_tuple", "not_tuple")
    w.label("is_tuple")
    size = w.call("PyTuple_Size", found)
    wanted = w.load(program, PROGRAM["positions"], "i64")
    w.branch(w.new(f"icmp eq i64 {size}, {wanted}"), "counted", "not_tuple")
    w.label("not_tuple")
    w.store(plan, arguments)
    w.store(found, arguments, 8)
    w.store(node, arguments, 16)
    name = w.load("%table", TABLE["as_edges"])
    made = w.call("PyObject_VectorcallMethod", name, arguments, "3", "null")
    w.call("Py_DecRef", w.take(found_place))
    w.store(w.needs(made, "told"), found_place)
    w.label("counted")


def _distribute(
    w: Writer, o: Offsets, program: str, index: str, node_place: str, found_place: str,
    ready_place: str,
) -> None:  # fmt: skip
    """Hand the cotangents on and gather the leaves that wait for nothing more."""
    node, found = w.load(node_place), w.load(found_place)
    edges = w.load(node, o["Node.edges"])
    count = w.call("PyTuple_Size", edges)
    w.store("0", index, 0, "i64")
    w.label("edge")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "handed", "look")
    w.label("look")
    edge = w.needs(w.call("PyTuple_GetItem", edges, n), "failed")
    w.branch(w.same(edge, NONE), "past", "leads")
    w.label("leads")
    value = w.needs(w.call("PyTuple_GetItem", found, n), "failed")
    w.branch(w.same(value, NONE), "count_leaf", "give")
    w.label("give")
    status = w.local(
        f"i32 @hand_on(ptr %table, ptr %words, ptr {node}, i64 {n}, ptr {edge}, ptr {value})"
    )
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "failed")
    w.label("count_leaf")
    is_leaf = w.same(w.load(edge, TYPE_OFFSET), w.load("%table", TABLE["leaf"]))
    w.branch(is_leaf, "leaf", "past")
    w.label("leaf")
    left = w.local(f"i32 @counted(ptr %words, ptr {edge})")
    w.branch(w.new(f"icmp slt i32 {left}, 0"), "failed")
    w.branch(w.new(f"icmp eq i32 {left}, 1"), "complete", "past")
    w.label("complete")
    w.branch(w.is_null(w.load(ready_place)), "first_leaf", "another")
    w.label("first_leaf")
    w.store(w.needs(w.call("PyList_New", "0"), "failed"), ready_place)
    w.label("another")
    w.call("PyList_Append", w.load(ready_place), edge)
    w.label("past")
    w.store(w.new(f"add i64 {n}, 1"), index, 0, "i64")
    w.goto("edge")
    w.label("handed")


def _finish_leaves(w: Writer, index: str, ready_place: str) -> None:
    """Call finish_leaf for each leaf whose last consumer ran."""
    arguments = w.place("leaf_arguments", "ptr", 2)
    w.store("0", index, 0, "i64")
    w.label("each_leaf")
    n = w.load(index, 0, "i64")
    count = w.call("PyList_Size", w.load(ready_place))
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "no_more", "finish")
    w.label("finish")
    w.store(w.call("PyList_GetItem", w.load(ready_place), n), arguments)
    done = w.call("PyObject_Vectorcall", w.load("%words", WALK["finish_leaf"]), arguments, "1",
                  "null")  # fmt: skip
    w.call("Py_DecRef", w.needs(done, "failed"))
    w.store(w.new(f"add i64 {n}, 1"), index, 0, "i64")
    w.goto("each_leaf")
    w.label("no_more")
    w.call("Py_DecRef", w.take(ready_place))


def discover_text(name: str, o: Offsets) -> str:
    """discover(stack, seen, waiting, order): every node below those on the stack into `order`;
    counts the consumers of leaves. Pass._discover, spelled out."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %words, i64 %count, ptr %names)")
    node_place, edges_place = w.owner("node"), w.owner("edges")
    index, below_place = w.place("index", "i64"), w.place("below")
    table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
    w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
    stack, seen, waiting, order = (w.load("%words", 8 * n) for n in range(4))
    w.label("next")
    length = w.call("PyList_Size", stack)
    w.branch(w.new(f"icmp eq i64 {length}, 0"), "finished")
    last = w.new(f"sub i64 {length}, 1")
    node = w.held(w.call("PyList_GetItem", stack, last))
    w.store(node, node_place)
    w.call("PyList_SetSlice", stack, last, length, "null")
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', order, node)}, 0"), "failed")
    edges = w.needs(w.call("PySequence_Tuple", w.load(node, o["Node.edges"])), "failed")
    w.store(edges, edges_place)
    count = w.call("PyTuple_Size", edges)
    w.store("0", index, 0, "i64")
    w.label("edge")
    n = w.load(index, 0, "i64")
    w.branch(w.new(f"icmp eq i64 {n}, {count}"), "node_done", "look")
    w.label("look")
    edge = w.call("PyTuple_GetItem", edges, n)
    w.store(edge, below_place)
    w.branch(w.same(edge, NONE), "past", "some")
    w.label("some")
    kind = w.load(edge, TYPE_OFFSET)
    w.branch(w.same(kind, w.load("%table", TABLE["leaf"])), "leaf", "not_leaf")
    w.label("leaf")
    _count_leaf(w, waiting, edge)
    w.label("not_leaf")
    w.branch(w.same(kind, w.load("%table", TABLE["output"])), "output", "below")
    w.label("output")
    w.store(w.needs(w.load(edge, o["Output.node"]), "failed"), below_place)
    w.label("below")
    below = w.load(below_place)
    known = w.call("PySet_Contains", seen, below)
    w.branch(w.new(f"icmp eq i32 {known}, 1"), "past", "new")
    w.label("new")
    w.branch(w.new(f"icmp ne i32 {w.call('PySet_Add', seen, below)}, 0"), "failed")
    w.branch(w.new(f"icmp ne i32 {w.call('PyList_Append', stack, below)}, 0"), "failed")
    w.label("past")
    w.store(w.new(f"add i64 {n}, 1"), index, 0, "i64")
    w.goto("edge")
    w.label("node_done")
    w.call("Py_DecRef", w.take(edges_place))
    w.call("Py_DecRef", w.take(node_place))
    w.goto("next")
    w.label("finished")
    w.returns(f"ptr {w.held(NONE)}")
    w.label("failed")
    w.let_go()
    w.returns("ptr null")
    return w.text()


def _count_leaf(w: Writer, waiting: str, edge: str) -> None:
    """One consumer more of a leaf."""
    before = w.call("PyDict_GetItemWithError", waiting, edge)
    w.branch(w.is_null(before), "first", "again")
    w.label("first")
    status = w.call("PyDict_SetItem", waiting, edge, w.load("%table", TABLE["one"]))
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "past", "failed")
    w.label("again")
    more = w.new(f"add i64 {w.call('PyLong_AsSsize_t', before)}, 1")
    number = w.needs(w.call("PyLong_FromSsize_t", more), "failed")
    status = w.call("PyDict_SetItem", waiting, edge, number)
    w.call("Py_DecRef", number)
    w.branch(w.new(f"icmp eq i32 {status}, 0"), "past", "failed")
