"""Values that hold Sizes, kept as indices of a tape's values until sizes are known.

Keeps     what is kept of a native statement says no more of sizes than where to find them.
Touches   sizes, statement.
Not here  the templates that keep them (template.py)."""

from __future__ import annotations

from typing import Any

from flambeau.engine.planning.symbolic.sizes import Size, Tape
from flambeau.engine.statement import Memory, Native


class _Index(int):
    """Index of a value, where plain ints stand beside it."""


class Taken:
    """Sizes that a plan needs, as indices of the tape's values."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.wanted: list[int] = []

    def index(self, value: Any) -> int:
        """Index of a Size or number."""
        index = self.tape.index_of(value)
        self.wanted.append(index)
        return index

    def deep(self, value: Any) -> Any:
        """Sizes within a value replaced by their indices."""
        if isinstance(value, Size):
            return _Index(self.index(value))
        if type(value) in (tuple, list):
            return type(value)([self.deep(each) for each in value])
        return value


def _deep_value(value: Any, values: list[Any]) -> Any:
    if type(value) is _Index:
        return values[value]
    if type(value) in (tuple, list):
        return type(value)([_deep_value(each, values) for each in value])
    return value


def _indexed(memory: Memory, taken: Taken) -> list[Any]:
    return [
        memory.reference, taken.deep(tuple(memory.shape)), taken.deep(tuple(memory.strides)),
        taken.deep(memory.offset), memory.dtype,
    ]  # fmt: skip


def _valued(parts: list[Any], values: list[Any]) -> Memory:
    reference, shape, strides, offset, element = parts
    return Memory(
        reference, _deep_value(shape, values), _deep_value(strides, values),
        _deep_value(offset, values), element,
    )  # fmt: skip


def _renumbered(value: Any, place: dict[int, int]) -> Any:
    if type(value) is _Index:
        return _Index(place[value])
    if type(value) in (tuple, list):
        return type(value)([_renumbered(each, place) for each in value])
    return value


class SizedNative:
    """A native statement whose maker is asked when sizes are known."""

    __slots__ = ("attributes", "maker", "reads", "writes")

    def __init__(self, native: Native, taken: Taken) -> None:
        self.maker = native.maker
        self.reads = [_indexed(memory, taken) for memory in native.reads]
        self.writes = [_indexed(memory, taken) for memory in native.writes]
        self.attributes = {name: taken.deep(value) for name, value in native.attributes.items()}

    def renumber(self, place: dict[int, int]) -> None:
        """Indices of the tape become those of a replay's values."""
        self.reads = [_renumbered(memory, place) for memory in self.reads]
        self.writes = [_renumbered(memory, place) for memory in self.writes]
        self.attributes = {n: _renumbered(v, place) for n, v in self.attributes.items()}

    def valued(self, values: list[Any]) -> Native:
        """The statement for these sizes."""
        return Native(
            self.maker,
            tuple([_valued(memory, values) for memory in self.reads]),
            tuple([_valued(memory, values) for memory in self.writes]),
            {name: _deep_value(value, values) for name, value in self.attributes.items()},
        )
