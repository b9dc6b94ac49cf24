"""Counters that native code counts in, too: words in memory, attributes in Python.

Keeps     the words never move.
Touches   array.
Not here  what is counted: the rooms that do it."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Words = array[int]


class Counters:
    """Base of classes whose `Counter` attributes are words of `words`, in order."""

    __slots__ = ("words",)

    def __init__(self) -> None:
        names = [name for name, value in vars(type(self)).items() if isinstance(value, Counter)]
        self.words: Words = array("q", bytes(8 * len(names)))

    @property
    def address(self) -> int:
        """Where the words lie."""
        return self.words.buffer_info()[0]


class Counter:
    """A word of its owner's."""

    __slots__ = ("position",)

    def __set_name__(self, owner: type, name: str) -> None:
        # A class's attributes are named in the order in which they are written.
        named = [n for n, value in vars(owner).items() if isinstance(value, Counter)]
        self.position = named.index(name)

    def __get__(self, owner: Any, kind: type) -> int:
        value: int = owner.words[self.position]
        return value

    def __set__(self, owner: Any, value: int) -> None:
        owner.words[self.position] = value
