"""Loops and arrays of words in a function's frame.

Keeps     a loop is named once: its labels are made of the name.
Touches   writer.
Not here  what is looped over."""

from __future__ import annotations

from flambeau.tensor.native.text.writer import Writer


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
