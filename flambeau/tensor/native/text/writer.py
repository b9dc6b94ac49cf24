"""Writes LLVM text of functions that work on Python objects.

Keeps     every owned reference lives in a named place of the frame, null when there is none, so
          that one exit lets go of all of them; objects are reached through CPython's public
          functions and the offsets that member descriptors tell.
Touches   nothing: text only.
Not here  the functions themselves (record_text.py), compiling them (library.py)."""

from __future__ import annotations

from typing import Final

# What CPython offers, as LLVM sees it: result, arguments.
FUNCTIONS: Final = {
    "PyBool_FromLong": ("ptr", "i64"),
    "PyByteArray_FromStringAndSize": ("ptr", "ptr, i64"),
    "PyBytes_AsString": ("ptr", "ptr"),
    "PyBytes_FromStringAndSize": ("ptr", "ptr, i64"),
    "PyDict_DelItem": ("i32", "ptr, ptr"),
    "PyDict_GetItemWithError": ("ptr", "ptr, ptr"),
    "PyDict_New": ("ptr", ""),
    "PyDict_SetItem": ("i32", "ptr, ptr, ptr"),
    "PyErr_Clear": ("void", ""),
    "PyErr_ExceptionMatches": ("i32", "ptr"),
    "PyErr_Fetch": ("void", "ptr, ptr, ptr"),
    "PyErr_Occurred": ("ptr", ""),
    "PyErr_Restore": ("void", "ptr, ptr, ptr"),
    "PyEval_GetFrame": ("ptr", ""),
    "PyEval_RestoreThread": ("void", "ptr"),
    "PyEval_SaveThread": ("ptr", ""),
    "PyFloat_AsDouble": ("double", "ptr"),
    "PyFloat_FromDouble": ("ptr", "double"),
    "PyFrame_GetBack": ("ptr", "ptr"),
    "PyFrame_GetCode": ("ptr", "ptr"),
    "PyFrame_GetLasti": ("i32", "ptr"),
    "PyGC_Disable": ("i32", ""),
    "PyGC_Enable": ("i32", ""),
    "PyIter_Next": ("ptr", "ptr"),
    "PyList_Append": ("i32", "ptr, ptr"),
    "PyList_GetItem": ("ptr", "ptr, i64"),
    "PyList_New": ("ptr", "i64"),
    "PyList_SetItem": ("i32", "ptr, i64, ptr"),
    "PyList_SetSlice": ("i32", "ptr, i64, i64, ptr"),
    "PyList_Size": ("i64", "ptr"),
    "PyLong_AsLongLong": ("i64", "ptr"),
    "PyLong_AsLongLongAndOverflow": ("i64", "ptr, ptr"),
    "PyLong_AsSsize_t": ("i64", "ptr"),
    "PyLong_FromSsize_t": ("ptr", "i64"),
    "PyMethod_New": ("ptr", "ptr, ptr"),
    "PyNumber_Add": ("ptr", "ptr, ptr"),
    "PyObject_Free": ("void", "ptr"),
    "PyObject_GC_UnTrack": ("void", "ptr"),
    "PyObject_GetAttr": ("ptr", "ptr, ptr"),
    "PyObject_SetAttr": ("i32", "ptr, ptr, ptr"),
    "PyObject_Vectorcall": ("ptr", "ptr, ptr, i64, ptr"),
    "PyObject_VectorcallMethod": ("ptr", "ptr, ptr, i64, ptr"),
    "PySequence_List": ("ptr", "ptr"),
    "PySequence_Tuple": ("ptr", "ptr"),
    "PySet_Add": ("i32", "ptr, ptr"),
    "PySet_Contains": ("i32", "ptr, ptr"),
    "PyThreadState_Get": ("ptr", ""),
    "PyThreadState_GetID": ("i64", "ptr"),
    "PyTuple_GetItem": ("ptr", "ptr, i64"),
    "PyTuple_New": ("ptr", "i64"),
    "PyTuple_SetItem": ("i32", "ptr, i64, ptr"),
    "PyTuple_Size": ("i64", "ptr"),
    "PyType_GenericAlloc": ("ptr", "ptr, i64"),
    "PyType_IsSubtype": ("i32", "ptr, ptr"),
    "Py_DecRef": ("void", "ptr"),
    "Py_IncRef": ("void", "ptr"),
}
# Objects of CPython with names of their own.
OBJECTS: Final = (
    "PyBool_Type", "PyFloat_Type", "PyList_Type", "PyLong_Type", "PyTuple_Type", "PyUnicode_Type",
    "_Py_FalseStruct", "_Py_NoneStruct", "_Py_TrueStruct", "PyExc_MemoryError",
    "PyExc_OverflowError", "PyExc_TypeError",
)  # fmt: skip
# What native code may meet that Python, which does it over, says again. Anything else may come from
# a signal handler, which ran in what was called: it would be lost.
_SAID_AGAIN: Final = ("PyExc_TypeError", "PyExc_OverflowError", "PyExc_MemoryError")
NONE: Final = "@_Py_NoneStruct"
TRUE: Final = "@_Py_TrueStruct"
FALSE: Final = "@_Py_FalseStruct"
TYPE_OFFSET: Final = 8  # of an object's type; checked when the library is made


