"""Phases over rows that several tests put together.

Keeps     one buffer read, load 0; float32.
Touches   codegen.
Not here  the cases (test_*.py)."""

from __future__ import annotations

from flambeau.base import dtypes
from flambeau.codegen.loops import Phase, Reduce
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import Expression, expression

F32 = dtypes.float32
X = expression("load", (), F32, 0)


def reduced(number: int) -> Expression:
    """What an earlier phase made of each row."""
    return expression("reduced", (), F32, number)


AWAY = k.sub(X, reduced(0))
SUM = Phase((Reduce(0, "sum", X),))
SQUARES = Phase((Reduce(1, "sum", k.mul(AWAY, AWAY)),))
