"""LLVM text of item() and numpy().

Keeps     what the tensor waits for is run first; the storage is held meanwhile.
Touches   writer, flush.
Not here  which layouts go this way (ways.py)."""

from __future__ import annotations

from typing import Final

from flambeau.tensor.native.flush.parts_text import address_text
from flambeau.tensor.native.reading.ways import ARRAY, KINDS, WRITABLE
from flambeau.tensor.native.tables import CALLABLE, TABLE, Offsets, new_object
from flambeau.tensor.native.text.kinds_text import tensor_text
from flambeau.tensor.native.text.record_text import hand_over
from flambeau.tensor.native.text.slots_text import replace
from flambeau.tensor.native.text.writer import NONE, TYPE_OFFSET, Writer
from flambeau.tensor.native.text.writer import item as word_of

# dtypes whose one element native code reads: (type in LLVM, how it becomes a number), by place.
_READS: Final = {
    "float32": ("float", "fpext float {} to double"), "float64": ("double", ""),
    "int64": ("i64", ""), "int32": ("i32", "sext i32 {} to i64"),
    "uint8": ("i8", "zext i8 {} to i64"), "bool": ("i8", "zext i8 {} to i64"),
}  # fmt: skip
_SIZES: Final = (4, 8, 8, 4, 1, 1)


class _Reading:
    """A callable that reads a tensor, being written."""

    def __init__(self, name: str, o: Offsets) -> None:
        self.o = o
        self.w = w = Writer(
            f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)"
        )
        self.storage_place, self.way_place = w.owner("storage"), w.owner("way")
        table = w.new(f"getelementptr i8, ptr %self, i64 {CALLABLE['table']}")
        w.lines.append(f"  %table = load ptr, ptr {table}, align 8")
        w.branch(w.is_null("%names"), "positional", "python")
        w.label("positional")
        given = w.new("and i64 %count, 9223372036854775807")
        w.branch(w.new(f"icmp eq i64 {given}, 1"), "counted", "python")
        w.label("counted")
        self.tensor = w.load("%arguments")
        w.branch(w.local(f"i1 @is_tensor(ptr %table, ptr {self.tensor})"), "first", "python")
        w.label("first")
        self.layout = layout = w.needs(w.load(self.tensor, o["View._layout"]), "python")
        # The cache is a dictionary with one key for other callables; here it is the key.
        memo, key = w.load(layout, o["Layout.memo"]), w.load("%self", CALLABLE["cache"])
        found = w.call("PyDict_GetItemWithError", memo, key)
        w.branch(w.is_null(found), "unknown", "known")
        w.label("unknown")
        w.call("PyErr_Clear")
        w.goto("python")
        w.label("known")
        self.way = found

    def run(self) -> None:
        """Run what the storage waits for; its block and the address of the first element."""
        w, o = self.w, self.o
        w.store(w.held(w.load(self.tensor, o["View._storage"])), self.storage_place)
        w.store(w.held(self.way), self.way_place)
        self.storage = w.load(self.storage_place)
        waits = w.load(self.storage, o["Storage.segment"])
        w.branch(w.same(waits, NONE), "there", "pending")
        w.label("pending")
        flush = w.load("%table", TABLE["flush"])
        held = w.held(waits)
        status = w.new(f"call i32 {flush}(ptr %table, ptr {held})")
        w.call("Py_DecRef", held)
        w.branch(w.new(f"icmp slt i32 {status}, 0"), "failed")
        w.branch(w.new(f"icmp eq i32 {status}, 0"), "to_python", "ran")
        w.label("ran")
        # Finalizers may have run: see that the tensor still shows the same.
        same_storage = w.same(w.load(self.tensor, o["View._storage"]), self.storage)
        same_layout = w.same(w.load(self.tensor, o["View._layout"]), self.layout)
        w.branch(w.new(f"and i1 {same_storage}, {same_layout}"), "there", "to_python")
        w.label("there")
        self.block = w.load(self.storage, o["Storage.block"])
        address = w.local(f"i64 @address(ptr %table, ptr {self.block})")
        w.branch(w.new(f"icmp eq i64 {address}, 0"), "to_python")
        self.start = address
        self.offset = w.call("PyLong_AsSsize_t", w.load(self.tensor, o["View._offset"]))

    def end(self) -> str:
        """The ways out."""
        w = self.w
        w.label("to_python")
        w.let_go()
        w.goto("python")
        w.label("failed")
        w.let_go()
        w.returns("ptr null")
        hand_over(w)
        return w.text()

    def done(self, made: str) -> None:
        """Return an object."""
        self.w.let_go()
        self.w.returns(f"ptr {made}")


