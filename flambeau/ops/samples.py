"""Argument lists that every operator is tried with: what `samples(self, s)` builds.

Keeps     descriptions only: shapes, ranges and kinds; the tests draw the values. Nothing here is
          imported unless a test asks.
Touches   base.dtypes.
Not here  drawing and comparing (tests/ops)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.devices import CPU


class Drawn:
    """A tensor to be drawn.

    kind   "real" (takes gradients), "complex" (too), "constant" (real, without), "integer",
           "boolean", "index", "permutation" (indices, none twice along dim 0)
    """

    def __init__(self, kind: str, shape: tuple[int, ...], low: float, high: float) -> None:
        self.kind = kind
        self.shape = shape
        self.low = low
        self.high = high
        self.is_transposed = False

    def t(self) -> Drawn:
        """The transpose of a tensor drawn with this shape."""
        made = Drawn(self.kind, self.shape[::-1], self.low, self.high)
        made.is_transposed = not self.is_transposed
        return made

    def __repr__(self) -> str:
        tail = ".t()" if self.is_transposed else ""
        return f"{self.kind}{list(self.shape)}{tail}"


class Case:
    """One argument list."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.arguments = arguments
        self.keywords = keywords

    def __repr__(self) -> str:
        named = [f"{key}={value!r}" for key, value in self.keywords.items()]
        return f"({', '.join([*map(repr, self.arguments), *named])})"


class Samples:
    """The `s` of Operator.samples."""

    bool = dtypes.bool_
    int64 = dtypes.int64
    float32 = dtypes.float32
    float64 = dtypes.float64
    cpu = CPU

    def __call__(self, *arguments: Any, **keywords: Any) -> Case:
        """One argument list."""
        return Case(arguments, keywords)

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
        """A floating tensor, uniform in [low, high)."""
        return Drawn("real", shape, low, high)

    def complex(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
        """A complex tensor, both parts uniform in [low, high)."""
        return Drawn("complex", shape, low, high)

    def constant(self, *shape: int, low: float = 0.2, high: float = 2.0) -> Drawn:
        """A floating tensor that takes no gradient."""
        return Drawn("constant", shape, low, high)

    def integer(self, *shape: int, low: int = -3, high: int = 4) -> Drawn:
        """An int64 tensor."""
        return Drawn("integer", shape, low, high)

    def boolean(self, *shape: int) -> Drawn:
        """A bool tensor."""
        return Drawn("boolean", shape, 0, 2)

    def index(self, *shape: int, below: int) -> Drawn:
        """int64 indices in [0, below)."""
        return Drawn("index", shape, 0, below)

    def permutation(self, *shape: int, below: int) -> Drawn:
        """Indices in [0, below), none twice along dim 0."""
        return Drawn("permutation", shape, 0, below)

    def elementwise(self, operator: Any) -> list[Case]:
        """Equal, broadcast, transposed, single and empty operands, and a number for the last."""
        required = self._required(operator)

        def drawn(*shapes: tuple[int, ...]) -> Case:
            arguments = []
            for (name, _kind), shape in zip(required, shapes, strict=False):
                low, high = operator.domain.get(name, (-2.0, 2.0))
                arguments.append(self.real(*shape, low=low, high=high))
            return Case(tuple(arguments), {})

        shapes_of: list[list[tuple[int, ...]]] = [
            [(3, 4), (3, 4), (3, 4)], [(3, 1), (4,), (3, 4)], [(), (2,), ()], [(2, 0), (1, 0), (0,)]
        ]  # fmt: skip
        cases = [drawn(*shapes) for shapes in shapes_of]
        turned = drawn((3, 4), (3, 4), (3, 4))
        cases.append(Case(tuple(each.t() for each in turned.arguments), {}))
        if len(required) > 1 and required[-1][1] == "Operand":
            low, high = operator.domain.get(required[-1][0], (-2.0, 2.0))
            first = drawn((3, 4), (3, 4)).arguments[: len(required) - 1]
            cases.append(Case((*first, (low + 3 * high) / 4), {}))
        return cases

    def _required(self, operator: Any) -> list[tuple[str, str]]:
        """(name, kind) of the operands without a default."""
        formula = type(operator).formula
        n_defaults = len(formula.__defaults__ or ())
        names = list(operator.kinds().items())
        n_positional = formula.__code__.co_argcount - 2
        return [
            (name, kind)
            for name, kind in names[: n_positional - n_defaults]
            if "Number" not in kind
        ]

    def reductions(self) -> list[Case]:
        """All dims, one, several, kept ones, none at all, transposed."""
        return [
            self(self.real(3, 4)), self(self.real(3, 4), 1), self(self.real(3, 4), 0),
            self(self.real(2, 3, 4), (0, 2)), self(self.real(2, 3, 4), (-1, 1), True),
            self(self.real()), self(self.real(3, 4).t(), 1), self(self.real(2, 1, 3), (0, 1, 2)),
        ]  # fmt: skip