class Writer:
    """The body of one function. Values are names; `place`s are words of the frame."""

    def __init__(self, header: str) -> None:
        self.header = header
        self.places: list[str] = []
        self.owned: list[str] = []
        self.lines: list[str] = []
        self._count = 0

    # ------------------------------------------------------------ values and memory

    def new(self, expression: str) -> str:
        """A value."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def place(self, name: str, kind: str = "ptr", count: int = 1) -> str:
        """Room in the frame for a value that changes, or for several in a row."""
        size = f"[{count} x {kind}]" if count > 1 else kind
        self.places.append(f"  %p.{name} = alloca {size}, align 8")
        return f"%p.{name}"

    def owner(self, name: str) -> str:
        """A place that owns a reference or holds null."""
        place = self.place(name)
        self.owned.append(place)
        return place

    def load(self, base: str, offset: int | str = 0, kind: str = "ptr") -> str:
        """What lies `offset` bytes behind an address."""
        return self.new(f"load {kind}, ptr {self.at(base, offset)}, align 8")

    def store(self, value: str, base: str, offset: int | str = 0, kind: str = "ptr") -> None:
        """Put a value behind an address."""
        self.lines.append(f"  store {kind} {value}, ptr {self.at(base, offset)}, align 8")

    def at(self, base: str, offset: int | str) -> str:
        """An address some bytes on."""
        if offset == 0:
            return base
        return self.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    # ------------------------------------------------------------ control

    def label(self, name: str) -> None:
        """Start a block; falls through into it."""
        if self.lines and not self.lines[-1].startswith(("  br ", "  ret ", "  unreachable")):
            self.lines.append(f"  br label %b.{name}")
        self.lines.append(f"b.{name}:")

    def goto(self, name: str) -> None:
        """Go on at a label."""
        self.lines.append(f"  br label %b.{name}")

    def branch(self, condition: str, yes: str, no: str | None = None) -> None:
        """Go on at one of two labels; without `no`, behind this line."""
        if no is not None:
            self.lines.append(f"  br i1 {condition}, label %b.{yes}, label %b.{no}")
            return
        self._count += 1
        self.lines.append(f"  br i1 {condition}, label %b.{yes}, label %on{self._count}")
        self.lines.append(f"on{self._count}:")

    def is_null(self, value: str) -> str:
        """Whether a pointer is null."""
        return self.new(f"icmp eq ptr {value}, null")

    def same(self, left: str, right: str) -> str:
        """Whether two pointers are one."""
        return self.new(f"icmp eq ptr {left}, {right}")

    def returns(self, value: str) -> None:
        """Leave the function."""
        self.lines.append(f"  ret {value}")

    # ------------------------------------------------------------ Python

    def call(self, name: str, *arguments: str) -> str:
        """Call a function of CPython; its result."""
        result, kinds = FUNCTIONS[name]
        given = ", ".join(
            f"{kind} {value}" for kind, value in zip(kinds.split(", "), arguments, strict=False)
        )
        text = f"call {result} @{name}({given})"
        if result == "void":
            self.lines.append("  " + text)
            return ""
        return self.new(text)

    def local(self, text: str) -> str:
        """Call a function of this module: 'ptr @name(ptr %a)'."""
        return self.new(f"call {text}")

    def held(self, value: str) -> str:
        """The value, with one reference more."""
        self.call("Py_IncRef", value)
        return value

    def needs(self, value: str, failed: str) -> str:
        """A value that must not be null."""
        self.branch(self.is_null(value), failed)
        return value

    def needs_no_error(self, failed: str) -> None:
        """Go to `failed` where an exception is set."""
        error = self.call("PyErr_Occurred")
        self.branch(self.new(f"icmp ne ptr {error}, null"), failed)

    def forgive(self, failed: str) -> None:
        """Clear an exception that Python says again; any other goes to `failed`."""
        self._count += 1
        number = self._count
        error = self.call("PyErr_Occurred")
        self.branch(self.is_null(error), f"forgiven{number}")
        for name in _SAID_AGAIN:
            matches = self.call("PyErr_ExceptionMatches", self.load(f"@{name}"))
            self.branch(self.new(f"icmp ne i32 {matches}, 0"), f"forgive{number}")
        self.goto(failed)
        self.label(f"forgive{number}")
        self.call("PyErr_Clear")
        self.label(f"forgiven{number}")

    def put(self, value: str, base: str, offset: int) -> None:
        """Set a slot of a fresh object, which owns the value from now on."""
        self.store(value, base, offset)

    def let_go(self) -> None:
        """Drop every owned reference."""
        for place in self.owned:
            self.call("Py_DecRef", self.load(place))

    def take(self, place: str) -> str:
        """The reference of a place, which gives it up."""
        value = self.load(place)
        self.store("null", place)
        return value

    def text(self) -> str:
        """The function."""
        nulls = [f"  store ptr null, ptr {place}, align 8" for place in self.owned]
        body = ["b.start:", *self.places, *nulls, *self.lines]
        return "\n".join([self.header + " {", *body, "}", ""])


def declarations() -> str:
    """Everything of CPython that functions may use."""
    lines = [f"declare {result} @{name}({kinds})" for name, (result, kinds) in FUNCTIONS.items()]
    lines += [f"@{name} = external global i8" for name in OBJECTS]
    return "\n".join(lines) + "\n"


# Loops and arrays of words in a function's frame. A loop is named once: its labels are made of
# the name.


def item(w: Writer, array: str, index: str) -> str:
    """Address of a word of an array."""
    return w.at(array, w.new(f"mul i64 {index}, 8"))


def push(w: Writer, array: str, count_place: str, value: str) -> None:
    """Put a word at the end of an array."""
    count = w.load(count_place, 0, "i64")
    w.store(value, item(w, array, count))
    w.store(w.new(f"add i64 {count}, 1"), count_place, 0, "i64")


def loop(w: Writer, name: str, place: str, limit: str, start: str = "0") -> str:
    """Begin a loop over a counter; `next_<name>` goes on, `<name>_end` is behind it."""
    w.store(start, place, 0, "i64")
    w.label(name)
    n = w.load(place, 0, "i64")
    w.branch(w.new(f"icmp slt i64 {n}, {limit}"), f"{name}_body", f"{name}_end")
    w.label(f"{name}_body")
    return n


def next_of(w: Writer, name: str, place: str) -> None:
    """End of a loop's body."""
    n = w.load(place, 0, "i64")
    w.store(w.new(f"add i64 {n}, 1"), place, 0, "i64")
    w.goto(name)
    w.label(f"{name}_end")
