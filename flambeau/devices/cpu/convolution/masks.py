"""Vectors of which some lanes alone are read or written, as LLVM text.

Keeps     memory of the other lanes is not touched.
Touches   writer.
Not here  who has rows that end inside a vector (pad_text.py, direct_text.py)."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.writer import TYPE_BYTES, Writer

_SUFFIXES: Final = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}


def mask_of(w: Writer, lanes: int, count: str) -> str:
    """Which lanes of a vector come before a count."""
    counts = f"<{lanes} x i64>"
    first = w.let(f"insertelement {counts} poison, i64 {count}, i64 0")
    each = w.let(
        f"shufflevector {counts} {first}, {counts} poison, <{lanes} x i32> zeroinitializer"
    )
    numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
    return w.let(f"icmp slt {counts} <{numbers}>, {each}")


def load_where(w: Writer, lanes: int, kind: str, place: str, mask: str) -> str:
    """Elements of a vector where a mask is set, zeros elsewhere."""
    vector, name = f"<{lanes} x {kind}>", f"@llvm.masked.load.v{lanes}{_SUFFIXES[kind]}.p0"
    w.declare(f"{vector} {name}(ptr, i32, <{lanes} x i1>, {vector})")
    return w.let(
        f"call {vector} {name}(ptr {place}, i32 {TYPE_BYTES[kind]}, <{lanes} x i1> {mask}, "
        f"{vector} zeroinitializer)"
    )


def store_where(w: Writer, lanes: int, kind: str, value: str, place: str, mask: str) -> None:
    """Store elements of a vector where a mask is set."""
    vector, name = f"<{lanes} x {kind}>", f"@llvm.masked.store.v{lanes}{_SUFFIXES[kind]}.p0"
    w.declare(f"void {name}({vector}, ptr, i32, <{lanes} x i1>)")
    w.put(
        f"call void {name}({vector} {value}, ptr {place}, i32 {TYPE_BYTES[kind]}, "
        f"<{lanes} x i1> {mask})"
    )