def item_text(name: str, o: Offsets) -> str:
    """item(tensor): the layout's memo says which of _READS."""
    reading = _Reading(name, o)
    w = reading.w
    kind = w.call("PyLong_AsSsize_t", reading.way)
    reading.run()
    for name_of, number in KINDS.items():
        memory, widen = _READS[name_of]
        w.branch(w.new(f"icmp eq i64 {kind}, {number}"), f"kind{number}", f"not{number}")
        w.label(f"kind{number}")
        n_bytes = w.new(f"mul i64 {reading.offset}, {_SIZES[number]}")
        at = w.new(f"inttoptr i64 {w.new(f'add i64 {reading.start}, {n_bytes}')} to ptr")
        value = w.new(f"load {memory}, ptr {at}, align 1")
        if widen:
            value = w.new(widen.format(value))
        if memory in ("float", "double"):
            made = w.call("PyFloat_FromDouble", value)
        elif name_of == "bool":
            made = w.call("PyBool_FromLong", value)
        else:
            made = w.call("PyLong_FromSsize_t", value)
        reading.done(made)
        w.label(f"not{number}")
    w.goto("to_python")
    return address_text(o) + tensor_text() + reading.end()


def numpy_text(name: str, o: Offsets) -> str:
    """numpy(tensor): an array over the same memory, whose base is the block."""
    reading = _Reading(name, o)
    w = reading.w
    history = w.load(reading.tensor, o["Tensor._autograd"])
    w.branch(w.same(history, NONE), "no_history", "python")
    w.label("no_history")
    base = w.load(reading.tensor, o["Tensor._base"])
    w.branch(w.same(base, NONE), "plain", "python")
    w.label("plain")
    block_place = w.owner("block")
    reading.run()
    w.store(w.held(reading.block), block_place)
    _share(w, o, reading.storage, reading.block)
    # Bytes begin where their type says; the words are eight bytes each.
    said = w.call("PyBytes_AsString", reading.way)
    n_dims = w.load(said, ARRAY["ndim"], "i64")
    shift = w.new(f"mul i64 {reading.offset}, {w.load(said, ARRAY['itemsize'], 'i64')}")
    data = w.new(f"inttoptr i64 {w.new(f'add i64 {reading.start}, {shift}')} to ptr")
    sizes = w.at(said, 8 * len(ARRAY))
    strides = word_of(w, sizes, n_dims)
    element = w.held(w.load(said, ARRAY["dtype"]))
    new, kind = w.load("%table", TABLE["new_array"]), w.load("%table", TABLE["array_type"])
    dims = w.new(f"trunc i64 {n_dims} to i32")
    made = w.new(
        f"call ptr {new}(ptr {kind}, ptr {element}, i32 {dims}, ptr {sizes}, ptr {strides}, "
        f"ptr {data}, i32 {WRITABLE}, ptr null)"
    )
    w.needs(made, "failed")
    set_base = w.load("%table", TABLE["set_base"])
    status = w.new(f"call i32 {set_base}(ptr {made}, ptr {w.take(block_place)})")
    w.branch(w.new(f"icmp ne i32 {status}, 0"), "no_base")
    reading.done(made)
    w.label("no_base")
    w.call("Py_DecRef", made)
    w.goto("failed")
    return address_text(o) + tensor_text() + reading.end()


def _share(w: Writer, o: Offsets, storage: str, block: str) -> None:
    """Note that arrays see the memory through its block: conversion._exporter's External, with
    the block for the object on the other side."""
    external = w.load(storage, o["Storage.external"])
    none = w.new(f"or i1 {w.is_null(external)}, {w.same(external, NONE)}")
    w.branch(none, "share", "maybe_shared")
    w.label("maybe_shared")
    kind = w.load("%table", TABLE["external"])
    w.branch(w.same(w.load(external, TYPE_OFFSET), kind), "is_external", "to_python")
    w.label("is_external")
    owner = w.load(external, o["External.owner"])
    w.branch(w.same(owner, block), "shared", "other_owner")
    w.label("other_owner")
    # Python's way goes through a buffer; nobody sees the memory through this one any more.
    alone = w.new(f"icmp eq i32 {w.load(owner, 0, 'i32')}, 1")
    w.branch(alone, "share", "to_python")
    w.label("share")
    made = w.needs(new_object(w, "external"), "failed")
    w.put(w.held(block), made, o["External.owner"])
    w.put(w.held(w.load("%table", TABLE["three"])), made, o["External.references"])
    replace(w, storage, o["Storage.external"], made)
    w.label("shared")
