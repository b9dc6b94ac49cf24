"""Cost reader: how many plain words an expression takes, what it loads, what it keeps live.

Keeps     nothing is compiled or expanded more than once: a math word is weighed once a dtype, an
          expression once; the memory of both is bounded. Costs guide fusion and never change a bit.
Touches   vocabulary, mathlib (math words are weighed by their expansion).
Not here  what is worth fusing (engine/planning/fuse.py); time on a given machine.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from flambeau.base.dtypes import dtype
from flambeau.codegen.vocabulary import BUILDER, MATH_WORDS, Expression

# Words that are no instruction: a register read as another type, a literal.
_FREE: Final = frozenset(("bitcast", "constant"))
_LEAVES: Final = frozenset(("constant", "number", "load", "index", "reduced", "kept"))
_MATH: Final = frozenset(MATH_WORDS)
_REMEMBERED: Final = 50_000


class Cost(NamedTuple):
    """Cost of one element.

    operations   plain words applied, shared parts once; bitcasts and literals are free
    loads        bytes read from memory: distinct loads, not literals or run-time numbers
    live         most values held at once, in registers of 4-byte lanes (a float64 counts two)
    """

    operations: int
    loads: int
    live: int


_COSTS: dict[tuple[Expression, ...], Cost] = {}
_MATH_COSTS: dict[tuple[str, dtype], Cost] = {}


def cost(*results: Expression) -> Cost:
    """Cost of computing these expressions together.

    >>> from flambeau.base import dtypes
    >>> x = BUILDER.apply("load", (), dtypes.float32, 0)
    >>> cost(BUILDER.add(BUILDER.mul(x, x), 1.0))
    Cost(operations=2, loads=4, live=1)
    """
    found = _COSTS.get(results)
    if found is None:
        if len(_COSTS) >= _REMEMBERED:
            _COSTS.clear()
        found = _COSTS[results] = _weigh(results)
    return found


def math_cost(word: str, of: dtype) -> Cost:
    """Cost of a math word on operands of dtype `of`: of its expansion, operands not counted."""
    found = _MATH_COSTS.get((word, of))
    if found is None:
        from flambeau.codegen import mathlib

        n_operands = 2 if word in ("pow", "atan2", "fmod") else 1
        operands = tuple(BUILDER.apply("number", (), of, i) for i in range(n_operands))
        found = _MATH_COSTS[word, of] = _weigh((mathlib.expand(BUILDER, word, operands),))
    return found


def _weigh(results: tuple[Expression, ...]) -> Cost:
    order = _in_order(results)
    last_use: dict[Expression, int] = {}
    for step, node in enumerate(order):
        for each in node.arguments:
            last_use[each] = step
    for each in results:
        last_use[each] = len(order)
    operations = loads = held = peak = 0
    for step, node in enumerate(order):
        inner = 0
        if node.word == "load":
            loads += node.dtype.itemsize
        elif node.word in _MATH:
            weighed = math_cost(node.word, node.arguments[0].dtype)
            operations += weighed.operations
            inner = weighed.live
        elif node.word not in _FREE and node.word not in _LEAVES:
            operations += 1
        # While a math word runs, what is held stays held beside its own values; its operands
        # are counted in both, so they are taken out once.
        entering = sum(_width(each) for each in set(node.arguments))
        peak = max(peak, held + max(0, inner - entering))
        held -= sum(_width(each) for each in set(node.arguments) if last_use[each] == step)
        held += _width(node)
        peak = max(peak, held)
    return Cost(operations, loads, peak)


def _width(node: Expression) -> int:
    """Registers of a value; literals and run-time numbers are read from memory where used."""
    if node.word in ("constant", "number"):
        return 0
    return 2 if node.dtype.itemsize == 8 else 1


def _in_order(results: tuple[Expression, ...]) -> list[Expression]:
    """Every distinct node after its arguments, deeper arguments first (fewer values wait)."""
    order: list[Expression] = []
    seen: set[Expression] = set()
    pending: list[tuple[Expression, bool]] = [(each, False) for each in reversed(results)]
    while pending:
        node, ready = pending.pop()
        if ready:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        pending.append((node, True))
        for each in sorted(node.arguments, key=lambda a: a.depth):
            if each not in seen:
                pending.append((each, False))
    return order
