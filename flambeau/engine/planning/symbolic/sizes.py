"""Sizes as planning sees them when a plan is to serve other sizes too: values with a history.

Keeps     whatever planning learns of a Size is written down: arithmetic as an entry of its tape,
          every comparison (and truth, hash, text, conversion to a Python number) as a guard. Sizes
          that satisfy the guards would have been planned the same way. A Size is not an int, so
          nothing can use its value unseen.
Touches   nothing of flambeau.
Not here  who plans with Sizes and binds what came out (template.py)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

Number = int | float
Function = Callable[[Any, Any], Any]


def _negated(value: Any, _: Any) -> Any:
    return -value


def _absolute(value: Any, _: Any) -> Any:
    return abs(value)


def _as_float(value: Any, _: Any) -> Any:
    return float(value)


class Tape:
    """Inputs, then constants and results of operations in the order they came up.

    nodes    per index: (function, a, b) of an operation, (None, value, None) of a constant or input
    values   what they are for the sizes planned with
    guards   (comparison, a, b) -> outcome
    least    index -> a bound that it is never below
    fixed    indices of constants
    same     index -> an index known, by a guard, to have its value
    """

    __slots__ = (
        "_constants", "_integers", "_known", "fixed", "guards", "least", "n_inputs", "nodes",
        "same", "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.nodes: list[tuple[Function | None, Any, Any]] = []
        self.values: list[Number] = []
        self.guards: dict[tuple[Function, int, int], bool] = {}
        self.least: dict[int, Number] = {}
        self.same: dict[int, int] = {}
        self.fixed: set[int] = set()
        self.n_inputs = 0
        self._constants: dict[tuple[type, str], int] = {}
        self._integers: dict[int, int] = {}
        self._known: dict[tuple[Function, int, int], Size] = {}

    def input(self, value: int, least: int | None = None) -> Size:
        """The next input; all of them come before anything else."""
        index = len(self.values)
        if index != self.n_inputs:
            raise RuntimeError("inputs of a tape come first")
        self.n_inputs += 1
        self._append(None, value, None, value)
        if least is not None:
            self.least[index] = least
        return Size(self, index, value)

    def _append(self, function: Function | None, a: Any, b: Any, value: Number) -> int:
        self.nodes.append((function, a, b))
        self.values.append(value)
        return len(self.values) - 1

    def index_of(self, operand: Any) -> int:
        """Index of a Size of this tape, or of a Python number."""
        kind = type(operand)
        if kind is Size:
            index: int = operand.index
            same = self.same
            while index in same:
                index = same[index]
            return index
        found = self._integers.get(operand) if kind is int else None
        if found is None:
            found = self._constant(operand)
        return found

    def _constant(self, operand: Any) -> int:
        kind = type(operand)
        if kind not in (int, float, bool):
            raise TypeError(f"a size and {kind.__name__} do not mix")
        key = (kind, repr(operand))
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._append(None, operand, None, operand)
            self.fixed.add(found)
            self.least[found] = operand
            if kind is int:
                self._integers[operand] = found
        return found

    def representative(self, index: int) -> int:
        """The index that stands for all that are known to be equal to this one."""
        same = self.same
        while index in same:
            index = same[index]
        return index

    def apply(self, function: Function, left: Any, right: Any) -> Any:
        """Result of an operation: a Size, or a plain number where both operands are constant."""
        a, b = self.index_of(left), self.index_of(right)
        key = (function, a, b)
        found = self._known.get(key)
        if found is not None and found.index not in self.same:
            return found
        values, fixed = self.values, self.fixed
        x, y = values[a], values[b]
        if a in fixed or b in fixed:
            if a in fixed and b in fixed:
                return function(x, y)
            if function is operator.mul and type(x) is int and type(y) is int:
                if (x == 0 and a in fixed) or (y == 0 and b in fixed):
                    return 0
                if x == 1 and a in fixed:
                    return Size(self, b, y)
                if y == 1 and b in fixed:
                    return Size(self, a, x)
        if found is None:
            index = self._append(function, a, b, function(x, y))
            if function is operator.mul:
                low, high = self.least.get(a, -1), self.least.get(b, -1)
                if low >= 1 and high >= 1:
                    self.least[index] = low * high
            found = self._known[key] = Size(self, index, values[index])
            return found
        index = self.representative(found.index)
        return values[index] if index in fixed else Size(self, index, values[index])

    def compare(self, function: Function, left: Any, right: Any) -> bool:
        """Outcome of eq, lt or le; a guard where it depends on the sizes."""
        a, b = self.index_of(left), self.index_of(right)
        if a == b:
            return function is not operator.lt
        outcome = self.guards.get((function, a, b))
        if outcome is not None:
            return outcome
        outcome = bool(function(self.values[a], self.values[b]))
        if (a in self.fixed and b in self.fixed) or self._follows(function, a, b):
            return outcome
        self.guards[function, a, b] = outcome
        if outcome and function is operator.eq:
            self._unite(a, b)
        return outcome

    def _follows(self, function: Function, a: int, b: int) -> bool:
        """Whether the outcome follows from the bounds, for all sizes there may be."""
        if b in self.fixed:
            low, limit = self.least.get(a), self.values[b]
            if low is not None:
                return bool(low > limit or (low == limit and function is operator.lt))
        if a in self.fixed:
            low, limit = self.least.get(b), self.values[a]
            if low is not None:
                return bool(low > limit or (low == limit and function is operator.le))
        return False

    def _unite(self, a: int, b: int) -> None:
        # Not across types: 4 and 4.0 are equal and have other bits.
        if type(self.values[a]) is not type(self.values[b]):
            return
        if a in self.fixed or (a < b and b not in self.fixed):
            a, b = b, a
        self.same[a] = b
        bounds = [self.least[i] for i in (a, b) if i in self.least]
        if bounds:
            self.least[b] = max(bounds)

    def pinned(self, size: Size) -> Number:
        """The value as a plain number, from now on a condition of the plan."""
        index = self.representative(size.index)
        value = self.values[index]
        self.compare(operator.eq, size, value)
        return value


class Size:
    """A size of the segment being planned, or a number that follows from sizes."""

    __slots__ = ("_value", "index", "tape")

    def __init__(self, tape: Tape, index: int, value: Number) -> None:
        self.tape = tape
        self.index = index
        self._value = value

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number; depends on the operations, never on sizes."""
        return isinstance(self._value, float)

    def as_float(self) -> Any:
        """The same number as a float that follows from sizes."""
        return self if self.is_float else self.tape.apply(_as_float, self, 0)

    def __add__(self, other: Any) -> Any:
        return self.tape.apply(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self.tape.apply(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return self.tape.apply(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.tape.apply(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return self.tape.apply(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.tape.apply(operator.mul, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.tape.apply(operator.floordiv, self, self._divisor(other))

    def __rfloordiv__(self, other: Any) -> Any:
        return self.tape.apply(operator.floordiv, other, self._divisor(self))

    def __mod__(self, other: Any) -> Any:
        return self.tape.apply(operator.mod, self, self._divisor(other))

    def __rmod__(self, other: Any) -> Any:
        return self.tape.apply(operator.mod, other, self._divisor(self))

    def __truediv__(self, other: Any) -> Any:
        return self.tape.apply(operator.truediv, self, self._divisor(other))

    def __rtruediv__(self, other: Any) -> Any:
        return self.tape.apply(operator.truediv, other, self._divisor(self))

    def _divisor(self, other: Any) -> Any:
        # Binding must not divide by zero: that it is none is part of the plan.
        self.tape.compare(operator.eq, other, 0)
        return other

    def __neg__(self) -> Any:
        return self.tape.apply(_negated, self, 0)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.tape.apply(_absolute, self, 0)

    def __eq__(self, other: object) -> bool:
        if type(other) not in (Size, int, float, bool):
            return NotImplemented
        return self.tape.compare(operator.eq, self, other)

    def __ne__(self, other: object) -> bool:
        if type(other) not in (Size, int, float, bool):
            return NotImplemented
        return not self.tape.compare(operator.eq, self, other)

    def __lt__(self, other: Any) -> bool:
        return self.tape.compare(operator.lt, self, other)

    def __le__(self, other: Any) -> bool:
        return self.tape.compare(operator.le, self, other)

    def __gt__(self, other: Any) -> bool:
        return self.tape.compare(operator.lt, other, self)

    def __ge__(self, other: Any) -> bool:
        return self.tape.compare(operator.le, other, self)

    def __bool__(self) -> bool:
        return not self.tape.compare(operator.eq, self, 0)

    def __hash__(self) -> int:
        return hash(self.tape.pinned(self))

    def __index__(self) -> int:
        value = self.tape.pinned(self)
        if not isinstance(value, int):
            raise TypeError("a float cannot be interpreted as an integer")
        return value

    def __int__(self) -> int:
        return int(self.tape.pinned(self))

    def __float__(self) -> float:
        return float(self.tape.pinned(self))

    def __repr__(self) -> str:
        return repr(self.tape.pinned(self))

    def __format__(self, form: str) -> str:
        return format(self.tape.pinned(self), form)


class Replay:
    """A tape cut down to what a plan needs, to be run for other sizes.

    n_inputs    sizes it takes
    constants   values that follow the inputs
    operations  (function, a, b), each appending a value
    guards      (comparison, a, b, outcome)
    place       index on the tape -> among the values
    """

    __slots__ = ("constants", "guards", "n_inputs", "operations", "place")

    def __init__(self, tape: Tape, wanted: Sequence[int]) -> None:
        self.n_inputs = tape.n_inputs
        reached: set[int] = set()
        stack = [*wanted, *[i for _, a, b in tape.guards for i in (a, b)]]
        while stack:
            index = stack.pop()
            if index in reached:
                continue
            reached.add(index)
            function, a, b = tape.nodes[index]
            if function is not None:
                stack += (a, b)
        order = sorted(i for i in reached if i >= tape.n_inputs)
        constants = [i for i in order if tape.nodes[i][0] is None]
        computed = [i for i in order if tape.nodes[i][0] is not None]
        place = {i: i for i in range(tape.n_inputs)}
        place.update({old: tape.n_inputs + n for n, old in enumerate([*constants, *computed])})
        self.constants: Final = [tape.values[i] for i in constants]
        self.operations: Final[list[tuple[Any, int, int]]] = [
            (tape.nodes[i][0], place[tape.nodes[i][1]], place[tape.nodes[i][2]]) for i in computed
        ]
        self.guards: Final = [
            (function, place[a], place[b], outcome)
            for (function, a, b), outcome in tape.guards.items()
        ]
        self.place: dict[int, int] = place

    def values(self, sizes: Sequence[int]) -> list[Any] | None:
        """All values for these sizes, or None where a guard fails."""
        values: list[Any] = [*sizes, *self.constants]
        append = values.append
        try:
            for function, a, b in self.operations:
                append(function(values[a], values[b]))
        except ZeroDivisionError:  # that no divisor is zero is among the guards
            return None
        for function, a, b, outcome in self.guards:
            if function(values[a], values[b]) is not outcome:
                return None
        return values
