"""Python types whose objects native code makes, from CPython's own description of a type.

Keeps     what a type is made of lives as long as the process.
Touches   ctypes.
Not here  what the objects are for (library.py: callables, flush/known.py: blocks)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

# CPython's numbers of slots: Py_tp_call, Py_tp_dealloc, Py_tp_descr_get, Py_tp_members.
CALL, FREE, BIND, _MEMBERS = 50, 52, 54, 72
# Flags: a vectorcall and a method descriptor, bound without an object; a type that is not called.
CALLED: Final = 1 << 11 | 1 << 17
MADE_NATIVELY: Final = 1 << 7
_SIGNED_SIZE, _READ_ONLY = 19, 1
_KEPT: Final[list[Any]] = []


class UnknownLayoutError(Exception):
    """This Python lays objects out in a way the native recorder does not know."""


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("n_bytes", ctypes.c_int), ("item_bytes", ctypes.c_int),
        ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot)),
    )  # fmt: skip


def new_type(
    name: bytes, n_bytes: int, flags: int, slots: Mapping[int, Any], members: Mapping[bytes, int]
) -> type:
    """A type of objects of so many bytes: functions in slots, words at offsets as attributes."""
    described = (_Member * (len(members) + 1))(
        *[_Member(key, _SIGNED_SIZE, offset, _READ_ONLY) for key, offset in members.items()]
    )
    filled = {**slots, _MEMBERS: ctypes.addressof(described)}
    listed = (_Slot * (len(filled) + 1))(*[_Slot(*each) for each in filled.items()])
    spec = _Spec(name, n_bytes, 0, flags, listed)
    _KEPT.extend((described, listed, spec))
    # Not pythonapi's own: what is said of its arguments holds for whoever uses that.
    make = ctypes.PyDLL(None).PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    return make(ctypes.addressof(spec))


# What stood under a name before the native recorder came: programs may hold it, in tables of
# functions that their __torch_function__ knows, say. A native callable equals its predecessor.
EARLIER: Final[dict[str, Any]] = {}


def succeeds(made: Any, name: str) -> None:
    """Let a native callable equal what stood under its name before."""
    kind: Any = type(made)
    if name in EARLIER and kind.__eq__ is is_same:
        made._earlier = EARLIER[name]


def is_same(self: Any, other: Any) -> bool:
    """Equality of native callables."""
    return self is other or getattr(self, "_earlier", self) is other


def hash_of(self: Any) -> int:
    """The hash of a native callable."""
    return object.__hash__(getattr(self, "_earlier", self))
